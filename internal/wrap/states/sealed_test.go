package states

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// unfaithful is a method that gives back something else than it got.
type unfaithful struct{}

func (unfaithful) Encrypt(context.Context, driver.Keys, []byte) ([]byte, error) {
	return []byte("x"), nil
}

func (unfaithful) Decrypt(context.Context, driver.Keys, []byte) ([]byte, error) {
	return []byte(wraptest.State), nil
}

// TestSealedAnother: what would be opened as another state is not stored.
func TestSealedAnother(t *testing.T) {
	t.Parallel()
	registry := encryption.Registry{Methods: []driver.Block[driver.Method]{{
		Table: attr.Table{Name: "unfaithful"}, Build: func(attr.Values) (driver.Method, error) { return unfaithful{}, nil },
	}}}
	enc, err := encryption.Load(registry, encryption.Code(`method "unfaithful" "m" {}
		state { method = method.unfaithful.m }`, "test.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Seal(t.Context(), enc.State(), []byte(wraptest.State), nil); err != nil {
		t.Error(err)
	}
	changed := strings.Replace(wraptest.State, `"outputs":{}`, `"outputs":{"a":1}`, 1)
	_, _, err = Seal(t.Context(), enc.State(), []byte(changed), nil)
	wraptest.OpenMistakes(t, "sealed").Failed(t, "another state", "", err)
}

// TestSealMemory: a large state is opened again in its own memory, so that there are never three copies of it. The test
// is not parallel, because it counts what is allocated.
func TestSealMemory(t *testing.T) {
	enc, err := encryption.Load(lighttest.Registry(), encryption.Code(`key_provider "pbkdf2" "p" { passphrase = "canary canary canary" }
		method "aes_gcm" "m" { keys = key_provider.pbkdf2.p }
		state { method = method.aes_gcm.m }`, "test.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(wraptest.State, `"outputs":{}`, `"outputs":{"a":{"value":"`+strings.Repeat("x", 8<<20)+`","type":"string"}}`, 1)
	plain, err := meter.Read(strings.NewReader(text), int64(len(text)), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, again, err := Seal(t.Context(), enc.State(), plain, plain)
	runtime.ReadMemStats(&after)
	if err != nil || string(again.Data) != text {
		t.Fatalf("sealed: %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(len(text)*2) {
		t.Errorf("%d bytes are allocated for a state of %d", took, len(text))
	}
	if _, again, err = Seal(t.Context(), enc.State(), []byte(text), nil); err != nil || string(again.Data) != text {
		t.Errorf("sealed again: %v", err)
	}
}
