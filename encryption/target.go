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

// Target opens and seals states, plans or both with a list of methods: the primary method, then the
// fallbacks. [Encryption.State], [Encryption.Plan], [Encryption.RemoteState] and [Encryption.Use]
// return targets. A Target is safe for concurrent use.
type Target struct {
	encryption *Encryption
	kind       FileKind // KindState or KindPlan; KindUnknown opens and seals both
	name       string   // the name in error messages; "" if the caller chose the methods
	methods    []string
	enforced   bool
	passes     bool // whether plaintext opens without a method because there are no settings, as in OpenTofu
	kept       *keptKeys
	separate   bool                       // whether each file gets its own salt
	rehearses  map[string]json.RawMessage // metadata by key provider address; see [Opened.Rehearsal]
	pos        attr.Pos
}

// Enforce returns a copy of the target that refuses unencrypted data, like enforced = true. Opening
// plaintext returns [ErrPlaintext], and selecting a method that reads plaintext is an error.
func (t Target) Enforce() Target {
	t.enforced, t.passes = true, false
	return t
}

// KeepKeys returns a copy of the target that keeps the keys of the last file it encrypted. Encrypt
// uses these keys if it cannot make new ones because an identity or a key service is gone, so that
// a program can still encrypt its last state. The keys stay in memory as long as the target does,
// even after [Encryption.Close].
func (t Target) KeepKeys() Target {
	t.kept = &keptKeys{}
	return t
}

// Enforced reports whether the target refuses unencrypted data.
func (t Target) Enforced() bool { return t.enforced }

// Methods returns the addresses of the target's methods, the primary first. It returns nil if no
// method is selected.
func (t Target) Methods() []string { return slices.Clone(t.methods) }

// Opened is the result of opening a file.
type Opened struct {
	Data         []byte           // the plaintext; if the file was plaintext, possibly the file itself
	Kind         FileKind         // the kind of Data: KindState or KindPlan
	Encrypted    bool             // false if the file was plaintext
	Method       string           // the address of the (outermost) method that opened the file; "" without settings
	UsedFallback bool             // whether Method is a fallback
	Attempts     []Attempt        // methods that were tried before Method, and failed
	Warnings     []driver.Warning // warnings of the methods and key providers that opened the file, see [driver.Warner]

	target Target            // the target that opened the file
	meta   map[string][]byte // documents in the envelope, by key provider alias or address
}

// IsRenamed reports whether the file stores the metadata of a key provider under a different name than the settings
// now use. If so, OpenTofu cannot open the file with these settings.
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
// Decrypt returns [*Error] values. They wrap at most one of [ErrNoKey], [ErrNotConfigured],
// [ErrPlaintext], [ErrDamaged], [ErrOtherKind] and [ErrBackendRecord]. If ctx ended the call, they
// wrap the error of ctx, such as [context.Canceled], and none of these.
func (t Target) Decrypt(ctx context.Context, file []byte) (*Opened, error) {
	return t.decrypt(ctx, file, room{})
}

// DecryptInto works like [Target.Decrypt], but may make its copy in memory, if that has the capacity: that of the
// plaintext and 64 bytes more. The Data of the result may be a part of memory. The rest of memory may be overwritten,
// even if there is an error.
func (t Target) DecryptInto(ctx context.Context, file, memory []byte) (*Opened, error) {
	return t.decrypt(ctx, file, room{memory: memory})
}

// DecryptInPlace works like [Target.Decrypt], but reuses the memory of file instead of making a
// copy. The Data of the result may be a part of file. The rest of file may be overwritten, even if
// there is an error, so the caller must not use file afterwards.
func (t Target) DecryptInPlace(ctx context.Context, file []byte) (*Opened, error) {
	return t.decrypt(ctx, file, room{inPlace: true})
}

// room says where a method decrypts.
type room struct {
	inPlace bool   // whether the file may be overwritten
	memory  []byte // memory that may be overwritten instead, up to its capacity; may be nil
}

func (t Target) decrypt(ctx context.Context, file []byte, in room) (*Opened, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	ctx = meter.Into(ctx, meter.For(ctx, len(file))) // one meter for all methods, and for a file inside the file
	kind, env, damage := identify(file)
	candidates := t.choose(kind, file, env)
	opened := &Opened{Data: file}
	var err error
	switch {
	case len(candidates) > 0:
		opened, err = t.try(ctx, candidates, file, env, in)
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

// begin returns an error if the target is misconfigured or ctx is nil.
func (t Target) begin(ctx context.Context) error {
	err := t.check()
	if err == nil && ctx == nil {
		err = &Error{Step: StepConfiguration, Err: errNilContext}
	}
	return err
}

// expectKind returns an error if the file is a plan and the target is for states, or the other way
// round.
func (t Target) expectKind(kind FileKind) error {
	if t.kind == KindUnknown || t.kind == kind {
		return nil
	}
	return because(ErrOtherKind, "this is a %s, but a %s is required here", kind.content(), t.kind.content())
}

// Encrypt seals a state or a plan with the target's primary method. It does not change plain. The
// result is an OpenTofu envelope, or a file in the method's own format, such as age or kubeform.
// With the unencrypted method, it is a copy of plain.
//
// Encrypt returns [*Error] values. Without a method, the error wraps [ErrNotConfigured]; see
// [Opened.Reseal]. It is also an error if a passphrase is not secret, such as the address of a key
// provider, or if plain is empty, already encrypted, or not the kind of file that the target seals.
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

// checkPlain returns an error if plain is not a state or a plan that the target could open again
// after sealing it.
func (t Target) checkPlain(plain []byte) error {
	kind, _, _ := identify(plain)
	err := t.expectKind(kind)
	switch {
	case kind == KindEmpty:
		err = fault.With(errors.New("there is nothing to encrypt: "+isEmpty), "fetch it again, or restore a copy")
	case kind == KindEncrypted, t.encryption.format(plain) != "", t.encryption.recognizing(plain) != "":
		err = errors.New("this is already encrypted")
	case kind == KindBackendRecord:
		err = fault.With(errors.New("this is not a state: "+isRecordOfBackend), "read the state from the backend that this record names")
	case !kind.isPlain():
		err = fmt.Errorf("this is neither a state nor a plan: %w", describeOther(plain))
	case err == nil && kind == KindState:
		err = checkNames(plain)
	}
	if err != nil {
		return &Error{Step: StepEnvelope, Err: err}
	}
	return nil
}
