package states

import (
	"context"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
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
	if _, _, err := Seal(t.Context(), enc.State(), []byte(wraptest.State)); err != nil {
		t.Error(err)
	}
	changed := strings.Replace(wraptest.State, `"outputs":{}`, `"outputs":{"a":1}`, 1)
	_, _, err = Seal(t.Context(), enc.State(), []byte(changed))
	wraptest.OpenMistakes(t, "sealed").Failed(t, "another state", "", err)
}
