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

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
)

// Target is a list of methods at work on one kind of data: the primary, then
// the fallbacks.
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
	Method       string    // address of the method that opened it, the outermost of those that then leads to
	UsedFallback bool      // Method is not the primary
	Attempts     []Attempt // methods that were tried before and had no key
	Warnings     []string  // of the methods that opened it, see [Warner]
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
	kind, env, damage := identify(file)
	if kind == Empty {
		return nil, &Error{Step: StepEnvelope, Err: errors.New("the file is empty; Terraform and OpenTofu never leave an empty state behind, so something cut it off")}
	}
	// A document of another format may look like a damaged envelope, so a
	// method for whole files is asked first.
	candidates := t.candidates(kind, file, env)
	switch {
	case len(candidates) == 0 && damage != nil:
		return nil, &Error{Step: StepEnvelope, Err: damage}
	case len(candidates) == 0:
		return nil, &Error{Step: StepEnvelope, Err: t.refuse(kind, file, env)}
	}
	return t.try(ctx, candidates, file, env)
}

// check looks at what must be right before any file is read: that every method
// is there, and that none of them breaks enforced.
func (t Target) check() error {
	for i, address := range t.methods {
		if address == "" {
			return t.fail("no method is set")
		}
		if _, ok := t.encryption.methods[address]; !ok {
			return t.fail("%s is not configured%s", outside.Line(address, maxName), attr.Suggest(address, slices.Sorted(maps.Keys(t.encryption.methods))))
		}
		if t.enforced && t.encryption.plaintext(address) {
			return t.fail("%s reads unencrypted data, which enforced = true forbids; remove it from the %s", address, [...]string{"method", "fallbacks"}[min(i, 1)])
		}
		if err := t.encryption.checkThen(address, nil); err != nil {
			return err
		}
	}
	return nil
}

// checkThen follows then from method to method. A method that cannot be built
// is reported if its turn comes.
func (e *Encryption) checkThen(address string, path []string) error {
	path = append(path, address)
	m, err := e.methods[address]()
	if err != nil || m.then == "" {
		return nil
	}
	fail := func(format string, args ...any) error {
		entry := e.config.Methods[address]
		return &attr.Error{Address: address, Attr: "then", Pos: entry.Settings["then"].Pos, Err: fmt.Errorf(format, args...)}
	}
	switch _, exists := e.methods[m.then]; {
	case e.plaintext(m.then):
		return fail("plaintext needs no method here: without then, what is inside is the plaintext")
	case !exists:
		return fail("%s is not configured%s", outside.Line(m.then, maxName), attr.Suggest(m.then, slices.Sorted(maps.Keys(e.methods))))
	case slices.Contains(path, m.then):
		start := slices.Index(path, m.then)
		return fail("the methods lead to one another in a circle: %s", strings.Join(append(path[start:], m.then), " → "))
	}
	return e.checkThen(m.then, path)
}

func (t Target) fail(format string, args ...any) error {
	return &attr.Error{Address: t.name, Pos: t.pos, Err: fmt.Errorf(format, args...)}
}

func (e *Encryption) plaintext(address string) bool {
	entry, ok := e.config.Methods[address]
	return address == attr.Unencrypted || ok && entry.Kind == attr.Unencrypted
}

// candidate is a method that can deal with this kind of file.
type candidate struct {
	address string
	primary bool
	whole   bool // it takes the whole file
}

// candidates picks the methods for this kind of file, in order. The envelope is
// nil when the file is none, or a damaged one.
func (t Target) candidates(kind FileKind, file []byte, env *envelope) []candidate {
	var picked []candidate
	claimed := false // by a method for whole files
	for i, address := range t.methods {
		c := candidate{address: address, primary: i == 0, whole: true}
		own, asked, err := t.encryption.takesFile(address, file)
		claimed = claimed || asked && own
		switch {
		case t.encryption.plaintext(address):
			if kind == State || kind == Plan {
				picked = append(picked, c)
			}
		case asked && own:
			picked = append(picked, c)
		case !asked && env != nil:
			c.whole = false
			picked = append(picked, c)
		case err != nil && kind != State && kind != Plan:
			picked = append(picked, c) // it cannot tell; its turn ends with the reason
		}
	}
	if claimed && kind == State {
		// Its format keeps the form of a state, as that of sops may do. Without
		// the key, what stands there is no plaintext.
		picked = slices.DeleteFunc(picked, func(c candidate) bool { return t.encryption.plaintext(c.address) })
	}
	return picked
}

