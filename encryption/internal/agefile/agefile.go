// Package agefile reads age identities and recipients, and opens and seals age files; see
// https://age-encryption.org/v1.
package agefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"filippo.io/age/tag"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/ageplugin"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// MaxWorkFactor is the largest scrypt work factor that a file sealed with a passphrase may require.
// At this factor, scrypt takes 1 GiB of memory and several seconds. The program age uses 18, and
// rage uses a factor that takes a second on the machine.
const MaxWorkFactor = 20

// Attrs returns the attributes that [NewIdentities] and [Recipients] read. The given text ends the
// documentation of the recipients attribute, and says who needs that attribute.
func Attrs(recipients string) []attr.Attr {
	return []attr.Attr{
		{
			Name: "identities", Type: cty.List(cty.String), Secrecy: attr.LocalSecret,
			Doc: "What opens the files, each as in a file for `age --identity`: `AGE-SECRET-KEY-…`, an SSH private key, `AGE-PLUGIN-…`, which " +
				"runs that plugin, or an age file of these, for `identity_passphrase`.",
		},
		{Name: "identity_files", Type: cty.List(cty.String), Secrecy: attr.NamesLocalSecret, Doc: "Paths of files with the " +
			"same content, such as `~/.ssh/id_ed25519`. They are read when a file is opened, and may name plugins to run."},
		{Name: "identity_passphrase", Type: cty.String, Secrecy: attr.LocalSecret,
			Doc: "The passphrase of those identities that are protected by one."},
		{Name: "recipients", Type: cty.List(cty.String), Doc: "For whom files are encrypted: `age1…`, an SSH public key, or " +
			"`age1name1…`, which runs the plugin `age-plugin-name`. " + recipients},
	}
}

// Recipients returns the recipients in the recipients attribute. An element may be a line of an age
// recipients file; comments are skipped.
func Recipients(v attr.Values) ([]age.Recipient, error) {
	var all []age.Recipient
	for i, text := range v.Strings("recipients") {
		if text = strings.TrimSpace(text); strings.HasPrefix(text, "#") && !strings.Contains(text, "\n") {
			continue // a comment
		}
		recipient, err := parseRecipient(text, v)
		if err != nil {
			return nil, v.Errorf("recipients", "element %d: %w", i+1, err)
		}
		all = append(all, recipient)
	}
	return all, nil
}

// parseRecipient parses one recipient. Its errors do not repeat the text, which may be a private
// key by mistake.
func parseRecipient(text string, v attr.Values) (age.Recipient, error) {
	var recipient age.Recipient
	var err error
	switch {
	case recognize.IsPEM(text) && recognize.HoldsPrivateKey(text):
		return nil, errors.New("this is an SSH private key, not a recipient; use the public key from the .pub file of the same " +
			"name, or from ssh-keygen -y -f FILE")
	case recognize.HoldsPrivateKey(text) && !ageplugin.IsIdentity(text):
		return nil, errors.New("this is an identity, not a recipient; run age-keygen -y FILE to print the recipient of the " +
			"identity")
	case recognize.IsPEM(text):
		return nil, errors.New("this is a certificate or a public key in PEM format, but age does not support this format; use a " +
			"public key like age1… or ssh-ed25519 …")
	case hasSeveral(text): // package agessh would read only the first
		return nil, errors.New("this element contains several recipients; write each recipient as an element, for example with " +
			"split(\"\\n\", file(…))")
	case strings.HasPrefix(text, "age1pq1"):
		recipient, err = age.ParseHybridRecipient(text)
	case strings.HasPrefix(text, "age1tag1"), strings.HasPrefix(text, "age1tagpq1"):
		recipient, err = tag.ParseRecipient(text)
	case ageplugin.IsRecipient(text), ageplugin.IsIdentity(text):
		return parsePlugin(text, v, "recipients")
	case strings.HasPrefix(text, "age1"):
		recipient, err = age.ParseX25519Recipient(text)
	case strings.HasPrefix(text, "ssh-"):
		recipient, err = agessh.ParseRecipient(text)
	case text == "":
		return nil, errors.New("this element is empty, perhaps because split makes one from the last line break; remove it with " +
			"compact(split(…))")
	case recognize.IsPath(text) || recognize.Exists(text):
		return nil, errors.New("this is the path of a file; read its content with compact(split(\"\\n\", file(…)))")
	case strings.HasPrefix(text, "ecdsa-"), strings.HasPrefix(text, "sk-"):
		return nil, errors.New("age does not support this type of SSH key; use ssh-ed25519 or ssh-rsa")
	case recognize.Scheme(text) != "":
		return nil, errors.New("this is a URL, but URLs are not fetched; set the public key itself")
	case strings.Contains(text, "@") && !strings.Contains(text, " "):
		return nil, errors.New("this is a name, not a public key; set a public key like age1… or ssh-ed25519 …")
	default:
		err = errors.New("unknown")
	}
	if err != nil {
		return nil, errors.New("this is not a known recipient; copy the whole recipient. It begins with age1, ssh-ed25519 or " +
			"ssh-rsa")
	}
	return recipient, nil
}

