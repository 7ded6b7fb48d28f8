package wrap

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// oneWay encrypts, and fails to open.
type oneWay struct{ err error }

func (oneWay) Encrypt(_ context.Context, _ driver.Keys, plain []byte) ([]byte, error) {
	return append(plain, 0), nil
}

func (w oneWay) Decrypt(context.Context, driver.Keys, []byte) ([]byte, error) { return nil, w.err }

// TestRehearsalOfPlans: only plans for recipients whose identities are elsewhere are for others. Of
// anything else, nobody would open the plan, or it would fail after the plan was made as well.
//
// Promise: Runs under wrap
func TestRehearsalOfPlans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		blind bool
	}{
		"recipients":                 {err: fault.Known(errors.New("there is no identity"), fault.NoIdentity{}), blind: true},
		"recipients, and a fallback": {err: fault.Known(fmt.Errorf("%w: of others", encryption.ErrNoKey), fault.NoIdentity{}), blind: true},
		"no key":                     {err: fmt.Errorf("%w: of nobody", encryption.ErrNoKey)},
		"no answer":                  {err: errors.New("the key service does not answer")},
	} {
		registry := encryption.Registry{Methods: []driver.Block[driver.Method]{{
			Table: attr.Table{Name: "one_way"},
			Build: func(attr.Values) (driver.Method, error) { return oneWay{c.err}, nil },
		}}}
		enc, err := encryption.Load(registry, encryption.Code("method \"one_way\" \"m\" {}\nplan { method = method.one_way.m }", "test.hcl"))
		if err != nil {
			t.Fatal(err)
		}
		h := &handover{Options: Options{Plan: enc.Plan()}}
		if err := h.rehearse(t.Context()); h.blind != c.blind || (err == nil) != c.blind {
			t.Errorf("%s: got %t, %v", name, h.blind, err)
		}
	}
}
