package encryption

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// refuse explains why none of the methods is for this kind of file.
func (t Target) refuse(kind FileKind, file []byte, env *envelope) error {
	switch kind {
	case Empty:
		return because(ErrDamaged, "the file is empty; Terraform and OpenTofu never leave an empty state behind, so something cut it off")
	case BackendRecord:
		return errors.New("the file is not a state: it is the record of a backend that Terraform and OpenTofu keep in .terraform, " +
			"and the state is where that backend keeps it")
	}
	selected := ""
	if len(t.methods) > 0 {
		selected = " (only " + strings.Join(t.methods, ", ") + ")"
	}
	if format := t.encryption.format(file); format != "" {
		return because(ErrNotConfigured, "the file is encrypted by %s, and no %[1]s method is selected%s; %s", format, selected,
			t.selectKind(format))
	}
	switch kind {
	case Encrypted:
		return because(ErrNotConfigured, "the file is encrypted%s, and %s%s", env.describeKeys(), t.encryption.unselected(selected), t.advise())
	case State, Plan:
		return because(ErrPlaintext, "the file is a %s; plaintext is read only if the method or a fallback is %q%s",
			kind, attr.Unencrypted, cmp.Or(selected, ", and no method is selected"))
	}
	const neither = "the file is neither an encrypted state nor a plaintext one"
	if address := t.encryption.recognizing(file); address != "" {
		return because(ErrNotConfigured, "%s; %s may be the method for it, and it is not selected%s", neither, address, selected)
	}
	if err := json.Unmarshal(file, &struct{}{}); err != nil {
		return because(ErrDamaged, "%s: %w", neither, describeJSON(err))
	}
	return because(ErrDamaged, neither)
}

// format returns the kind of method whose format the file has, or "".
func (e *Encryption) format(file []byte) string {
	for _, name := range slices.Sorted(maps.Keys(e.kinds)) {
		if recognizes := e.kinds[name].Recognizes; recognizes != nil && recognizes(file) {
			return name
		}
	}
	return ""
}

func (t Target) selectKind(kind string) string {
	e := t.encryption
	if there := configured(e.config.Methods, kind); len(there) > 0 {
		return t.selectOne(there)
	}
	if !e.config.Provider {
		return fmt.Sprintf("add method %q \"main\" { … } and %s { method = method.%[1]s.main }", kind, t.block())
	}
	if m, ok := e.methods[kind]; ok {
		if _, err := m(); err == nil {
			return fmt.Sprintf("set method = %q on the data source; if it requires settings, add method { %s { … } } to the "+
				"provider block and set method = \"method.%[2]s.main\"", kind, kind)
		}
	}
	return fmt.Sprintf("add method { %s { … } } to the provider block, and set method = \"method.%[1]s.main\" on the data source", kind)
}

func (t Target) selectOne(methods []string) string {
	lines := make([]string, len(methods))
	for i, address := range methods {
		if lines[i] = fmt.Sprintf("default { method = %q }", address); t.encryption.isText(t.encryption.config.Methods[address]) {
			lines[i] = fmt.Sprintf("%s { method = %s }", t.block(), address)
		}
	}
	return "add " + strings.Join(lines, " or ")
}

// isText reports whether users write the entry in OpenTofu's text, and not in a
// block of the provider.
func (e *Encryption) isText(entry *attr.Entry) bool { return !e.config.Provider || entry.Pos.Line > 0 }

func (t Target) block() string {
	if t.kind == Plan {
		return "plan"
	}
	return "state"
}

// unselected says what is there for encrypted data.
func (e *Encryption) unselected(selected string) string {
	switch {
	case len(e.forEnvelopes()) == 0:
		return "no method for encrypted data is configured" + selected
	case selected == "":
		return "no method is selected"
	}
	return "no method for encrypted data is selected" + selected
}

func (t Target) advise() string {
	e := t.encryption
	methods, keys := e.forEnvelopes(), addresses(e.config.KeyProviders)
	switch {
	case len(methods) > 0:
		return "; " + t.selectOne(methods)
	case len(keys) == 0 && e.config.Provider:
		return "; add its key provider, such as key_provider { pbkdf2 { passphrase = … } }"
	case len(keys) == 0 && !e.strict && e.config.LookupEnv != nil:
		return "; set TF_ENCRYPTION to the settings that it was encrypted with"
	case len(keys) == 0:
		return fmt.Sprintf("; add its key provider, such as key_provider \"pbkdf2\" \"main\" { … }, a method with its key, and "+
			"%s { method = … }", t.block())
	case e.isText(e.config.KeyProviders[keys[0]]):
		return fmt.Sprintf("; add method \"aes_gcm\" \"main\" { keys = %s } and %s { method = method.aes_gcm.main }", keys[0], t.block())
	}
	advice := fmt.Sprintf("; add method { aes_gcm { keys = %q } } to the provider block", keys[0])
	for _, other := range keys[1:] {
		advice += fmt.Sprintf(", or one with keys = %q", other)
	}
	return advice
}

// forEnvelopes returns the configured methods for the data of an envelope.
func (e *Encryption) forEnvelopes() []string {
	return slices.DeleteFunc(addresses(e.config.Methods), func(address string) bool { return e.candidate(address, nil).whole })
}

// refuseInside says what to do about content that is no plaintext, where then
// is not set.
func (t Target) refuseInside(kind FileKind, content []byte) error {
	if kind == Encrypted {
		return because(ErrNotConfigured, "it decrypted an OpenTofu envelope: the file was encrypted twice; "+
			`add then = "method.…" to it, with the address of the method for the envelope`)
	}
	if address := t.encryption.recognizing(content); address != "" {
		return because(ErrNotConfigured, "what it decrypted is not a state; if the file was encrypted twice, "+
			"and %s is the method for what is inside, add then = %[1]q to it", address)
	}
	return because(ErrDamaged, "what it decrypted is not a state and not a plan")
}

func (env *envelope) describeKeys() string {
	names := slices.Sorted(maps.Keys(env.Meta))
	if len(names) == 0 {
		return ""
	}
	if len(names) > 5 {
		names = append(names[:5], "…")
	}
	for i, n := range names {
		names[i] = quoted(n)
	}
	return " (its metadata names " + strings.Join(names, ", ") + ")"
}
