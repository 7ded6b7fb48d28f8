package encryption

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// withHints adds to the error of a method that had no key what the likely mistakes are:
// it is the key of another key provider, or a passphrase has something around it, or is
// the path of a file, or TF_ENCRYPTION replaces the right one.
func (t Target) withHints(err error, c candidate, env *envelope) error {
	if !errors.Is(err, ErrNoKey) {
		return err
	}
	e := t.encryption
	for _, hint := range e.oddities(c, oddity) {
		err = fmt.Errorf("%w; the %s", err, hint)
	}
	if again := slices.DeleteFunc(t.Methods(), func(m string) bool { return m != c.address }); len(again) > 1 {
		err = fmt.Errorf("%w; it is listed more than once, and a fallback must be another method", err)
	}
	if t.pos.File == "TF_ENCRYPTION" && e.isLayered() {
		err = fmt.Errorf("%w; the method was chosen by TF_ENCRYPTION, which is merged over the other settings", err)
	}
	if env == nil {
		return err
	}
	nothing := errors.Is(err, errNothingStored)
	switch empty := len(env.Meta) == 0; {
	case empty && nothing:
		return fmt.Errorf("%w, nor of any other: it was encrypted with a key as it is, as static has it, or it "+
			"is damaged; then restore an intact copy", err)
	case !empty && !e.belongs(env):
		return e.notOurs(err, env)
	case !empty && nothing && e.other(env) != "":
		return fmt.Errorf("%w; the file was encrypted with %s, which is configured: select a method that has its key", err, e.other(env))
	case !empty && nothing:
		return fmt.Errorf("%w; if it was encrypted under another name, set encrypted_metadata_alias%s", err, env.describeKeys())
	}
	return err
}

func (e *Encryption) notOurs(err error, env *envelope) error {
	add := "add it"
	if env.storedKind() == kindAge {
		add = "it is one of age: add a key provider of the kind age, with the file of your identity"
	}
	return fmt.Errorf("%w; the settings lack the key provider that the file was encrypted with%s; %s", err, env.describeKeys(), add)
}

// other is a configured key provider that stored something in the file, "" if there is none.
func (e *Encryption) other(env *envelope) string {
	for _, address := range slices.Sorted(maps.Keys(e.config.KeyProviders)) {
		if env.stores(metadataKey(e.config.KeyProviders[address], e.keyKinds)) > 0 {
			return address
		}
	}
	return ""
}

// belongs reports whether a configured key provider may have stored something in the
// file.
func (e *Encryption) belongs(env *envelope) bool {
	for name, doc := range env.Meta {
		if e.claimed(name) {
			return true
		}
		for address := range e.config.KeyProviders {
			provider, err := e.keyProvider(address)
			if r, ok := provider.KeyProvider.(Recognizer); err != nil || ok && r.Recognizes(doc) {
				return true
			}
		}
	}
	return false
}

// Doubts says what is probably not meant in the key that is sealed with: a passphrase with
// something around it, the path of a file, or another value of TF_ENCRYPTION. What is
// sealed opens only with the same. It is for whoever seals something for the first time.
func (t Target) Doubts() []string {
	if len(t.methods) == 0 {
		return nil
	}
	return t.encryption.oddities(t.encryption.candidate(t.methods[0], nil, nil), sureOddity)
}

// oddities describes the settings of a method, and of the key providers that it builds
// on, that are probably not what was meant.
func (e *Encryption) oddities(c candidate, oddity func(name, text string) string) (hints []string) {
	entries := []*attr.Entry{e.config.Methods[c.address]}
	addresses := slices.Clone(c.references)
	for i := 0; i < len(addresses); i++ {
		entries = append(entries, e.config.KeyProviders[addresses[i]])
		provider, _ := e.keyProvider(addresses[i]) // nothing was asked that cannot be built
		for _, upstream := range provider.references {
			if !slices.Contains(addresses, upstream) {
				addresses = append(addresses, upstream)
			}
		}
	}
	noEntry := func(e *attr.Entry) bool { return e == nil } // a kind without settings, or a literal key
	for _, entry := range slices.DeleteFunc(entries, noEntry) {
		for _, name := range slices.Sorted(maps.Keys(entry.Settings)) {
			if odd := oddity(name, textOf(entry.Settings[name].Value)); odd != "" {
				hints = append(hints, fmt.Sprintf("%s of %s %s", name, entry.Address, odd))
			}
			if s := entry.Settings[name]; s.Replaces && s.FromEnvironment {
				hints = append(hints, fmt.Sprintf("%s of %s is that of TF_ENCRYPTION, which is merged over the other settings", name, entry.Address))
			}
		}
	}
	return hints
}

// isLayered reports whether something is set elsewhere than in TF_ENCRYPTION.
func (e *Encryption) isLayered() bool {
	for _, entry := range e.config.Methods {
		for _, s := range entry.Settings {
			if !s.FromEnvironment {
				return true
			}
		}
	}
	return false
}

// oddity says what is odd about a setting, or that a passphrase is something else that
// leads to it. It is "" for nothing.
func oddity(name, text string) string {
	odd, _ := syntax.Oddity(text)
	switch {
	case name != "passphrase":
		return odd
	case isPath(text) || keyfile.Exists(text):
		return "looks like the path of a file: file(…) reads what is in it"
	case odd != "":
		return odd
	case strings.Contains(text, "://"), strings.HasPrefix(text, "arn:"):
		return "looks like the address of a secret, and nothing here looks up what is there"
	case text != "" && strings.Trim(text, "*") == "":
		return "is nothing but asterisks, which logs show in place of a secret"
	case isText(text):
		return "is text in base64, as Kubernetes keeps it: base64decode(…) gives the text"
	}
	return ""
}

// isText reports whether a passphrase is text in base64. Random bytes in base64, which
// are a good passphrase, hardly ever are.
func isText(passphrase string) bool {
	decoded, err := base64.StdEncoding.DecodeString(passphrase)
	isControl := func(r rune) bool { return r < ' ' && r != '\n' }
	return err == nil && len(decoded) >= 12 && utf8.Valid(decoded) && !bytes.ContainsFunc(decoded, isControl)
}

// sureOddity is about passphrases alone: no other text gives a key whatever it is. It
// leaves out what one may be by chance.
func sureOddity(name, text string) string {
	odd, sure := syntax.Oddity(text)
	switch {
	case name != "passphrase":
	case keyfile.Exists(strings.TrimPrefix(text, "@")):
		return "is the path of a file: file(…) reads what is in it"
	case sure:
		return odd
	}
	return ""
}

// textOf is the text of a setting, "" for what is none.
func textOf(v cty.Value) string {
	v, _ = v.Unmark()
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return ""
	}
	return v.AsString()
}

func isPath(text string) bool {
	return slices.ContainsFunc([]string{"/", "~/", "./"}, func(start string) bool { return strings.HasPrefix(text, start) })
}