// takesFile asks a method for whole files whether this is one of its own. A
// method that cannot be built is not asked.
func (e *Encryption) takesFile(address string, file []byte) (own, asked bool, err error) {
	m, err := e.methods[address]()
	if f, ok := m.Method.(FileMethod); ok && err == nil {
		return f.RecognizesFile(file), true, nil
	}
	return false, false, err
}

// try runs the candidates until one has the key.
func (t Target) try(ctx context.Context, candidates []candidate, file []byte, env *envelope) (*Opened, error) {
	var attempts []Attempt
	for i, c := range candidates {
		m, err := t.encryption.methods[c.address]()
		if err != nil {
			return nil, &Error{Step: StepConfiguration, Attempts: attempts, Err: err}
		}
		keys := fileKeys{encryption: t.encryption}
		last := i == len(candidates)-1 // only it may overwrite the file
		data := file
		switch {
		case !c.whole:
			keys.meta = env.Meta
			if data, err = env.decode(last); err != nil {
				return nil, &Error{Step: StepEnvelope, Attempts: attempts, Err: damaged(err)}
			}
		case !last:
			data = bytes.Clone(file)
		}
		opened := &Opened{
			Method: c.address, UsedFallback: !c.primary, Attempts: attempts,
			Encrypted: !t.encryption.plaintext(c.address),
		}
		opened.Data, err = m.Decrypt(ctx, keys.key, data)
		switch {
		case err != nil:
		case !c.whole:
			if err := env.check(opened.Data); err != nil {
				return nil, &Error{Step: StepDecrypt, Err: err}
			}
		case opened.Encrypted:
			err = t.inside(ctx, m, opened)
		}
		if err == nil {
			return opened, nil
		}
		attempts = append(attempts, Attempt{c.address, err})
		if _, other := errors.AsType[*contentError](err); !other && !errors.Is(err, ErrNoKey) {
			return nil, failure(attempts, step(err), "the file could not be opened, and this is not a matter of the wrong key:")
		}
	}
	text := "no method in effect has the key for this file:"
	last := attempts[len(attempts)-1].Err
	if !errors.Is(last, ErrNoKey) {
		text = "the file was decrypted, and what is inside is not what was expected:"
	}
	return nil, failure(attempts, step(last), text)
}

// contentError says that what a method for whole files opened is not what its
// then is for. Like the kind of the file itself, it decides which method is
// the right one, so the next is tried.
type contentError struct{ err error }

func (e *contentError) Error() string { return e.err.Error() }
func (e *contentError) Unwrap() error { return e.err }

// thenError is the failure of the method that then names.
type thenError struct {
	address string
	step    Step
	err     error
}

func (e *thenError) Error() string { return fmt.Sprintf("then %s: %v", e.address, e.err) }
func (e *thenError) Unwrap() error { return e.err }

// inside goes on with what a method for whole files opened: with the method
// that then names or, without it, by looking whether it is the plaintext.
func (t Target) inside(ctx context.Context, m method, opened *Opened) error {
	if w, ok := m.Method.(Warner); ok {
		opened.Warnings = append(opened.Warnings, fmt.Sprintf("%s: %s", opened.Method, w.Warning()))
	}
	kind, env, damage := identify(opened.Data)
	next := t
	next.methods = []string{m.then}
	switch {
	case kind == Empty:
		return errors.New("what it decrypted is empty")
	case m.then == "" && (kind == State || kind == Plan):
		return nil
	case m.then == "":
		return &contentError{t.describeInside(kind, opened.Data)}
	}
	candidates := next.candidates(kind, opened.Data, env)
	switch {
	case len(candidates) == 0 && damage != nil:
		return &thenError{m.then, StepEnvelope, damage}
	case len(candidates) == 0:
		return &contentError{fmt.Errorf("it decrypted a %s, which is not for its then, %s", kind, m.then)}
	}
	inner, err := next.try(ctx, candidates, opened.Data, env)
	if err != nil {
		failed, _ := errors.AsType[*Error](err)
		if len(failed.Attempts) == 1 {
			err = failed.Attempts[0].Err
		}
		return &thenError{m.then, failed.Step, err}
	}
	opened.Data = inner.Data
	opened.Warnings = append(opened.Warnings, inner.Warnings...)
	return nil
}