// parsePlugin parses a recipient or an identity that names a plugin. It returns an error if the
// attribute must not choose programs.
func parsePlugin(text string, v attr.Values, attribute string) (*ageplugin.Plugin, error) {
	plugin, err := ageplugin.Parse(text, world.For(v.Environment(), false))
	if err != nil {
		return nil, err
	}
	if err := v.Command(attribute); err != nil {
		return nil, fmt.Errorf("%s: %w", plugin.Name(), err)
	}
	return plugin, nil
}

// hasSeveral reports whether text contains more than one recipient. SSH keys of all kinds begin
// with AAAA, because an encoded key begins with the length of its kind's name.
func hasSeveral(text string) bool {
	keys := 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return unicode.IsSpace(r) || r == ',' }) {
		if strings.HasPrefix(word, "age1") || strings.HasPrefix(word, "AAAA") {
			keys++
		}
	}
	return keys > 1 || strings.ContainsAny(text, "\r\n")
}

// reader returns a reader for the file without its armor.
func reader(file []byte) io.Reader {
	if recognize.IsArmored(file) {
		return armor.NewReader(bytes.NewReader(file))
	}
	return bytes.NewReader(file)
}

// nobody is an identity that opens no file.
type nobody struct{}

func (nobody) Unwrap([]*age.Stanza) ([]byte, error) { return nil, age.ErrIncorrectIdentity }

// recipientTypes returns the types of the file's recipients, or nil if its header cannot be read.
func recipientTypes(file []byte) []string {
	_, err := age.Decrypt(reader(file), nobody{})
	if none, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return none.StanzaTypes
	}
	return nil
}

// Open opens file with the first identity that matches one of its recipients. It tries age's own
// keys first, and then SSH keys and plugins in their order.
func Open(ctx context.Context, file []byte, identities []age.Identity) ([]byte, error) {
	bound, plugins := inContext(ctx, identities)
	out, err := age.Decrypt(reader(file), bound...)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if none, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		if failed := failures(none.Errors); failed != nil {
			return nil, failed
		}
		if slices.Equal(none.StanzaTypes, []string{"scrypt"}) {
			return nil, fault.With(fmt.Errorf("%w: the file is encrypted with a passphrase, but the passphrase here is missing or wrong",
				driver.ErrNoKey),
				"set the argument passphrase to the passphrase that encrypted the file")
		}
		return nil, fault.With(fmt.Errorf("%w: the identities here do not open it, because %s", driver.ErrNoKey, describe(none.StanzaTypes)),
			"set identities or identity_files to the identity of a recipient of the file")
	}
	if err != nil {
		for _, p := range plugins {
			if p.Gave() {
				return nil, fmt.Errorf("the key from %s belongs to another file, or the header of the file is damaged (%s)", p.Name(), shown(err))
			}
		}
		return nil, fmt.Errorf("the header of the file is damaged or too expensive to process (%s); restore an intact copy", shown(err))
	}
	plain := bytes.NewBuffer(make([]byte, 0, len(file)+bytes.MinRead))
	if _, err := plain.ReadFrom(out); err != nil {
		return nil, fmt.Errorf("%w or cut off (%s)", driver.ErrDamaged, shown(err))
	}
	return plain.Bytes(), nil
}

// inContext returns the identities or recipients, with their plugins bound to ctx. It also returns
// these plugins.
func inContext[T any](ctx context.Context, all []T) (bound []T, plugins []*ageplugin.Plugin) {
	bound = slices.Clone(all)
	for i, one := range all {
		if p, ok := any(one).(*ageplugin.Plugin); ok {
			p = p.In(ctx)
			plugins = append(plugins, p)
			bound[i], _ = any(p).(T)
		}
	}
	return bound, plugins
}

// HavePlugins reports whether one of the identities belongs to a plugin.
func HavePlugins(identities []age.Identity) bool {
	_, plugins := inContext(context.Background(), identities)
	return len(plugins) > 0
}

// failures joins the errors of failed plugins into one error, because a failed plugin might have
// had the key. It returns nil if no plugin failed.
func failures(errs []error) (all error) {
	for _, err := range errs {
		switch failed, ok := errors.AsType[*ageplugin.Error](err); {
		case !ok:
		case all == nil:
			all = failed
		default:
			all = fmt.Errorf("%w; %w", all, failed)
		}
	}
	return all
}

const maxShown = 200 // maximum length of file content in an error, in bytes

// shown returns the message of an age error, escaped and shortened, because it contains pieces of
// the file.
func shown(err error) string { return outside.Line(err.Error(), maxShown) }

// describe returns a clause about the types of a file's recipients, for an error message.
func describe(types []string) string {
	types = slices.Compact(slices.Sorted(slices.Values(types)))
	if slices.Equal(types, []string{"X25519"}) {
		return "none of them matches a recipient"
	}
	const most = 5
	return "it is encrypted for recipients of type " + syntax.List(types, most, func(t string) string { return outside.Quoted(t, maxShown) })
}

// Seal seals plain for all recipients.
func Seal(ctx context.Context, plain []byte, recipients ...age.Recipient) ([]byte, error) {
	bound, _ := inContext(ctx, recipients)
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, bound...)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*ageplugin.Error](err); ok {
		return nil, failed
	}
	if err != nil {
		return nil, errors.New(shown(err))
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return sealed.Bytes(), nil
}
