package agefile

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"golang.org/x/crypto/ssh"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/ageplugin"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// Identities holds the identities in the attributes that [Attrs] returns.
type Identities struct {
	parsed     func() ([]age.Identity, error) // parses texts once, because decrypting a protected key is slow
	texts      []string
	files      []string
	passphrase string
	values     attr.Values   // the settings that decide whether a plugin may run
	turn       chan struct{} // held while a plugin runs
}

// NewIdentities returns the identities in the settings v. [Identities.Load] reports mistakes in
// them.
func NewIdentities(v attr.Values) *Identities {
	i := &Identities{
		texts: v.Strings("identities"), files: v.Strings("identity_files"), passphrase: v.String("identity_passphrase"), values: v,
		turn: make(chan struct{}, 1),
	}
	i.parsed = sync.OnceValues(i.parseAll)
	return i
}

// Any reports whether the settings have at least one identity.
func (i *Identities) Any() bool { return len(i.texts)+len(i.files) > 0 }

// Load returns all identities. It reads identity files at each call. Its errors contain no part of
// an identity.
func (i *Identities) Load() ([]age.Identity, error) {
	own, err := i.parsed()
	if err != nil {
		return nil, err
	}
	all := slices.Clone(own)
	for n, path := range i.files {
		if recognize.HoldsPrivateKey(path) {
			return nil, fmt.Errorf("identity_files, element %d: this is an identity, not the path of a file; set it in the argument "+
				"identities", n+1)
		}
		text, err := keyfile.ReadText(path)
		if err != nil {
			return nil, fmt.Errorf("identity_files, element %d: %w", n+1, err)
		}
		identities, err := i.parse(text, "identity_files")
		if err != nil {
			return nil, fmt.Errorf("identity_files: %s: %w", path, err)
		}
		all = append(all, identities...)
	}
	return all, nil
}

func (i *Identities) parseAll() ([]age.Identity, error) {
	var all []age.Identity
	for n, text := range i.texts {
		identities, err := i.parse([]byte(text), "identities")
		if err != nil {
			return nil, fmt.Errorf("identities, element %d: %w", n+1, err)
		}
		all = append(all, identities...)
	}
	return all, nil
}

// WithPassphrase returns an identity that opens files sealed with a passphrase.
func WithPassphrase(passphrase string) (*age.ScryptIdentity, error) {
	identity, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, err
	}
	identity.SetMaxWorkFactor(MaxWorkFactor)
	return identity, nil
}

// parse returns the identities in the content of an age identity file. Attribute names the argument
// that holds the content or the path of the file.
func (i *Identities) parse(text []byte, attribute string) ([]age.Identity, error) {
	if recognize.IsAge(text) { // before white space is removed, because a binary file may end with a space
		plain, err := i.unseal(text)
		if err != nil {
			return nil, err
		}
		text = plain
	}
	text = bytes.TrimSpace(text)
	if recognize.IsPEM(string(text)) {
		identity, err := i.parseSSH(text)
		return []age.Identity{identity}, err
	}
	identities, err := i.parseLines(string(text), attribute)
	if !errors.Is(err, errUnknown) {
		return identities, err
	}
	if len(text) == 0 {
		return nil, errors.New("the identity is empty; set an identity (AGE-SECRET-KEY-…)")
	}
	if is := recognize.Text(string(text), recognize.Identity).Said(""); is != "" {
		return nil, fmt.Errorf("this %w", fault.Odd(is))
	}
	return nil, errors.New("this is neither an age identity (AGE-SECRET-KEY-… or AGE-PLUGIN-…) nor an SSH private key in PEM " +
		"format; copy the whole key, or check the file")
}

// errUnknown means that a text contains no age identity.
var errUnknown = errors.New("unknown")

func (i *Identities) parseLines(text, attribute string) (all []age.Identity, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case ageplugin.IsIdentity(line):
			plugin, err := parsePlugin(line, i.values, attribute)
			if err != nil {
				return nil, err
			}
			plugin.Turn = i.turn
			all = append(all, plugin)
		default:
			identities, err := age.ParseIdentities(strings.NewReader(line))
			if err != nil {
				return nil, errUnknown
			}
			all = append(all, identities...)
		}
	}
	if len(all) == 0 {
		return nil, errUnknown
	}
	return all, nil
}

// unseal opens an identity file that is sealed with a passphrase.
func (i *Identities) unseal(file []byte) ([]byte, error) {
	if types := recipientTypes(file); len(types) > 0 && !slices.Contains(types, "scrypt") {
		return nil, errors.New("this identity is encrypted for a recipient, not with a passphrase; decrypt it with age first")
	}
	if i.passphrase == "" {
		return nil, errPassphraseMissing
	}
	passphrase, err := WithPassphrase(i.passphrase)
	if err != nil {
		return nil, err
	}
	plain, err := Open(context.Background(), file, []age.Identity{passphrase})
	if errors.Is(err, driver.ErrNoKey) { // the passphrase of the identity is wrong, not the key of the file
		return nil, errPassphraseWrong
	}
	return plain, err
}

var (
	errPassphraseMissing = errors.New("this identity is protected by a passphrase; set identity_passphrase")
	errPassphraseWrong   = errors.New("identity_passphrase does not match this identity; check the passphrase and the identity")
)

func (i *Identities) parseSSH(pem []byte) (age.Identity, error) {
	key, err := ssh.ParseRawPrivateKey(pem)
	if _, protected := errors.AsType[*ssh.PassphraseMissingError](err); protected {
		if i.passphrase == "" {
			return nil, errPassphraseMissing
		}
		key, err = ssh.ParseRawPrivateKeyWithPassphrase(pem, []byte(i.passphrase))
		if err != nil {
			return nil, errPassphraseWrong
		}
	}
	if err != nil {
		return nil, errors.New("this is not a valid SSH private key in PEM format; copy the whole key that ssh-keygen wrote")
	}
	switch key := key.(type) { // the parser returns Ed25519 keys in both forms
	case ed25519.PrivateKey:
		return agessh.NewEd25519Identity(key)
	case *ed25519.PrivateKey:
		return agessh.NewEd25519Identity(*key)
	case *rsa.PrivateKey:
		return agessh.NewRSAIdentity(key)
	}
	return nil, errors.New("age does not support this type of SSH key; use an Ed25519 or RSA key")
}
