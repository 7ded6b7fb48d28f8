package syntax_test

import (
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// TestDomains: labels, and names made of them.
func TestDomains(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	domain := strings.Repeat("a.", 126) + "a"
	for text, want := range map[string]struct{ label, domain bool }{
		"a": {true, true}, "a-1": {true, true}, "1": {true, true}, long: {true, true}, long + "a": {false, true}, "a.b": {false, true},
		domain: {false, true}, domain + "a": {}, "": {}, "-a": {}, "a-": {}, "A": {}, "a_b": {}, "a..b": {}, ".a": {}, "a.": {}, "a-.b": {},
		"a.-b": {}, "a\n": {}, "a/b": {},
	} {
		if got := syntax.IsLabel(text); got != want.label {
			t.Errorf("%q is a label: %t", text, got)
		}
		if got := syntax.IsDomain(text); got != want.domain {
			t.Errorf("%q is a domain: %t", text, got)
		}
	}
}
