// Package age opens and seals files of age: https://age-encryption.org/v1.
package age

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
)

// maxWorkFactor bounds what a file that is sealed with a passphrase may demand.
// Scrypt then takes 1 GiB of memory and some seconds. The age program uses 18,
// rage what takes a second on the machine.
const maxWorkFactor = 20

// Block returns the age method.
func Block() encryption.Block[encryption.Method] {
	return encryption.Block[encryption.Method]{
		Table: attr.Table{
			Name: "age",
			Doc: "Files encrypted by [age](https://age-encryption.org). At least one of `identities`, `identity_files` and `passphrase` is " +
				"needed. A document that sops encrypted for an age key is for `sops`.",
			Attrs: []attr.Attr{
				{
					Name: "identities", Type: cty.List(cty.String), Sensitive: true, Local: true,
					Doc: "What opens the files, each as in a file for `age --identity`: `AGE-SECRET-KEY-…`, an SSH private key (Ed25519 or RSA), or " +
						"an age file of such lines, sealed with `identity_passphrase`.",
				},
				{Name: "identity_files", Type: cty.List(cty.String), Secret: true, Local: true, Doc: "Paths of files with the " +
					"same content, such as `~/.ssh/id_ed25519`. They are read when a file is opened."},
				{Name: "identity_passphrase", Type: cty.String, Sensitive: true, Local: true,
					Doc: "The passphrase of those identities that are protected by one."},
				{
					Name: "passphrase", Type: cty.String, Sensitive: true, Local: true,
					Doc: fmt.Sprintf("For files that were encrypted with a passphrase, `age --passphrase`. A file "+
						"may demand a scrypt work factor of at most %d, which takes 1 GiB of memory.", maxWorkFactor),
				},
				{
					Name: "recipients", Type: cty.List(cty.String),
					Doc: "For whom files are encrypted: `age1…`, `age1pq1…`, or an SSH public key. Files are not " +
						"encrypted by this provider, so only programs that use the Go library need it.",
				},
			},
		},
		Build:      build,
		WholeFile:  true,
		Recognizes: (*method)(nil).RecognizesFile,
	}
}

type method struct {
	identities         func() ([]age.Identity, error) // parsed once: decrypting a protected key takes time
	identityFiles      []string
	identityPassphrase string
	passphrase         string
	recipients         []age.Recipient
}

var (
	_ encryption.FileMethod = (*method)(nil)
	_ encryption.Encrypter  = (*method)(nil)
)

func build(v attr.Values) (encryption.Method, error) {
	texts := v.Strings("identities")
	m := &method{
		identityFiles:      v.Strings("identity_files"),
		identityPassphrase: v.String("identity_passphrase"),
		passphrase:         v.String("passphrase"),
	}
	m.identities = sync.OnceValues(func() ([]age.Identity, error) { return m.parseAll(texts) })
	for i, text := range v.Strings("recipients") {
		recipient, err := parseRecipient(strings.TrimSpace(text))
		if err != nil {
			return nil, v.Errorf("recipients", "element %d: %w", i+1, err)
		}
		m.recipients = append(m.recipients, recipient)
	}
	if len(texts)+len(m.identityFiles)+len(m.recipients) == 0 && m.passphrase == "" {
		return nil, v.Errorf("", "one of identities, identity_files and passphrase is required")
	}
	return m, nil
}

// parseRecipient keeps quiet about what it does not know: it may be a private
// key.
func parseRecipient(text string) (age.Recipient, error) {
	var recipient age.Recipient
	var err error
	switch {
	case strings.HasPrefix(text, "age1pq1"):
		recipient, err = age.ParseHybridRecipient(text)
	case strings.HasPrefix(text, "age1"):
		recipient, err = age.ParseX25519Recipient(text)
	case strings.HasPrefix(text, "ssh-"):
		recipient, err = agessh.ParseRecipient(text)
	default:
		err = errors.New("unknown")
	}
	if err != nil {
		return nil, errors.New("this is not a known recipient: age1…, age1pq1…, ssh-ed25519 … or ssh-rsa " +
			"…; those of plugins are not supported")
	}
	return recipient, nil
}

// What files begin with. An armored one may have white space before it.
const intro = "age-encryption.org/"

// RecognizesFile reports whether file is of age, armored or not.
func (m *method) RecognizesFile(file []byte) bool {
	return bytes.HasPrefix(file, []byte(intro)) || armored(file)
}

func armored(file []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(file, " \t\r\n"), []byte(armor.Header))
}

// Decrypt opens file with the first identity that it is for.
func (m *method) Decrypt(_ context.Context, _ encryption.Keys, file []byte) ([]byte, error) {
	identities, err := m.load()
	if err != nil {
		return nil, err
	}
	return open(file, identities)
}

func open(file []byte, identities []age.Identity) ([]byte, error) {
	var in io.Reader = bytes.NewReader(file)
	if armored(file) {
		in = armor.NewReader(in)
	}
	out, err := age.Decrypt(in, identities...)
	if none, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, fmt.Errorf("%w: no identity and no passphrase here opens it; %s", encryption.ErrNoKey, describe(none.StanzaTypes))
	}
	if err != nil {
		return nil, fmt.Errorf("the header of the file is damaged, or demands what is refused: %s", shown(err))
	}
	plain := bytes.NewBuffer(make([]byte, 0, len(file)+bytes.MinRead))
	if _, err := plain.ReadFrom(out); err != nil {
		return nil, fmt.Errorf("%w or cut off: %s", encryption.ErrDamaged, shown(err))
	}
	return plain.Bytes(), nil
}

const maxShown = 200 // bytes of what a file holds that are shown

// shown is what age says of a file, with pieces of it.
func shown(err error) string { return outside.Line(err.Error(), maxShown) }

// describe says for whom a file is encrypted, if the file says so.
func describe(types []string) string {
	types = slices.Compact(slices.Sorted(slices.Values(types)))
	if len(types) > 5 {
		types = append(types[:5], "…")
	}
	for i, t := range types {
		types[i] = outside.Quoted(t, maxShown)
	}
	return "it is encrypted for " + strings.Join(types, ", ")
}

// Encrypt seals plain for the recipients, else with the passphrase.
func (m *method) Encrypt(_ context.Context, _ encryption.Keys, plain []byte) ([]byte, error) {
	recipients := m.recipients
	if len(recipients) == 0 {
		recipient, err := age.NewScryptRecipient(m.passphrase)
		if err != nil {
			return nil, errors.New("recipients or a passphrase are required to seal files")
		}
		recipients = []age.Recipient{recipient}
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, recipients...)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return sealed.Bytes(), nil
}
