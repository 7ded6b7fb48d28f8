package encryption

import (
	"context"
	"errors"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// Target is a list of methods for one kind of data: the primary, then the
// fallbacks.
type Target struct {
	encryption *Encryption
	name       string // for errors; "" when the caller chose the methods
	methods    []string
	enforced   bool
	pos        attr.Pos
}

// Enforce returns the target with unencrypted data refused.
func (t Target) Enforce() Target {
	t.enforced = true
	return t
}

// Enforced reports whether unencrypted data is refused.
func (t Target) Enforced() bool { return t.enforced }

// Methods returns the addresses of the target's methods, the primary first.
func (t Target) Methods() []string { return slices.Clone(t.methods) }

// Opened is a file that was opened.
type Opened struct {
	Data         []byte
	Encrypted    bool      // false when the file was plaintext
	Method       string    // address of the method that opened it; if that has then, the outermost one
	UsedFallback bool      // Method is not the primary
	Attempts     []Attempt // methods that were tried before and had no key
	Warnings     []string  // of the methods that opened it, see [Warner]
}

// Decrypt opens a file with the first method that has a key for it. It
// consumes file: pass a clone to keep it. An error is an [*Error].
func (t Target) Decrypt(ctx context.Context, file []byte) (*Opened, error) {
	if err := t.check(); err != nil {
		return nil, &Error{Step: StepConfiguration, Err: err}
	}
	kind, env, damage := identify(file)
	if kind == Empty {
		return nil, &Error{Step: StepEnvelope, Err: errEmpty}
	}
	// A document of another format may look like a damaged envelope, so damage
	// matters only if no method recognizes the file.
	candidates := t.choose(kind, file, env)
	switch {
	case len(candidates) == 0 && damage != nil:
		return nil, &Error{Step: StepEnvelope, Err: damage}
	case len(candidates) == 0:
		return nil, &Error{Step: StepEnvelope, Err: t.refuse(kind, file, env)}
	}
	return t.try(ctx, candidates, file, env)
}

var errEmpty = errors.New("the file is empty; Terraform and OpenTofu never leave an empty state behind, so something cut it off")

// Encrypt seals plaintext with the target's primary method: a state or a plan,
// in OpenTofu's envelope, as OpenTofu writes it. An error is an [*Error].
func (t Target) Encrypt(ctx context.Context, plain []byte) ([]byte, error) {
	return t.AppendEncrypt(ctx, nil, plain)
}
