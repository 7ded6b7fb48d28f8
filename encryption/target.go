package encryption

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

// Target is a list of methods at work on one kind of data: the primary, then
// the fallbacks.
type Target struct {
	encryption *Encryption
	name       string // for errors; "" when the caller chose the methods
	methods    []string
	enforced   bool
	pos        config.Pos
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
	Method       string    // address of the method that opened it
	UsedFallback bool      // Method is not the primary
	Attempts     []Attempt // methods that were tried before and had no key
}

// Attempt is a method that did not open a file.
type Attempt struct {
	Method string // address
	Err    error
}

// Step is where opening a file failed.
type Step string

// The steps of opening a file, in order.
const (
	StepConfiguration Step = "configuration"
	StepEnvelope      Step = "envelope"
	StepKey           Step = "key"
	StepDecrypt       Step = "decrypt"
)

// Error says at which step opening a file failed, and what was tried before.
// Its text holds no plaintext and no key.
type Error struct {
	Step     Step
	Attempts []Attempt // every method that was tried, in order
	Err      error
}

func (e *Error) Error() string {
	if len(e.Attempts) == 0 {
		return e.Err.Error()
	}
	var b strings.Builder
	b.WriteString(e.Err.Error())
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "\n  - %s: %v", a.Method, a.Err)
	}
	return b.String()
}

// Unwrap returns the reason and those of all attempts.
func (e *Error) Unwrap() []error {
	errs := []error{e.Err}
	for _, a := range e.Attempts {
		errs = append(errs, a.Err)
	}
	return errs
}

// Decrypt opens a file with the first method that has a key for it. It
// consumes file: pass a clone to keep it. An error is an [*Error].
func (t Target) Decrypt(ctx context.Context, file []byte) (*Opened, error) {
	if err := t.check(); err != nil {
		return nil, &Error{Step: StepConfiguration, Err: err}
	}
	kind, env, err := identify(file)
	if err != nil {
		return nil, &Error{Step: StepEnvelope, Err: err}
	}
	if kind == Empty {
		return nil, &Error{Step: StepEnvelope, Err: errors.New("the file is empty; Terraform and OpenTofu never leave an empty state behind, so something cut it off")}
	}
	candidates := t.candidates(kind, file)
	if len(candidates) == 0 {
		return nil, &Error{Step: StepEnvelope, Err: t.refuse(kind, file, env)}
	}
	opened, err := t.try(ctx, candidates, file, env)
	if err != nil {
		return nil, err
	}
	if opened.Encrypted && env != nil {
		if err := env.check(opened.Data); err != nil {
			return nil, &Error{Step: StepDecrypt, Err: err}
		}
	}
	return opened, nil
}

// check looks at what must be right before any file is read: that every method
// is there, and that none of them breaks enforced.
func (t Target) check() error {
	for i, address := range t.methods {
		if address == "" {
			return t.fail("no method is set")
		}
		if _, ok := t.encryption.methods[address]; !ok {
			return t.fail("%s is not configured%s", cut(address), config.Suggest(address, slices.Sorted(maps.Keys(t.encryption.methods))))
		}
		if t.enforced && t.encryption.plaintext(address) {
			return t.fail("%s reads unencrypted data, which enforced = true forbids; remove it from the %s", address, [...]string{"method", "fallbacks"}[min(i, 1)])
		}
	}
	return nil
}

func (t Target) fail(format string, args ...any) error {
	return &config.Error{Address: t.name, Pos: t.pos, Err: fmt.Errorf(format, args...)}
}

func (e *Encryption) plaintext(address string) bool {
	entry, ok := e.config.Methods[address]
	return address == config.Unencrypted || ok && entry.Kind == config.Unencrypted
}

// candidate is a method that can deal with this kind of file.
type candidate struct {
	address string
	primary bool
	whole   bool // it takes the whole file
}

// candidates picks the methods for this kind of file, in order.
func (t Target) candidates(kind FileKind, file []byte) []candidate {
	var picked []candidate
	for i, address := range t.methods {
		c := candidate{address: address, primary: i == 0, whole: true}
		switch own, asked := t.encryption.takesFile(address, file); {
		case t.encryption.plaintext(address):
			if kind == State || kind == Plan {
				picked = append(picked, c)
			}
		case asked && own:
			picked = append(picked, c)
		case !asked && kind == Encrypted:
			c.whole = false
			picked = append(picked, c)
		}
	}
	return picked
}

