package encryption_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// TestMistakesOfPrograms: what only a mistake of the program makes is an error, not a panic.
//
// Promise: Mistakes of programs
func TestMistakesOfPrograms(t *testing.T) {
	t.Parallel()
	method := attr.Table{Name: "own"}
	settings := &config.Config{
		Methods: map[string]*entries.Entry{"method.own.m": entries.NewEntry("method.own.m", method, nil)},
		State:   &config.Target{Method: "method.own.m"},
	}
	provider := &config.Config{
		KeyProviders: map[string]*entries.Entry{"key_provider.own.k": entries.NewEntry("key_provider.own.k", method, nil)},
		Methods: map[string]*entries.Entry{"method.aes_gcm.m": {Address: "method.aes_gcm.m", Kind: "aes_gcm",
			Settings: map[string]entries.Setting{"keys": {Value: cty.StringVal("key_provider.own.k")}}}},
		State: &config.Target{Method: "method.aes_gcm.m"},
	}
	own := func(block driver.Block[driver.Method]) encryption.Registry {
		block.Table = method
		return encryption.Registry{Methods: []driver.Block[driver.Method]{block}}
	}
	ownKeys := lighttest.Registry()
	ownKeys.KeyProviders = []driver.Block[driver.KeyProvider]{{
		Table: method, Build: func(attr.Values) (driver.KeyProvider, error) { return nil, nil },
	}}
	noBuild := lighttest.Registry()
	noBuild.KeyProviders = []driver.Block[driver.KeyProvider]{{Table: method}}
	wrong := func(a ...attr.Attr) encryption.Registry {
		r := lighttest.Registry()
		return encryption.Registry{Methods: append(r.Methods, driver.Block[driver.Method]{Table: attr.Table{Name: "own", Attrs: a},
			Build: func(attr.Values) (driver.Method, error) { return nil, nil }})}
	}
	number, text := attr.Between(1, 2), attr.Is(func(string) bool { return true }, "")
	nothing := func(attr.Values) (driver.Method, error) { return nil, nil }
	says := golden(t, "mistakes of programs")
	for name, c := range map[string]struct {
		registry encryption.Registry
		settings *config.Config
	}{
		"a method without Build":        {own(driver.Block[driver.Method]{}), settings},
		"a key provider without Build":  {noBuild, provider},
		"Build returns no method":       {own(driver.Block[driver.Method]{Build: nothing}), settings},
		"Build returns no key provider": {ownKeys, provider},
		"a check of numbers for a text": {wrong(attr.Attr{Name: "a", Type: cty.String, Check: number}), settings},
		"a check of texts for numbers":  {wrong(attr.Attr{Name: "a", Type: cty.List(cty.Number), Check: text}), settings},
		"such a check in a block": {wrong(attr.Attr{Name: "b", Attrs: []attr.Attr{{Name: "a", Type: cty.Bool, Check: text}}}),
			settings},
		"an attribute without a type":   {wrong(attr.Attr{Name: "a"}), settings},
		"two attributes of a name":      {wrong(attr.Attr{Name: "a", Type: cty.Bool}, attr.Attr{Name: "a", Type: cty.Bool}), settings},
		"an attribute that is required": {wrong(attr.Attr{Name: "a", Type: cty.Bool, Required: true, Default: cty.True}), settings},
		"a default of another type":     {wrong(attr.Attr{Name: "a", Type: cty.Bool, Default: cty.Zero}), settings},
		"a list of key providers":       {wrong(attr.Attr{Name: "a", Type: cty.List(cty.String), Form: attr.KeyProvider}), settings},
		"a path that is a number":       {wrong(attr.Attr{Name: "a", Type: cty.Number, Form: attr.Path}), settings},
		"a public passphrase":           {wrong(attr.Attr{Name: "a", Type: cty.String, Form: attr.Passphrase}), settings},
		"a map in a variable":           {wrong(attr.Attr{Name: "a", Type: cty.Map(cty.String), Env: []string{"A"}}), settings},
		"excludes what is not there": {wrong(attr.Attr{Name: "a", Type: cty.Bool}, attr.Attr{Name: "b", Type: cty.Bool,
			Excludes: []string{"a", "c"}}), settings},
		"is in a file that nothing names": {wrong(attr.Attr{Name: "a", Type: cty.String, EntryInFiles: []string{"c"}}), settings},
		"requires what is not there":      {wrong(attr.Attr{Name: "a", Type: cty.Bool, RequiredWith: "c"}), settings},
		"no method": {lighttest.Registry(), &config.Config{Methods: map[string]*entries.Entry{"method.own.m": nil},
			State: settings.State}},
		"no key provider": {lighttest.Registry(), &config.Config{KeyProviders: map[string]*entries.Entry{"key_provider.own.k": nil},
			Methods: provider.Methods, State: provider.State}},
		"a setting without a value": {lighttest.Registry(), &config.Config{Methods: map[string]*entries.Entry{"method.aes_gcm.m": {
			Address: "method.aes_gcm.m", Kind: "aes_gcm", Settings: map[string]entries.Setting{"keys": {}}}},
			State: provider.State}},
	} {
		enc, err := encryption.Load(c.registry, unstable.Layer(c.settings))
		if err == nil {
			_, err = enc.State().Decrypt(t.Context(), seal(t, all, state))
			enc.Close()
		}
		says.Error(t, name, err)
	}
}

