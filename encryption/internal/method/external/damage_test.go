//go:build unix

package external_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	externalkeys "github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/vectortest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
)

// authenticating is a method whose program opens nothing but what it has sealed.
// That is up to programs, and those of the files here, which only change letters,
// do not see to it. They are asked once per key; a damaged payload is refused
// without them.
type authenticating struct {
	driver.Method
	keys   string
	sealed []byte
	opened *memo.Memo[string, []byte] // :: key → plaintext
}

func (a authenticating) Decrypt(ctx context.Context, keys driver.Keys, data []byte) ([]byte, error) {
	var key []byte
	if a.keys != "" {
		var err error
		if key, err = keys(ctx, a.keys); err != nil {
			return nil, err
		}
	}
	if !bytes.Equal(data, a.sealed) {
		return nil, fmt.Errorf("%w: the data is damaged", driver.ErrNoKey)
	}
	plain, err := a.opened.Do(ctx, string(key), func(ctx context.Context) ([]byte, error) { return a.Method.Decrypt(ctx, keys, data) })
	return bytes.Clone(plain), err
}

// TestDamage damages files of OpenTofu's in every way that is one truncation or
// one flipped bit.
func TestDamage(t *testing.T) {
	t.Parallel()
	for vector, counts := range map[lighttest.Vector][4]int{
		vectortest.Cases + "external_method_no_keys":   {1, 0, 138 + 4*7, 0}, // its "meta" is empty, and its name as good as any
		vectortest.Cases + "external_method_with_keys": {1, 220, 138, 0},
	} {
		t.Run(vector.Name(), func(t *testing.T) {
			t.Parallel()
			file := vector.Sealed(t)
			var envelope struct {
				Sealed []byte `json:"encrypted_data"`
			}
			if err := json.Unmarshal(file, &envelope); err != nil {
				t.Fatal(err)
			}
			method := external.Block()
			build := method.Build
			method.Build = func(v attr.Values) (driver.Method, error) {
				m, err := build(v)
				return authenticating{m, v.String("keys"), envelope.Sealed, new(memo.Memo[string, []byte])}, err
			}
			registry := encryption.Registry{
				KeyProviders: []driver.Block[driver.KeyProvider]{externalkeys.Block()},
				Methods:      []driver.Block[driver.Method]{method},
			}
			lighttest.DamageEnvelope(t, file, counts, vector.Target(t, registry, nil))
		})
	}
}