// takesFile asks a method for whole files whether this is one of its own. A
// method that cannot be built is not asked: that is reported if its turn comes.
func (e *Encryption) takesFile(address string, file []byte) (own, asked bool) {
	method, err := e.methods[address]()
	if f, ok := method.(FileMethod); ok && err == nil {
		return f.RecognizesFile(file), true
	}
	return false, false
}

// try runs the candidates until one has the key.
func (t Target) try(ctx context.Context, candidates []candidate, file []byte, env *envelope) (*Opened, error) {
	var attempts []Attempt
	for i, c := range candidates {
		method, err := t.encryption.methods[c.address]()
		if err != nil {
			return nil, &Error{Step: StepConfiguration, Attempts: attempts, Err: err}
		}
		keys := fileKeys{encryption: t.encryption}
		data := file
		if !c.whole {
			keys.meta, data = env.Meta, env.Data
		}
		if i < len(candidates)-1 {
			data = bytes.Clone(data) // a method may overwrite it, even when it fails
		}
		plain, err := method.Decrypt(ctx, keys.key, data)
		if err == nil {
			return &Opened{
				Data: plain, Method: c.address, UsedFallback: !c.primary, Attempts: attempts,
				Encrypted: !t.encryption.plaintext(c.address),
			}, nil
		}
		attempts = append(attempts, Attempt{c.address, err})
		if !errors.Is(err, ErrNoKey) {
			return nil, failure(attempts, step(err), "the file could not be opened, and this is not a matter of the wrong key:")
		}
	}
	return nil, failure(attempts, step(attempts[len(attempts)-1].Err), "no method in effect has the key for this file:")
}

func failure(attempts []Attempt, s Step, text string) error {
	return &Error{Step: s, Attempts: attempts, Err: errors.New(text)}
}

func step(err error) Step {
	if _, ok := errors.AsType[*KeyError](err); ok {
		return StepKey
	}
	return StepDecrypt
}

// refuse explains why none of the methods is for this kind of file.
func (t Target) refuse(kind FileKind, file []byte, env *envelope) error {
	inEffect := ""
	if len(t.methods) > 0 {
		inEffect = " (only " + strings.Join(t.methods, ", ") + ")"
	}
	switch kind {
	case Encrypted:
		return fmt.Errorf("the file is encrypted%s, and no method for encrypted data is in effect%s; configure its key provider and a method", env.describeKeys(), inEffect)
	case State, Plan:
		if inEffect == "" {
			inEffect = ", and no method is in effect"
		}
		return fmt.Errorf("the file is a %s; plaintext is read only where the method or a fallback is %q%s", kind, config.Unencrypted, inEffect)
	}
	why := ""
	if err := json.Unmarshal(file, &struct{}{}); err != nil {
		why = ": " + describeJSON(err).Error()
	}
	return fmt.Errorf("the file is neither an encrypted state nor a plaintext one%s", why)
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
		names[i] = fmt.Sprintf("%q", cut(n))
	}
	return " (its metadata names " + strings.Join(names, ", ") + ")"
}

// Encrypt seals plaintext with the target's primary method: a state or a plan,
// in OpenTofu's envelope, as OpenTofu writes it.
func (t Target) Encrypt(ctx context.Context, plain []byte) ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, &Error{Step: StepConfiguration, Err: err}
	}
	if len(t.methods) == 0 {
		return nil, &Error{Step: StepConfiguration, Err: t.fail("no method is set")}
	}
	address := t.methods[0]
	method, err := t.encryption.methods[address]()
	if err != nil {
		return nil, &Error{Step: StepConfiguration, Err: err}
	}
	encrypter, ok := method.(Encrypter)
	if !ok {
		return nil, &Error{Step: StepConfiguration, Err: t.fail("%s can open files, but not seal them", address)}
	}
	keys := &newKeys{encryption: t.encryption, made: map[string][]byte{}, meta: map[string][]byte{}}
	sealed, err := encrypter.Encrypt(ctx, keys.key, plain)
	if err != nil {
		return nil, failure([]Attempt{{address, err}}, step(err), "the data could not be sealed:")
	}
	if _, whole := method.(FileMethod); whole || t.encryption.plaintext(address) {
		return sealed, nil
	}
	env := envelope{Meta: keys.meta, Data: sealed, Version: envelopeVersion}
	if kind, _, _ := identify(plain); kind == State {
		if err := json.Unmarshal(plain, &struct {
			Serial  **int64 `json:"serial"`
			Lineage *string `json:"lineage"`
		}{&env.Serial, &env.Lineage}); err != nil {
			return nil, &Error{Step: StepEnvelope, Err: fmt.Errorf("the state cannot be sealed: %w", describeJSON(err))}
		}
	}
	return json.Marshal(env)
}
