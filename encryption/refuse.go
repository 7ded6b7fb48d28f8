package encryption

import (
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
	inEffect := ""
	if len(t.methods) > 0 {
		inEffect = " (only " + strings.Join(t.methods, ", ") + ")"
	}
	switch kind {
	case Encrypted:
		return fmt.Errorf("the file is encrypted%s, and no method for encrypted data is in effect%s; "+
			"configure its key provider and a method", env.describeKeys(), inEffect)
	case State, Plan:
		if inEffect == "" {
			inEffect = ", and no method is in effect"
		}
		return fmt.Errorf("the file is a %s; plaintext is read only where the method or a fallback is %q%s", kind, attr.Unencrypted, inEffect)
	}
	const neither = "the file is neither an encrypted state nor a plaintext one"
	if address := t.encryption.recognizing(file); address != "" {
		return fmt.Errorf("%s; %s may be the method for it, and it is not in effect%s", neither, address, inEffect)
	}
	if err := json.Unmarshal(file, &struct{}{}); err != nil {
		return fmt.Errorf("%s: %w", neither, describeJSON(err))
	}
	return errors.New(neither)
}

// refuseInside says what to do about content that is no plaintext, where then
// is not set.
func (t Target) refuseInside(kind FileKind, content []byte) error {
	if kind == Encrypted {
		return errors.New("it decrypted an OpenTofu envelope: the file was encrypted twice; " +
			`add then = "method.…" to it, with the address of the method for the envelope`)
	}
	if address := t.encryption.recognizing(content); address != "" {
		return fmt.Errorf("what it decrypted is not a state; if the file was encrypted twice, "+
			"and %s is the method for what is inside, add then = %[1]q to it", address)
	}
	return errors.New("what it decrypted is not a state and not a plan")
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
