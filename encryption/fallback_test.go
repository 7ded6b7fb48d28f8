package encryption_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// shredder is a method for whole files that leaves nothing of what it is given.
type shredder struct{ key string }

func isShredder(file []byte) bool { return bytes.HasPrefix(file, []byte("SHRED ")) }

func (s shredder) Decrypt(_ context.Context, _ driver.Keys, file []byte) ([]byte, error) {
	defer clear(file)
	if plain, ok := bytes.CutPrefix(file, []byte("SHRED "+s.key+"\n")); ok {
		return bytes.Clone(plain), nil
	}
	return nil, fmt.Errorf("%w: another key", encryption.ErrNoKey)
}

func withShredder() encryption.Registry {
	r := withBox()
	r.Methods = append(r.Methods, driver.Block[driver.Method]{
		Table: attr.Table{Name: "shredder", Attrs: []attr.Attr{{Name: "key", Type: cty.String, Required: true}}},
		Build: func(v attr.Values) (driver.Method, error) { return shredder{v.String("key")}, nil },

		OwnFormat: isShredder,
		Vague:     true,
	})
	return r
}

// TestFallbackInPlace: what a method without the key does to its input is not seen
// by the next one. One that is listed twice is tried once.
func TestFallbackInPlace(t *testing.T) {
	t.Parallel()
	enc := newEncryption(t, withShredder(), keys+`
method "shredder" "wrong" { key = "1" }
method "shredder" "worse" { key = "3" }
method "shredder" "right" { key = "2" }`)
	for _, c := range []struct {
		file     []byte
		methods  []string
		attempts int
	}{
		{seal(t, all, state), []string{"method.aes_gcm.b", "method.aes_gcm.b", "method.aes_gcm.a"}, 1},
		{[]byte("SHRED 2\n" + state), []string{"method.shredder.wrong", "method.shredder.worse", "method.shredder.right"}, 2},
	} {
		opened, err := use(t, enc, c.methods...).DecryptInPlace(t.Context(), c.file)
		if err != nil || string(opened.Data) != state || !opened.UsedFallback || len(opened.Attempts) != c.attempts {
			t.Errorf("%v: got %+v, %v", c.methods, opened, err)
		}
	}
}
