package gcs

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// TestCosts tests what the answers of a service cost: a page of a list, the description of an object, and the rules of
// a bucket.
func TestCosts(t *testing.T) {
	for name, decode := range map[string]func(file []byte) error{
		`{"items":[{"name":"x"}]}`:                    func(file []byte) error { return json.Unmarshal(file, new(page)) },
		`{"generation":"1"}`:                          func(file []byte) error { return json.Unmarshal(file, new(stored)) },
		`{"retentionPolicy":{"retentionPeriod":"1"}}`: func(file []byte) error { return json.Unmarshal(file, new(rules)) },
	} {
		amplification.Grow(t, 300, amplification.InJSON(name), func(_ *testing.T, file string) func() error {
			return func() error {
				if err := decode([]byte(file)); err != nil {
					return errors.Join(errors.New("it is no answer"), err)
				}
				return nil
			}
		})
	}
}
