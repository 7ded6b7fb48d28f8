package testkit

import "github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"

// Oddities are values that nobody means, and what an error says of them. None of them is
// empty, and all are short.
func Oddities() map[string]string {
	out := map[string]string{}
	for _, value := range []string{"states\n", "'states'", "var.states", "$STATES_KEY", "<states>", "[MASKED]", " states"} {
		out[value], _ = recognize.Oddity(value)
	}
	return out
}
