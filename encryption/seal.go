package encryption

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// seal encrypts plain with the method at address, and before that with those
// that its then leads to.
func (e *Encryption) seal(ctx context.Context, address string, plain []byte) ([]byte, error) {
	m, err := e.methods[address]()
	if err != nil {
		return nil, &Error{Step: StepConfiguration, Err: err}
	}
	encrypter, ok := m.Method.(Encrypter)
	if !ok {
		err := &attr.Error{Address: address, Err: errors.New("this method can open files, but not seal them")}
		return nil, &Error{Step: StepConfiguration, Err: err}
	}
	kind, _, _ := identify(plain)
	_, whole := m.Method.(FileMethod)
	if m.then != "" {
		if plain, err = e.seal(ctx, m.then, plain); err != nil {
			return nil, err
		}
	}
	keys := &newKeys{encryption: e, made: map[string][]byte{}, meta: map[string][]byte{}}
	sealed, err := encrypter.Encrypt(ctx, keys.key, plain)
	switch {
	case err != nil:
		return nil, failure([]Attempt{{address, err}}, "the data could not be sealed:")
	case whole || e.isPlaintext(address):
		return sealed, nil
	}
	env := envelope{Meta: keys.meta, Data: sealed, Version: envelopeVersion}
	if kind == State {
		if err := env.label(plain); err != nil {
			return nil, &Error{Step: StepEnvelope, Err: err}
		}
	}
	return json.Marshal(env)
}

// label puts the state's serial and lineage on the envelope, in clear.
func (env *envelope) label(state []byte) error {
	err := json.Unmarshal(state, &struct {
		Serial  **int64 `json:"serial"`
		Lineage *string `json:"lineage"`
	}{&env.Serial, &env.Lineage})
	if err != nil {
		return fmt.Errorf("the state cannot be sealed: %w", describeJSON(err))
	}
	return nil
}
