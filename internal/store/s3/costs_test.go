package s3

import (
	"errors"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// An answer of DynamoDB has what anyone has written who can write to the table.
func TestCosts(t *testing.T) {
	amplification.Grow(t, 300, amplification.InJSON(`{"Item":{"Info":{"S":"x"}}}`), func(_ *testing.T, file string) func() error {
		return func() error {
			if found, err := itemIn([]byte(file)); err != nil || found.Info == nil {
				return errors.Join(errors.New("it is no item"), err)
			}
			return nil
		}
	})
}