// TestNilContext: as with net/http, it is an error.
//
// Promise: Mistakes of programs
func TestNilContext(t *testing.T) {
	t.Parallel()
	enc := newEncryption(t, lighttest.Registry(), all)
	var none context.Context
	_, opening := enc.State().Decrypt(none, seal(t, all, state))
	_, inPlace := enc.State().DecryptInPlace(none, seal(t, all, state))
	_, sealing := enc.State().Encrypt(none, []byte(state))
	_, deriving := enc.DeriveKey(none, "key_provider.static.a", encryption.Derivation{Info: "x", Length: 32})
	says := golden(t, "no context")
	for name, err := range map[string]error{"opening": opening, "in place": inPlace, "sealing": sealing, "deriving": deriving} {
		says.Error(t, name, err)
	}
	if reason(t, opening) != "other" || reason(t, sealing) != "other" {
		t.Errorf("%v, %v", opening, sealing)
	}
}

// TestNilEncryption: a program may have passed over the error of Load.
//
// Promise: Mistakes of programs
func TestNilEncryption(t *testing.T) {
	t.Parallel()
	var enc *encryption.Encryption
	if _, err := enc.Use("unencrypted"); reason(t, err) != "not configured" {
		t.Errorf("got %v", err)
	}
	for _, target := range []encryption.Target{enc.State(), enc.Plan(), enc.RemoteState("x")} {
		if _, err := target.Decrypt(t.Context(), []byte(state)); reason(t, err) != "not configured" {
			t.Errorf("got %v", err)
		}
		if _, err := target.Encrypt(t.Context(), []byte(state)); reason(t, err) != "not configured" {
			t.Errorf("got %v", err)
		}
	}
	if _, err := enc.DeriveKey(t.Context(), "key_provider.a.b", encryption.Derivation{Info: "x", Length: 32}); err == nil {
		t.Error("a key was derived from nothing")
	}
	enc.Close()
}

// stubborn is a method that gives the context's end, or another reason, as it is told.
type stubborn struct{ err error }

func (s stubborn) Decrypt(ctx context.Context, _ driver.Keys, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, s.err
}

func (s stubborn) Encrypt(ctx context.Context, keys driver.Keys, plain []byte) ([]byte, error) {
	return s.Decrypt(ctx, keys, plain)
}

// TestEndOfContext: whatever a key provider or a method makes of it, the error says that
// the program ended the call, and gives none of the reasons.
//
// Promise: Mistakes of programs
func TestEndOfContext(t *testing.T) {
	t.Parallel()
	registry := lighttest.Registry()
	for name, err := range map[string]error{
		"no_key": encryption.ErrNoKey, "damaged": encryption.ErrDamaged, "other": errors.New("signal: killed"),
	} {
		registry.Methods = append(registry.Methods, driver.Block[driver.Method]{
			Table: attr.Table{Name: name}, Build: func(attr.Values) (driver.Method, error) { return stubborn{err}, nil },
		})
	}
	enc := newEncryption(t, registry, all)
	cause := errors.New("the server shuts down")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	late, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	exportable := newEncryption(t, lighttest.Registry(), `key_provider "static" "a" {
		key        = "00000000000000000000000000000000"
		exportable = true
	}`)
	_, err := exportable.DeriveKey(cancelled, "key_provider.static.a", encryption.Derivation{Info: "x", Length: 32})
	says := golden(t, "the context ends")
	if says.Error(t, "deriving", err); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Errorf("deriving: got %v", err)
	}
	for _, methods := range [][]string{
		{"method.aes_gcm.a"}, {"no_key"}, {"no_key", "method.aes_gcm.a"}, {"damaged"}, {"other"},
	} {
		target := use(t, enc, methods...)
		check := func(ctx context.Context, name string, err error) {
			says.Error(t, fmt.Sprintf("%s, %s", name, methods), err)
			if !errors.Is(err, ctx.Err()) || !errors.Is(err, context.Cause(ctx)) || reason(t, err) != "other" {
				t.Errorf("%v: got %v", methods, err)
			}
			if failed, _ := errors.AsType[*encryption.Error](err); len(failed.Attempts) != 1 {
				t.Errorf("%v: %d attempts", methods, len(failed.Attempts))
			}
		}
		for name, ctx := range map[string]context.Context{"cancelled": cancelled, "late": late} {
			_, err := target.Decrypt(ctx, seal(t, all, state))
			check(ctx, name+", opening", err)
			if methods[0] != "method.aes_gcm.a" {
				_, err = target.Encrypt(ctx, []byte(state))
				check(ctx, name+", sealing", err)
			}
		}
	}
}
