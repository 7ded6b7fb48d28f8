package testkit

import "github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"

// Oddities maps values that users set by mistake to the description that errors should contain. All values
// are short and not empty.
func Oddities() map[string]string {
	out := map[string]string{}
	for _, value := range []string{"states\n", "'states'", "var.states", "$STATES_KEY", "<states>", "[MASKED]", " states"} {
		if out[value] = recognize.Text(value, recognize.Value).Said(""); out[value] == "" {
			panic("nothing is odd any more about " + value)
		}
	}
	return out
}
