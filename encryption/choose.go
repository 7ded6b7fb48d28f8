package encryption

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/mark"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

type candidate struct {
	method
	broken     error // why the method cannot be built; nil if it can
	primary    bool
	whole      bool // whether the method gets the whole file instead of the envelope's data
	recognizes bool // whether the file is in the method's own format
}

// candidate returns the method at address, and how it relates to the file. Env is nil if the file
// is not an envelope. If the data in an envelope is in the method's own format, the method gets
// that data instead of the whole file. OpenTofu writes such an envelope when it runs a program as
// the method.
func (e *Encryption) candidate(address string, file []byte, env *envelope) candidate {
	m, err := e.methods[address]()
	inside := env != nil && recognizesExactly(m.kind, env.start())
	return candidate{
		method: m, broken: err, whole: m.opensFiles() && !inside,
		recognizes: err == nil && m.kind.OwnFormat != nil && m.kind.OwnFormat(file),
	}
}

// recognizesExactly reports whether a kind recognizes the file as its own format. It returns false
// for a kind that also recognizes other formats.
func recognizesExactly(kind driver.Block[driver.Method], file []byte) bool {
	return kind.OwnFormat != nil && !kind.Vague && kind.OwnFormat(file)
}

// choose returns the selected methods that may open the file, in the order in which to try them.
// Env is nil if the file is not an envelope, or is a damaged one.
func (t Target) choose(kind FileKind, file []byte, env *envelope) []candidate {
	if kind == KindEmpty || kind == KindBackendRecord {
		return nil
	}
	var chosen []candidate
	recognized := false
	for i, address := range t.methods {
		if slices.Contains(t.methods[:i], address) { // a second try would fail in the same way
			continue
		}
		c := t.encryption.candidate(address, file, env)
		c.primary = i == 0
		recognized = recognized || c.recognizes
		if c.broken != nil { // settings matter only for a file that the method might open
			if format := t.encryption.format(file); format != "" && format != c.kind.Name {
				continue
			}
		}
		if c.suits(kind, env) {
			chosen = append(chosen, c)
		}
	}
	if recognized && kind == KindState {
		// A state encrypted by sops still looks like a plaintext state, so the unencrypted method
		// must not return it.
		chosen = slices.DeleteFunc(chosen, func(c candidate) bool { return c.plaintext })
	}
	return chosen
}

func (c candidate) suits(kind FileKind, env *envelope) bool {
	switch {
	case c.plaintext:
		return kind.isPlain()
	case c.broken != nil:
		return !kind.isPlain() // an attempt reports why the method cannot be built
	case c.whole:
		return c.recognizes
	}
	return env != nil
}

// recognizing returns the address of the first configured method that recognizes the file as its
// own format, or "" if there is none.
func (e *Encryption) recognizing(file []byte) string {
	return first(addresses(e.config.Methods), func(address string) bool { return e.candidate(address, file, nil).recognizes })
}

const isRecordOfBackend = "it is the backend record from .terraform"

// refuse returns the error for a file that no selected method can open.
func (t Target) refuse(kind FileKind, file []byte, env *envelope) error {
	switch kind {
	case KindEmpty:
		return fault.With(because(ErrDamaged, isEmpty),
			"fetch it again, or restore a copy. If a server sent it, check the address")
	case KindBackendRecord:
		return fault.With(because(ErrBackendRecord, "the file is not a state: %s", isRecordOfBackend), "read the state from the backend "+
			"that this record names")
	}
	selected := ""
	if len(t.methods) > 0 {
		selected = ", only " + strings.Join(t.methods, ", ")
	}
	format := t.encryption.format(file)
	if format == "" && env != nil {
		format = t.encryption.format(env.start())
	}
	if format != "" {
		return t.encryptedError(format, nil, fmt.Errorf("the file is encrypted with %s, but no %[1]s method is selected%s", format, selected))
	}
	switch kind {
	case KindEncrypted:
		return t.encryptedError("", env, fmt.Errorf("the file is encrypted%s, but %s", env.names(), t.encryption.unselected(selected)))
	case KindState, KindPlan:
		if err := t.expectKind(kind); err != nil {
			return err
		}
		among := ", but no method is selected"
		if selected != "" {
			among = ", but no selected method reads plaintext (selected: " + strings.Join(t.methods, ", ") + ")"
		}
		err := because(ErrPlaintext, "the file is a %s%s", kind, among)
		if t.enforced {
			err = fault.With(because(ErrPlaintext, "%w, and enforced = true forbids plaintext", err),
				"check that this is the right file, or encrypt it")
		} else {
			err = fault.With(err, "if the file is meant to be plaintext, set the method or a fallback to \"unencrypted\". Otherwise, "+
				"check that this is the right file")
		}
		return fault.Known(err, fault.Plaintext{Plan: kind == KindPlan})
	}
	if address := t.encryption.recognizing(file); address != "" {
		return because(ErrNotConfigured, "%s, but the method %s may open it; select that method", neither, address)
	}
	return unreadable(file)
}

