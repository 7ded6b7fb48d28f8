package store

import (
	"errors"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// A lock is what anyone has written who can write to the store.
func TestCosts(t *testing.T) {
	amplification.Grow(t, 300, amplification.InJSON(`{"ID":"1","Who":"x"}`), func(_ *testing.T, file string) func() error {
		return func() error {
			lock, ok := ParseLock([]byte(file))
			if !ok || lock.Holder() == "" {
				return errors.New("it is no lock")
			}
			return nil
		}
	})
}