// describeInside says what to do about content that is no plaintext, where
// then is not set.
func (t Target) describeInside(kind FileKind, content []byte) error {
	if kind == Encrypted {
		return errors.New(`it decrypted an OpenTofu envelope: the file was encrypted twice; add then = "method.…" to it, with the address of the method for the envelope`)
	}
	if address := t.encryption.recognizing(content); address != "" {
		return fmt.Errorf("what it decrypted is not a state; if the file was encrypted twice, and %s is the method for what is inside, add then = %[1]q to it", address)
	}
	return errors.New("what it decrypted is not a state and not a plan")
}

// recognizing returns the first configured method that takes a file for one of
// its own, or "".
func (e *Encryption) recognizing(file []byte) string {
	for _, address := range slices.Sorted(maps.Keys(e.methods)) {
		if own, _, _ := e.takesFile(address, file); own {
			return address
		}
	}
	return ""
}

func failure(attempts []Attempt, s Step, text string) error {
	return &Error{Step: s, Attempts: attempts, Err: errors.New(text)}
}

func step(err error) Step {
	if e, ok := errors.AsType[*thenError](err); ok {
		return e.step
	}
	if _, ok := errors.AsType[*contentError](err); ok {
		return StepEnvelope
	}
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
		return fmt.Errorf("the file is a %s; plaintext is read only where the method or a fallback is %q%s", kind, attr.Unencrypted, inEffect)
	}
	if address := t.encryption.recognizing(file); address != "" {
		return fmt.Errorf("the file is neither an encrypted state nor a plaintext one; %s may be the method for it, and it is not in effect%s", address, inEffect)
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
		names[i] = quoted(n)
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
	return t.encryption.seal(ctx, t.methods[0], plain)
}

func (e *Encryption) seal(ctx context.Context, address string, plain []byte) ([]byte, error) {
	m, err := e.methods[address]()
	if err != nil {
		return nil, &Error{Step: StepConfiguration, Err: err}
	}
	encrypter, ok := m.Method.(Encrypter)
	if !ok {
		return nil, &Error{Step: StepConfiguration, Err: &attr.Error{Address: address, Err: errors.New("this method can open files, but not seal them")}}
	}
	kind, _, _ := identify(plain)
	_, whole := m.Method.(FileMethod)
	switch {
	case m.then != "":
		if plain, err = e.seal(ctx, m.then, plain); err != nil {
			return nil, err
		}
	case whole && kind != State && kind != Plan:
		return nil, &Error{Step: StepEnvelope, Err: errors.New("this is not a state and not a plan, so it could not be opened again")}
	}
	keys := &newKeys{encryption: e, made: map[string][]byte{}, meta: map[string][]byte{}}
	sealed, err := encrypter.Encrypt(ctx, keys.key, plain)
	if err != nil {
		return nil, failure([]Attempt{{address, err}}, step(err), "the data could not be sealed:")
	}
	if whole || e.plaintext(address) {
		return sealed, nil
	}
	env := envelope{Meta: keys.meta, Data: sealed, Version: envelopeVersion}
	if kind == State {
		if err := json.Unmarshal(plain, &struct {
			Serial  **int64 `json:"serial"`
			Lineage *string `json:"lineage"`
		}{&env.Serial, &env.Lineage}); err != nil {
			return nil, &Error{Step: StepEnvelope, Err: fmt.Errorf("the state cannot be sealed: %w", describeJSON(err))}
		}
	}
	return json.Marshal(env)
}