// encryptedError returns an error that wraps [ErrNotConfigured] and lists the configured methods
// and key providers that may open the file. Env is nil if the file is in another format, or if it
// is to be sealed.
func (t Target) encryptedError(format string, env *envelope, text error) error {
	found := fault.NoMethod{
		Format: format, Methods: t.encryption.methodsFor(format), Plan: t.kind == KindPlan, Selected: t.Methods(), In: t.name,
		KeyProviders: addresses(t.encryption.config.KeyProviders),
	}
	if named, ok := t.encryption.methods[format]; ok {
		_, err := named()
		found.ByKind = err == nil
	}
	if env != nil {
		found.StoredKind = env.storedKind()
		stores := func(address string) int { return env.stores(t.encryption.storesAs(address)) }
		slices.SortStableFunc(found.KeyProviders, func(a, b string) int { return stores(b) - stores(a) })
	}
	return fault.Known(&reasonError{text, ErrNotConfigured}, found)
}

// unselected returns the part of an error message that says whether methods for encrypted data are
// not configured, or only not selected.
func (e *Encryption) unselected(selected string) string {
	switch {
	case len(e.methodsFor("")) == 0:
		return "no method for encrypted data is configured" + selected
	case selected == "":
		return "no method is selected"
	}
	return "no method for encrypted data is selected" + selected
}

// format returns the kind of method that recognizes the file as its own format, or "" if there is
// none.
func (e *Encryption) format(file []byte) string {
	return first(slices.Sorted(maps.Keys(e.kinds)), func(name string) bool { return recognizesExactly(e.kinds[name], file) })
}

// methodsFor returns the addresses of the configured methods for files in the given format. The
// format is the name of a method kind, or "" for OpenTofu's envelope.
func (e *Encryption) methodsFor(format string) []string {
	return slices.DeleteFunc(addresses(e.config.Methods), func(address string) bool {
		return e.config.Methods[address].Kind != format && (format != "" || e.methodAt(address).opensFiles())
	})
}

// refuseInside returns the error for decrypted data that is not plaintext. The method that
// decrypted the data has no "then" argument.
func (t Target) refuseInside(kind FileKind, content []byte) error {
	if kind == KindEncrypted {
		return fault.With(because(ErrNotConfigured, "the decrypted data is an OpenTofu envelope: the file was encrypted twice"),
			"add the argument then with the address of the method for the inner envelope")
	}
	if address := t.encryption.recognizing(content); address != "" {
		return fault.With(because(ErrNotConfigured, "the decrypted data is not a state"), fmt.Sprintf("if the file was encrypted "+
			"twice, and %s is the method for the inner layer, add then = %[1]q to the outer method", address))
	}
	return notOurs()
}

// names returns the first few names in the metadata for an error message, with a space before them
// and in parentheses. It returns "" if the metadata has no names.
func (env *envelope) names() string {
	if len(env.Meta) == 0 {
		return ""
	}
	const most = 5
	return " (its metadata names " + syntax.List(slices.Sorted(maps.Keys(env.Meta)), most, quoted) + ")"
}

// stores returns 1 if the metadata has an entry with this name, or 0 if it has none.
func (env *envelope) stores(name string) int {
	if _, stored := env.Meta[name]; stored {
		return 1
	}
	return 0
}

// kindAge is the kind of the age key provider, which OpenTofu runs as an external program. Its
// metadata contains a mark, so storedKind recognizes it under any name.
const kindAge = "age"

// storedKind returns the kind of the only key provider that stored metadata. It finds the kind if
// the metadata is stored under the key provider's address, or contains the mark of [kindAge].
// Otherwise, it returns "".
func (env *envelope) storedKind() string {
	for name, stored := range env.Meta {
		switch {
		case len(env.Meta) > 1:
		case mark.IsOfAge(stored):
			return kindAge
		case syntax.IsKeyProviderAddress(name):
			return strings.Split(name, ".")[1]
		}
	}
	return ""
}
