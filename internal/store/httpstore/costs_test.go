package httpstore

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// What a server answers is read for its label.
func TestCosts(t *testing.T) {
	amplification.Grow(t, 300, amplification.InJSON(`{"serial":1,"lineage":"x"}`), func(_ *testing.T, file string) func() error {
		return func() error {
			store.Identity([]byte(file))
			return nil
		}
	})
}
