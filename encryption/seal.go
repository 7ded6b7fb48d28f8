package encryption

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// Reseal seals a changed state or plan with the target that opened the file, like [Target.Encrypt].
// The two differ if there are no settings: Encrypt returns [ErrNotConfigured], but Reseal leaves a
// plaintext file plaintext, as OpenTofu does, and returns a copy of plain.
//
// If there are settings, the primary method seals the file, even if a fallback opened it. An
// encrypted file becomes plaintext only if the primary method is unencrypted.
func (o *Opened) Reseal(ctx context.Context, plain []byte) ([]byte, error) {
	if o == nil {
		o = &Opened{}
	}
	t := o.target
	if !t.passes || o.Encrypted || o.Method != "" {
		return t.Encrypt(ctx, plain)
	}
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	if err := t.checkPlain(plain); err != nil {
		return nil, err
	}
	return bytes.Clone(plain), nil
}

// seal encrypts plain with the method at address. If that method has a "then" argument, the method
// named there encrypts plain first.
func (t Target) seal(ctx context.Context, address string, plain []byte) ([]byte, error) {
	e := t.encryption
	m, encrypter, err := e.encrypter(address)
	if err != nil {
		return nil, &Error{Step: StepConfiguration, Err: err}
	}
	kind, _, _ := identify(plain)
	env := &envelope{Version: envelopeVersion}
	if m.opensFiles() {
		env = nil
	}
	switch {
	case m.then != "":
		if plain, err = t.seal(ctx, m.then, plain); err != nil {
			return nil, err
		}
	case env != nil && kind == KindState:
		if err := env.label(plain); err != nil {
			return nil, &Error{Step: StepEnvelope, Err: err}
		}
	}
	keys := &newKeys{encryption: e, separate: t.separate, rehearses: t.rehearses, made: map[string][]byte{}, meta: map[string][]byte{}}
	sealed, err := sealCopy(ctx, encrypter, keys, env, plain)
	if last := t.kept.of(address); err != nil && ctx.Err() == nil && last != nil {
		keys = last
		sealed, err = sealCopy(ctx, encrypter, keys, env, plain)
	}
	if err != nil {
		err = fault.Later(err, func() []fault.Fact { return e.suspects(m) })
		return nil, failure(ctx, []Attempt{{address, err}}, "the data could not be encrypted:")
	}
	if t.rehearses == nil {
		t.kept.keep(address, keys)
	}
	return sealed, nil
}

func (e *Encryption) encrypter(address string) (method, driver.Encrypter, error) {
	m, err := e.methods[address]()
	encrypter, ok := m.Method.(driver.Encrypter)
	if err == nil && !ok {
		err = &attr.Error{Address: address, Err: fault.With(
			errors.New("this method can only open files, not encrypt them"), "choose another method to encrypt files")}
	}
	if err == nil {
		err = e.protects(m)
	}
	return m, encrypter, err
}

// sealCopy copies plain into a buffer for the new file, and encrypts it in that buffer. Env is nil
// for a file without an envelope.
func sealCopy(ctx context.Context, e driver.Encrypter, keys *newKeys, env *envelope, plain []byte) ([]byte, error) {
	size := len(plain) + methodRoom
	room := size
	if env != nil {
		// The data is placed at the end of the buffer. Base64 is written from the start, and never
		// overtakes the data that it encodes.
		room = envelopeRoom + base64.StdEncoding.EncodedLen(size)
	}
	memory := make([]byte, room)
	data, err := e.Encrypt(ctx, keys.key, append(memory[room-size:room-size], plain...))
	file := memory[:0]
	switch {
	case err == nil && env == nil:
		file = append(file, data...)
	case err == nil:
		env.Meta = keys.meta
		file, err = env.append(file, data)
	}
	used := len(file)
	if cap(file) != room { // the file outgrew the buffer and was moved
		used = 0
	}
	clear(memory[used:]) // the method may have left plaintext in the buffer
	return file, err
}

const (
	envelopeRoom = 4 << 10 // bytes reserved for an envelope without its data; a larger one costs a copy of the data
	methodRoom   = 64      // bytes reserved for data that a method adds to the plaintext
)

// append appends the envelope with this data to dst, in the format of [json.Marshal]. The data may
// be at the end of dst's buffer, where sealCopy puts it.
func (env *envelope) append(dst, data []byte) ([]byte, error) {
	const end = `","encryption_version":"` + envelopeVersion + `"}`
	env.Data = []byte{}
	around, err := json.Marshal(env)
	if err != nil {
		return dst, err
	}
	if len(around) > envelopeRoom {
		data = bytes.Clone(data)
	}
	dst = append(dst, bytes.TrimSuffix(around, []byte(end))...)
	dst = slices.Grow(dst, base64.StdEncoding.EncodedLen(len(data))+len(end))
	var part [3 << 10]byte
	for next := range slices.Chunk(data, len(part)) {
		n := copy(part[:], next)
		dst = base64.StdEncoding.AppendEncode(dst, part[:n])
	}
	return append(dst, end...), nil
}

// checkNames returns an error if a state has its version, serial or lineage twice, or in another
// case. Programs would disagree about the member that counts, and the check of the envelope's
// copies could read the wrong one.
func checkNames(state []byte) error {
	seen := map[string]bool{}
	return jsonwalk.Members(state, func(name string, _ []byte) (bool, error) {
		meant := jsonwalk.Fold(name)
		if meant != "version" && meant != "serial" && meant != "lineage" {
			return true, nil
		}
		if seen[meant] || name != meant {
			return false, fault.With(fmt.Errorf("the state contains the name %q twice, or not in lowercase, so the "+
				"state was edited or damaged", meant), "restore an intact copy")
		}
		seen[meant] = true
		return true, nil
	})
}

// label copies the state's serial and lineage into the envelope, in cleartext.
func (env *envelope) label(state []byte) error {
	err := json.Unmarshal(state, &struct {
		Serial  **int64 `json:"serial"`
		Lineage *string `json:"lineage"`
	}{&env.Serial, &env.Lineage})
	if err != nil {
		return fmt.Errorf("the state cannot be encrypted: %w", describeJSON(err))
	}
	return nil
}
