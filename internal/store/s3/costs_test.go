package s3

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// An answer of DynamoDB has what anybody has written who can write to the table.
func TestCosts(t *testing.T) {
	answers := []amplification.Grammar{{
		Name: "answer of DynamoDB",
		Productions: []amplification.Production{
			{Name: "members"}, {Name: "length of names"}, {Name: "length of texts"}, {Name: "depth", Most: 9000},
		},
		File: func(n amplification.Counts) string {
			var text strings.Builder
			text.WriteString(`{"Item":{"Info":{"S":"` + strings.Repeat("x", 1+n["length of texts"]) + `"}`)
			for i := range n["members"] {
				fmt.Fprintf(&text, `,"%d%s":{"S":""}`, i, strings.Repeat("x", n["length of names"]))
			}
			return text.String() + `},"deep":` + strings.Repeat("[", n["depth"]) + strings.Repeat("]", n["depth"]) + "}"
		},
	}}
	amplification.Grow(t, 300, answers, func(_ *testing.T, file string) func() error {
		return func() error {
			if found, err := itemIn([]byte(file)); err != nil || found.Info == nil {
				return errors.Join(errors.New("it is no item"), err)
			}
			return nil
		}
	})
}
