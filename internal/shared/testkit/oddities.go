package testkit

import "github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"

// Oddities are values that nobody means, and what an error says of them, which is something of
// each. None of them is empty, and all are short.
func Oddities() map[string]string {
	out := map[string]string{}
	for _, value := range []string{"states\n", "'states'", "var.states", "$STATES_KEY", "<states>", "[MASKED]", " states"} {
		if out[value] = recognize.Text(value, recognize.Value).Said(""); out[value] == "" {
			panic("nothing is odd any more about " + value)
		}
	}
	return out
}
