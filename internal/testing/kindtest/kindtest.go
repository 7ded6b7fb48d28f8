// Package kindtest provides common parts for the tests of key providers and methods. Those tests are in the folders of
// their kinds.
package kindtest

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/mixes"
)

// TryBuild creates a key provider or a method as a configuration would. A nil env switches the environment off.
func TryBuild[T any](block driver.Block[T], attrs testkit.Attrs, env attr.LookupEnv) (T, error) {
	var none T
	kind := "method."
	if _, ok := any(&none).(*driver.KeyProvider); ok {
		kind = "key_provider."
	}
	values, err := unstable.NewEntry(kind+block.Name+".x", block.Table, attrs).Decode(block.Table, env)
	if err != nil {
		return none, err
	}
	return block.Build(values)
}

// Build works like [TryBuild], but the attributes must be valid.
func Build[T any](tb testing.TB, block driver.Block[T], attrs testkit.Attrs, env attr.LookupEnv) T {
	tb.Helper()
	built, err := TryBuild(block, attrs, env)
	if err != nil {
		tb.Fatal(err)
	}
	return built
}

// service lists the interfaces that every key provider with a service implements.
type service interface {
	driver.KeyMaker
	driver.Recognizer
	driver.Deriver
	driver.Closer
}

// NewKey makes a key provider with a service create a key. It returns the key and the metadata that a file stores.
func NewKey(tb testing.TB, p driver.KeyProvider) (key []byte, stored json.RawMessage) {
	tb.Helper()
	key, stored, err := p.(service).NewKey(tb.Context(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return key, stored
}

// Key returns the key that a key provider with these attributes derives from the stored metadata.
func Key(
	t *testing.T, block driver.Block[driver.KeyProvider], attrs testkit.Attrs, env attr.LookupEnv, stored json.RawMessage,
) ([]byte, error) {
	t.Helper()
	p, err := TryBuild(block, attrs, env)
	if err != nil {
		return nil, err
	}
	return p.Key(t.Context(), nil, stored)
}

// Sweep requests a key while environment variables are set that a library reads by itself, or that table declares. It
// does so with the environment on, and with the environment off. With the environment off, no variable may have an
// effect.
func Sweep(t *testing.T, table attr.Table, key []byte, values func(name string) []string,
	ask func(t *testing.T, mode string, lookup attr.LookupEnv) ([]byte, error),
) {
	t.Helper()
	for name, v := range mixes.Of(append(mixes.Known(), mixes.Declared(table.Attrs...)...), values) {
		t.Run(name, func(t *testing.T) {
			v.Past(t, func() error {
				_, err := ask(t, "on", os.LookupEnv)
				return err
			})
		})
	}
	for name, v := range mixes.Of(append(mixes.Known(mixes.Refused), mixes.Declared(table.Attrs...)...), values) {
		t.Run("off, "+name, func(t *testing.T) {
			v.Past(t, func() error {
				if got, err := ask(t, "off", nil); !bytes.Equal(got, key) {
					t.Errorf("the environment is off, and a variable has an effect: %v", err)
				}
				return nil
			})
		})
	}
}

// BehindProxy returns the environment for a test that cloudtest.CheckProxies runs in a separate process: an empty one
// if the environment is on, or nil if it is off. In any other process, the test is skipped.
func BehindProxy(t *testing.T) attr.LookupEnv {
	t.Helper()
	modes := map[string]attr.LookupEnv{"on": func(string) (string, bool) { return "", false }, "off": nil}
	lookup, ok := modes[os.Getenv("STATECRYPT_TEST_ENVIRONMENT")]
	if !ok {
		t.Skip("another test runs this one")
	}
	return lookup
}
