package encryption

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// withHints adds to the error of a method that had no key what the likely mistakes are:
// it is the key of another key provider, or a passphrase has something around it, or is
// the path of a file, or TF_ENCRYPTION replaces the right one.
func (t Target) withHints(err error, c candidate, env *envelope) error {
	e := t.encryption
	if err = e.withOddities(err, c); !errors.Is(err, ErrNoKey) {
		isMissing := func(address string) bool { return e.keyProviders[address] == nil }
		if env != nil && len(env.Meta) > 0 && slices.ContainsFunc(c.references, isMissing) && !e.belongs(env) {
			return e.notOurs(err, env)
		}
		return err
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
	case !empty && !nothing && e.partly(env) != "":
		return fmt.Errorf("%w; its metadata also names %s, which the settings lack: if the key was made with a chain, add that key provider "+
			"and set chain", err, quoted(e.partly(env)))
	case !empty && !nothing && t.untried() != "":
		return fmt.Errorf("%w; %s is configured as well, and no selected method uses it", err, t.untried())
	case !empty && nothing && t.uses(e.other(env)):
		return fmt.Errorf("%w; the file was encrypted with %s, and the key that has this name now may be another: give the old key its old name "+
			"back, or set encrypted_metadata_alias = %[2]q beside it", err, e.other(env))
	case !empty && nothing && e.other(env) != "":
		return fmt.Errorf("%w; the file was encrypted with %s, which is configured: let keys of a method name it, and select that method", err,
			e.other(env))
	case !empty && nothing:
		return fmt.Errorf("%w; if it was encrypted under another name, set encrypted_metadata_alias%s", err, env.describeKeys())
	}
	return err
}

