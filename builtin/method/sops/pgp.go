package sops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const maxPart = 1024 // the maximum size of a data key, or part of one, in bytes

// pgpKeys opens data keys that are encrypted for PGP keys, either in this process, with the method's own
// keys, or with the user's gpg. The sops library would read keyrings of old versions, prompt on a terminal,
// and pass the whole environment to gpg.
type pgpKeys struct {
	own    func() (openpgp.EntityList, error) // returns the method's private keys, unlocked once; nil if there are none
	useGPG bool
	gpg    string

	world world.World // the environment of gpg
	why   string      // why gpg does not get the user's environment, to append to errors; may be empty
}

func newPGPKeys(v attr.Values) pgpKeys {
	p := pgpKeys{useGPG: v.Environment() != nil, gpg: v.String("gpg_command"), world: world.For(v.Environment(), false)}
	if v.LeadsToCommand() != nil { // TF_ENCRYPTION and GNUPGHOME must not choose the programs that gpg starts
		p.world, p.why = p.world.Beside(true), ". The program gpg ran without GNUPGHOME and its other variables, because "+
			"only TF_ENCRYPTION selects it"
	}
	if armoured, passphrase := v.Strings("pgp_private_keys"), []byte(v.String("pgp_passphrase")); len(armoured) > 0 {
		p.own = sync.OnceValues(func() (openpgp.EntityList, error) { return unlock(armoured, passphrase) })
	}
	if v.Has("use_gpg") {
		p.useGPG = v.Bool("use_gpg")
	}
	return p
}

func (p pgpKeys) open(ctx context.Context, runs *programs, sealed string) ([]byte, error) {
	if p.own == nil && !p.useGPG {
		return nil, fault.With(fmt.Errorf("%w: there is no PGP key", driver.ErrNoKey), "set pgp_private_keys, or use_gpg = true")
	}
	if p.own == nil {
		return p.askGPG(ctx, runs, sealed)
	}
	dataKey, own := p.openHere(sealed)
	if own == nil || !p.useGPG {
		return dataKey, own
	}
	dataKey, err := p.askGPG(ctx, runs, sealed)
	switch {
	case err == nil, ctx.Err() != nil:
		return dataKey, err
	case errors.Is(own, driver.ErrNoKey):
		return nil, fmt.Errorf("%w, and %w", err, keyError{err: own}.reason())
	}
	return nil, own
}

// unlock returns the method's private keys. The errors in this file omit the library's messages, some of
// which repeat parts of a key.
func unlock(armoured []string, passphrase []byte) (ring openpgp.EntityList, err error) {
	for i, text := range armoured {
		entities, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("pgp_private_keys: element %d is not an armored PGP key; run gpg --export-secret-keys --armor "+
				"to get the key", i+1)
		}
		for _, e := range entities {
			if e.PrivateKey == nil {
				return nil, fmt.Errorf("pgp_private_keys: element %d is a public key, not a private key", i+1)
			}
			if err := e.DecryptPrivateKeys(passphrase); err != nil {
				return nil, fmt.Errorf("pgp_private_keys: element %d cannot be unlocked; check pgp_passphrase", i+1)
			}
		}
		ring = append(ring, entities...)
	}
	return ring, nil
}

// openHere opens a data key with the method's own keys.
func (p pgpKeys) openHere(sealed string) ([]byte, error) {
	ring, err := p.own()
	if err != nil {
		return nil, err
	}
	block, err := armor.Decode(strings.NewReader(sealed))
	if err != nil {
		return nil, errors.New("the data key in the file is damaged: it is not an armored PGP message")
	}
	limit := int64(maxPart)
	message, err := openpgp.ReadMessage(block.Body, ring, nil, &packet.Config{MaxDecompressedMessageSize: &limit})
	// If no private key was used to decrypt the message, it may come from anyone.
	if err != nil || !message.IsEncrypted || message.DecryptedWith.PrivateKey == nil {
		return nil, fault.With(fmt.Errorf("%w: no key in pgp_private_keys matches", driver.ErrNoKey),
			"add the private key of a recipient of the file")
	}
	dataKey, err := io.ReadAll(io.LimitReader(message.UnverifiedBody, maxPart+1))
	if err != nil || len(dataKey) > maxPart {
		return nil, errors.New("the data key in the file is damaged: its PGP message is incomplete or not valid")
	}
	return dataKey, nil
}

// pgpParts returns the number of keys that a message is encrypted for. Decryption tries each of them.
func pgpParts(sealed string) int {
	block, err := armor.Decode(strings.NewReader(sealed))
	if err != nil {
		return 0
	}
	n := 0
	for packets := packet.NewOpaqueReader(block.Body); ; {
		p, err := packets.Next()
		if err != nil {
			return n
		}
		if p.Tag == encryptedKey {
			n++
		}
	}
}

const encryptedKey = 1 // the packet tag of an encrypted session key; see RFC 9580, section 5

// askGPG opens a data key with gpg. If that fails, the status lines say why; see
// https://github.com/gpg/gnupg/blob/master/doc/DETAILS.
func (k pgpKeys) askGPG(ctx context.Context, runs *programs, sealed string) ([]byte, error) {
	patience, err := runs.patience(kindPGP, "set pgp_private_keys")
	if err != nil {
		return nil, err
	}
	p := program(k.world, patience, maxPart, strings.NewReader(sealed), k.gpg, "--batch", "--no-tty", "--status-fd", "2", "--decrypt")
	dataKey, stderr, err := p.Run(ctx)
	said := "\n" + string(stderr)
	switch {
	case ctx.Err() != nil:
		return nil, err
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("the program gpg did not answer within %v; check whether its agent is waiting for a passphrase", programPatience)
	case errors.Is(err, exec.ErrNotFound):
		return nil, fault.With(fmt.Errorf("%w: the program %s was not found", driver.ErrNoKey, quote(k.gpg)),
			"install GnuPG, or set pgp_private_keys")
	case strings.Contains(said, "\n[GNUPG:] DECRYPTION_OKAY") && (err == nil || errors.Is(err, world.ErrTooLong)):
		if err != nil || len(dataKey) == 0 {
			return nil, errors.New("the data key that gpg decrypted has the wrong length")
		}
		return dataKey, nil
	case strings.Contains(said, "[GNUPG:] NO_SECKEY"):
		return nil, fault.With(fmt.Errorf("%w: the user's gpg does not have the private key%s", driver.ErrNoKey, k.why),
			"import the private key, or set pgp_private_keys")
	}
	exit, ran := errors.AsType[*exec.ExitError](err)
	switch {
	case !ran && err != nil:
		return nil, fmt.Errorf("%w: the program %s cannot be started", driver.ErrNoKey, quote(k.gpg))
	case ran && exit.ExitCode() < 0:
		return nil, errors.New("the program gpg was ended by a signal")
	}
	return nil, fmt.Errorf("%w: gpg cannot decrypt the data key. gpg said: %s%s", driver.ErrNoKey, quote(forPeople(said)), k.why)
}

// forPeople returns gpg's output without its status lines.
func forPeople(said string) string {
	var out []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[GNUPG:]") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "; ")
}
