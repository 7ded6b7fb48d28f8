package encryption

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// Target opens and seals states, plans or both with a list of methods: the primary, then the
// fallbacks. [Encryption.State], [Encryption.Plan], [Encryption.RemoteState] and
// [Encryption.Use] make targets. A Target is safe for concurrent use.
type Target struct {
	encryption *Encryption
	kind       FileKind // KindState or KindPlan; KindUnknown opens and seals both
	name       string   // the name for errors; "" if the caller chose the methods
	methods    []string
	enforced   bool
	passes     bool // whether plaintext passes without a method, as in OpenTofu, because there are no settings
	kept       *keptKeys
	separate   bool                       // whether each file has a salt of its own
	rehearses  map[string]json.RawMessage // metadata by the address of the key provider; see [Opened.Rehearsal]
	pos        attr.Pos
}

// Enforce returns a copy of the target that refuses unencrypted data, as enforced = true does:
// plaintext is [ErrPlaintext], and a method that reads plaintext is an error.
func (t Target) Enforce() Target {
	t.enforced, t.passes = true, false
	return t
}

// KeepKeys returns a copy of the target that keeps the keys of the last file that it
// encrypted. If new keys cannot be made, because an identity or a key service is gone, Encrypt
// uses the kept keys, so that a program can encrypt its last state. The keys stay in memory as
// long as the target does, even after [Encryption.Close].
func (t Target) KeepKeys() Target {
	t.kept = &keptKeys{}
	return t
}

// Enforced reports whether the target refuses unencrypted data.
func (t Target) Enforced() bool { return t.enforced }

// Methods returns the addresses of the target's methods, the primary first; nil if
// none is selected.
func (t Target) Methods() []string { return slices.Clone(t.methods) }

// Opened is a file that was opened.
type Opened struct {
	Data         []byte           // the plaintext; for a plaintext file, it may be the file itself
	Kind         FileKind         // the kind of Data: KindState or KindPlan
	Encrypted    bool             // false when the file was plaintext
	Method       string           // the address of the (outermost) method that opened the file; "" without settings
	UsedFallback bool             // whether Method is a fallback
	Attempts     []Attempt        // the methods that were tried before and had no key
	Warnings     []driver.Warning // warnings of the methods and key providers that opened the file, see [driver.Warner]

	target Target            // the target that opened the file
	meta   map[string][]byte // documents that the envelope stores, by the alias or the address of the key provider
}

// IsRenamed reports whether the file stores the metadata of a key provider under another name than
// a file that is encrypted now. OpenTofu with the same settings cannot open it then.
func (o *Opened) IsRenamed() bool {
	e := o.target.encryption
	keys := fileKeys{encryption: e, meta: o.meta, methods: o.target.methods}
	return len(o.meta) > 0 && slices.ContainsFunc(e.used([]string{o.Method}), func(address string) bool {
		provider, err := e.keyProvider(address)
		return err == nil && o.meta[provider.metadataKey] == nil && keys.stored(address, provider) != nil
	})
}

// Decrypt opens a file with the first method that has a key for it, and does not change the
// file. Plaintext opens if the method or a fallback is unencrypted or, as in OpenTofu, if there
// are no settings at all; never with enforced settings or after [Target.Enforce].
//
// Its errors are [*Error] values, which wrap at most one of [ErrNoKey], [ErrNotConfigured],
// [ErrPlaintext], [ErrDamaged], [ErrOtherKind] and [ErrBackendRecord]. If ctx ended the call,
// the error wraps the error of ctx, such as [context.Canceled], and none of these.
func (t Target) Decrypt(ctx context.Context, file []byte) (*Opened, error) {
	return t.decrypt(ctx, file, false)
}

// DecryptInPlace works like [Target.Decrypt], in the memory of the file, which avoids a copy. Data
// of the result may be a part of that memory. The rest of it may be overwritten, even if there is
// an error, so the caller must not use it afterwards.
func (t Target) DecryptInPlace(ctx context.Context, file []byte) (*Opened, error) {
	return t.decrypt(ctx, file, true)
}

func (t Target) decrypt(ctx context.Context, file []byte, inPlace bool) (*Opened, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	ctx = meter.Into(ctx, meter.For(ctx, len(file))) // one meter for all methods, also for the file inside
	kind, env, damage := identify(file)
	candidates := t.choose(kind, file, env)
	opened := &Opened{Data: file}
	var err error
	switch {
	case len(candidates) > 0:
		opened, err = t.try(ctx, candidates, file, env, inPlace)
	case damage != nil:
		// A document of another format may look like a damaged envelope, so damage
		// matters only if no method recognizes the file.
		err = &Error{Step: StepEnvelope, Err: damage}
	case !t.passes || !kind.isPlain() || t.encryption.format(file) != "":
		err = &Error{Step: StepEnvelope, Err: t.refuse(kind, file, env)}
	}
	if err != nil {
		return nil, err
	}
	if !opened.Encrypted {
		opened.Kind = kind
	}
	opened.target = t
	if err := t.expectKind(opened.Kind); err != nil {
		return nil, &Error{Step: StepEnvelope, Err: err}
	}
	return opened, nil
}

// begin returns an error if the target has a mistake or ctx is nil.
func (t Target) begin(ctx context.Context) error {
	err := t.check()
	if err == nil && ctx == nil {
		err = &Error{Step: StepConfiguration, Err: errNilContext}
	}
	return err
}

// expectKind returns an error for a plan in place of a state, or the other way round.
func (t Target) expectKind(kind FileKind) error {
	if t.kind == KindUnknown || t.kind == kind {
		return nil
	}
	return because(ErrOtherKind, "this is a %s, and a %s is required here", kind.content(), t.kind.content())
}

// Encrypt seals a state or a plan with the target's primary method, and does not change plain.
// The result is an envelope as OpenTofu writes it, or a file in the method's own format (age,
// kubeform); with the method unencrypted, it is a copy of plain.
//
// Its errors are [*Error] values: [ErrNotConfigured] without a method, see [Opened.Reseal];
// others for a passphrase that is no secret, such as the address of a key provider, for empty or
// encrypted input, and for input that is not the state or plan that the target seals.
func (t Target) Encrypt(ctx context.Context, plain []byte) ([]byte, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	if len(t.methods) == 0 {
		return nil, &Error{Step: StepConfiguration, Err: t.encryptedError("", nil, t.fail("no method is set"))}
	}
	if err := t.checkPlain(plain); err != nil {
		return nil, err
	}
	return t.seal(ctx, t.methods[0], plain)
}

// checkPlain returns an error if plain is not a state or a plan that the target could open
// again after it was sealed.
func (t Target) checkPlain(plain []byte) error {
	kind, _, _ := identify(plain)
	err := t.expectKind(kind)
	switch {
	case kind == KindEmpty:
		err = fault.With(errors.New("there is nothing to encrypt: "+isEmpty), "fetch it again, or restore a copy")
	case kind == KindEncrypted, t.encryption.format(plain) != "", t.encryption.recognizing(plain) != "":
		err = errors.New("this is encrypted already")
	case kind == KindBackendRecord:
		err = fault.With(errors.New("this is not a state: "+isRecordOfBackend), ": read it from there")
	case !kind.isPlain():
		err = fmt.Errorf("this is not a state and not a plan: %w", describeOther(plain))
	case err == nil && kind == KindState:
		err = checkNames(plain)
	}
	if err != nil {
		return &Error{Step: StepEnvelope, Err: err}
	}
	return nil
}