func (e *Encryption) notOurs(err error, env *envelope) error {
	add := "add it"
	if env.storedKind() == kindAge {
		add = "it is one of age: add a key provider of the kind age, with identity_files, and let keys of the method name it"
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

// partly is what the metadata names beside a configured key provider, "" for nothing.
func (e *Encryption) partly(env *envelope) string {
	names := slices.Sorted(maps.Keys(env.Meta))
	if !slices.ContainsFunc(names, e.claimed) {
		return ""
	}
	for _, name := range names {
		if !e.claimed(name) {
			return name
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

// uses reports whether a selected method builds on a key provider.
func (t Target) uses(address string) bool {
	return slices.ContainsFunc(t.methods, func(m string) bool {
		return address != "" && slices.Contains(t.encryption.candidate(m, nil, nil).references, address)
	})
}

// untried is a configured key provider that no selected method builds on, "" if there is
// none.
func (t Target) untried() string {
	var used []string
	for _, m := range t.methods {
		used = append(used, t.encryption.candidate(m, nil, nil).references...)
	}
	used = t.encryption.withUpstream(used)
	for _, address := range slices.Sorted(maps.Keys(t.encryption.config.KeyProviders)) {
		if !slices.Contains(used, address) {
			return address
		}
	}
	return ""
}

// withUpstream adds to key providers those that they build on.
func (e *Encryption) withUpstream(addresses []string) []string {
	addresses = slices.Clone(addresses)
	for i := 0; i < len(addresses); i++ {
		provider, _ := e.keyProvider(addresses[i]) // nothing was asked that cannot be built
		for _, upstream := range provider.references {
			if !slices.Contains(addresses, upstream) {
				addresses = append(addresses, upstream)
			}
		}
	}
	return addresses
}

// entries are those of a method and of the key providers that it builds on.
func (e *Encryption) entries(c candidate) []*attr.Entry {
	entries := []*attr.Entry{e.config.Methods[c.address]}
	for _, address := range e.withUpstream(c.references) {
		entries = append(entries, e.config.KeyProviders[address])
	}
	noEntry := func(e *attr.Entry) bool { return e == nil } // a kind without settings, or a literal key
	return slices.DeleteFunc(entries, noEntry)
}

// Doubts says what is probably not meant in the key that is sealed with: a passphrase with
// something around it, or another value of TF_ENCRYPTION. What is sealed opens only with
// the same. It is for whoever seals something for the first time. What is no passphrase at
// all is not doubted: [Target.Encrypt] refuses it.
func (t Target) Doubts() []string {
	if len(t.methods) == 0 {
		return nil
	}
	var doubts []string
	for _, hint := range t.encryption.oddities(t.encryption.candidate(t.methods[0], nil, nil), sureOddity) {
		doubts = append(doubts, hint.subject+" "+hint.odd)
	}
	return doubts
}

// hint says what is odd about a setting.
type hint struct{ subject, odd string }

// oddities describes the settings of a method, and of the key providers that it builds
// on, that are probably not what was meant.
func (e *Encryption) oddities(c candidate, oddities func(name string, v cty.Value) []string) (hints []hint) {
	for _, entry := range e.entries(c) {
		for _, name := range slices.Sorted(maps.Keys(entry.Settings)) {
			subject := name + " of " + entry.Address
			for _, odd := range oddities(name, entry.Settings[name].Value) {
				hints = append(hints, hint{subject, odd})
			}
			if s := entry.Settings[name]; s.Replaces && s.FromEnvironment {
				hints = append(hints, hint{subject, "is that of TF_ENCRYPTION, which is merged over the other settings; unset it " +
					"if it is meant for another file"})
			}
		}
	}
	return hints
}

// withOddities adds to the error of a method what is odd about the settings that it
// builds on.
func (e *Encryption) withOddities(err error, c candidate) error {
	for _, hint := range e.oddities(c, oddities) {
		err = syntax.Hinted(err, "the "+hint.subject, hint.odd)
	}
	return err
}

// ofEntry adds to the error of an entry that cannot be built what is odd about its
// settings.
func ofEntry(err error, entry *attr.Entry) error {
	if err == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(entry.Settings)) {
		for _, odd := range oddities(name, entry.Settings[name].Value) {
			err = syntax.Hinted(err, name, odd)
		}
	}
	return err
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

// oddities says what is odd about a setting, or that a passphrase is something else that
// leads to it.
func oddities(name string, v cty.Value) []string {
	odd := syntax.Oddities(v)
	if odd := keyfile.OddToken(textOf(v)); name == "token" && odd != "" {
		return []string{odd}
	}
	if text := textOf(v); name == "passphrase" {
		if what := ofPassphrase(text, odd); what != "" {
			return []string{what}
		}
	}
	return odd
}

func ofPassphrase(text string, odd []string) string {
	switch {
	case isPath(text) || keyfile.Exists(text):
		return looksLikePath
	case len(odd) > 0:
		return odd[0]
	case isNoSecret(text) != "":
		return isNoSecret(text)
	case isWrapped(text) != "":
		return isWrapped(text)
	case strings.Contains(strings.TrimSpace(text), "\n"):
		return "has several lines; check that nothing but the passphrase is in it"
	case isText(text):
		return "is text in base64, as Kubernetes keeps it: base64decode(…) gives the text"
	case !strings.Contains(text, " ") && percentEncoded.MatchString(text):
		return "has codes such as %20 in it, as addresses have for a space; write the characters themselves"
	case strings.ContainsAny(text, "\u2013\u2014\u00a0\u201c\u201d\u2018\u2019\u201e"):
		return "has a dash, a space or a quotation mark in it as word processors write it; type it anew"
	case hexKey.MatchString(text):
		return "has 64 hexadecimal digits, as a key has, and a key belongs in key_provider \"static\""
	}
	return ""
}

const looksLikePath = "looks like the path of a file: file(…) reads what is in it"

// surelyPath is a path that no passphrase is by chance, also of a file that is elsewhere.
var surelyPath = lazyregexp.New(`^(/(run|etc|var|home|root|tmp|opt|usr|mnt|srv|secrets|vault)/|~/|\./)[\w./-]+$`)

var percentEncoded = lazyregexp.New(`%[2-7][0-9A-F]`)

var hexKey = lazyregexp.New(`^[0-9a-f]{64}$`)

// isNoSecret says what a text is that holds no secret at all, although it is in the place
// of a passphrase: everybody may know it. It is "" for another text.
func isNoSecret(text string) string {
	switch {
	case secretAddress.MatchString(text):
		return "looks like a reference to a secret of another system, which is not looked up here; set the secret itself"
	case programError.MatchString(text):
		return "is what a program printed when it failed; set the secret itself"
	case keyfile.Exists(strings.TrimPrefix(text, "@")):
		return "is the path of a file: file(…) reads what is in it"
	case sentence.MatchString(text):
		return "" // it may be one that somebody chose, such as "your secret is safe with me"
	}
	return syntax.InPlaceOf(text)
}

// isWrapped says what a text is that has a passphrase in it, "" if it may be one.
func isWrapped(text string) string {
	switch {
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		return "is JSON, as stores of secrets keep it: jsondecode(…) and the name of a member give the text"
	case assigned.MatchString(text):
		return "is a line NAME = VALUE, and the value alone is required"
	}
	return ""
}

var (
	secretAddress = lazyregexp.New(`^([a-z][a-z0-9+.-]*://|arn:aws|vault:[\w/-]+#|projects/[^/]+/secrets/)`)
	assigned      = lazyregexp.New(`^(export )?([A-Za-z_]\w* ?= ?(".*"|'.*')|[A-Z][A-Z0-9]*_[A-Z0-9_]*=.*)$`)
	sentence      = lazyregexp.New(`^\w+( [\w,'-]+){3,}$`)
	programError  = lazyregexp.New(`(?i)^(an error occurred|error: |fatal: |permission denied|access denied|unauthorized)`)
)

// isText reports whether a passphrase is text in base64. Random bytes in base64, which
// are a good passphrase, hardly ever are.
func isText(passphrase string) bool {
	decoded, err := base64.StdEncoding.DecodeString(passphrase)
	isControl := func(r rune) bool { return r < ' ' && r != '\n' }
	return err == nil && len(decoded) >= 12 && utf8.Valid(decoded) && !bytes.ContainsFunc(decoded, isControl)
}

// sureOddity is about passphrases alone: no other text gives a key whatever it is. It
// leaves out what one may be by chance, and what [Encryption.protects] refuses.
func sureOddity(name string, v cty.Value) []string {
	text := textOf(v)
	odd, sure := syntax.Oddity(text)
	switch {
	case name != "passphrase" || isNoSecret(text) != "":
	case sure:
		return []string{odd}
	case isWrapped(text) != "":
		return []string{isWrapped(text)}
	case surelyPath.MatchString(text):
		return []string{looksLikePath}
	}
	return nil
}

// protects returns an error if a method would seal with a passphrase that is no secret.
func (e *Encryption) protects(c candidate) error {
	for _, entry := range e.entries(c) {
		if odd := isNoSecret(textOf(entry.Settings["passphrase"].Value)); odd != "" {
			return fmt.Errorf("passphrase of %s %s. It is no secret, so nothing is encrypted with it: set the passphrase itself. If something was "+
				"encrypted with this one before, keep it in a key provider of its own, whose method is the fallback", entry.Address, odd)
		}
	}
	return nil
}

// textOf is the text of a setting, "" for what is none.
func textOf(v cty.Value) string {
	if v == cty.NilVal {
		return ""
	}
	v, _ = v.Unmark()
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return ""
	}
	return v.AsString()
}

func isPath(text string) bool {
	return slices.ContainsFunc([]string{"/", "~/", "./"}, func(start string) bool { return strings.HasPrefix(text, start) })
}
