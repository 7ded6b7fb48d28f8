package encryption_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// TestStrangers: what people have in place of a state is named, as recognize has it or as JSON that is none.
func TestStrangers(t *testing.T) {
	t.Parallel()
	target, says := newEncryption(t, lighttest.Registry(), keys).State(), golden(t, "strangers")
	for _, file := range []string{
		"<html lang=en>",
		"[]",
		`"state"`,
		strings.Repeat("word ", 20),
		`{"x":{"sensitive":false,"type":"string"}}`,
		`{"format_version":"1.0","provider_schemas":{}}`,
		`{"version":1,"projects":{}}`,
		`{"values":{}}`,
		`{}`,
		"   ",
		`{"version":4,"terraform_ver`,
		"not a state",
	} {
		_, err := target.Decrypt(t.Context(), []byte(file))
		if says.Error(t, fmt.Sprintf("%.100q", file), err); !errors.Is(err, encryption.ErrDamaged) {
			t.Errorf("%.20q: got %v", file, err)
		}
	}
}
