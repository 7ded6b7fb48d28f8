package age

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"golang.org/x/crypto/ssh"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/keyfile"
)

// parseAll reads the identities of the configuration. Its errors, and those
// below, hold nothing of an identity.
func (m *method) parseAll(texts []string) ([]age.Identity, error) {
	var all []age.Identity
	for i, text := range texts {
		identities, err := m.parse([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("identities, element %d: %w", i+1, err)
		}
		all = append(all, identities...)
	}
	return all, nil
}

// load returns everything that may open a file.
func (m *method) load() ([]age.Identity, error) {
	own, err := m.identities()
	if err != nil {
		return nil, err
	}
	all := slices.Clone(own)
	for _, path := range m.identityFiles {
		text, err := keyfile.Read(path)
		if err != nil {
			return nil, fmt.Errorf("identity_files: %w", err)
		}
		identities, err := m.parse(text)
		if err != nil {
			return nil, fmt.Errorf("identity_files: %s: %w", path, err)
		}
		all = append(all, identities...)
	}
	if m.passphrase != "" {
		identity, err := withPassphrase(m.passphrase)
		if err != nil {
			return nil, err
		}
		all = append(all, identity)
	}
	if len(all) == 0 {
		return nil, errors.New("identities, identity_files or a passphrase are required to open files")
	}
	return all, nil
}

func withPassphrase(passphrase string) (*age.ScryptIdentity, error) {
	identity, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, err
	}
	identity.SetMaxWorkFactor(maxWorkFactor)
	return identity, nil
}

// parse reads the content of an identity file of age.
func (m *method) parse(text []byte) ([]age.Identity, error) {
	text = bytes.TrimSpace(text)
	if m.RecognizesFile(text) {
		plain, err := m.unseal(text)
		if err != nil {
			return nil, err
		}
		text = bytes.TrimSpace(plain)
	}
	if bytes.HasPrefix(text, []byte("-----BEGIN")) {
		identity, err := m.parseSSH(text)
		return []age.Identity{identity}, err
	}
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("AGE-PLUGIN-")) {
			return nil, errors.New("this is the identity of an age plugin; plugins are programs, and none is run here")
		}
	}
	identities, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil && bytes.HasPrefix(text, []byte("age1")) {
		return nil, errors.New("this is a public key (age1…), which only encrypts; the identity that belongs to it is required " +
			"(AGE-SECRET-KEY-…)")
	}
	if err != nil {
		return nil, errors.New("this is neither an age identity (AGE-SECRET-KEY-…) nor an SSH private key in PEM")
	}
	return identities, nil
}

// unseal opens an identity file that is an age file itself.
func (m *method) unseal(file []byte) ([]byte, error) {
	if m.identityPassphrase == "" {
		return nil, errPassphraseMissing
	}
	passphrase, err := withPassphrase(m.identityPassphrase)
	if err != nil {
		return nil, err
	}
	plain, err := open(file, []age.Identity{passphrase})
	if errors.Is(err, encryption.ErrNoKey) { // that of the identity, and not of the file
		return nil, errPassphraseWrong
	}
	return plain, err
}

var (
	errPassphraseMissing = errors.New("this identity is protected by a passphrase; set identity_passphrase")
	errPassphraseWrong   = errors.New("identity_passphrase is not the passphrase of this identity")
)

func (m *method) parseSSH(pem []byte) (age.Identity, error) {
	key, err := ssh.ParseRawPrivateKey(pem)
	if _, protected := errors.AsType[*ssh.PassphraseMissingError](err); protected {
		if m.identityPassphrase == "" {
			return nil, errPassphraseMissing
		}
		key, err = ssh.ParseRawPrivateKeyWithPassphrase(pem, []byte(m.identityPassphrase))
		if err != nil {
			return nil, errPassphraseWrong
		}
	}
	if err != nil {
		return nil, errors.New("this is not an SSH private key in PEM that can be read")
	}
	switch key := key.(type) { // of Ed25519 keys, both forms occur
	case ed25519.PrivateKey:
		return agessh.NewEd25519Identity(key)
	case *ed25519.PrivateKey:
		return agessh.NewEd25519Identity(*key)
	case *rsa.PrivateKey:
		return agessh.NewRSAIdentity(key)
	}
	return nil, fmt.Errorf("age does not support SSH keys of this kind (%s), only Ed25519 and RSA",
		strings.TrimPrefix(fmt.Sprintf("%T", key), "*"))
}
