package testkit

// Oddities are values that nobody means, and what an error says of them. None of them is
// empty, and all are short.
func Oddities() map[string]string {
	return map[string]string{
		"states\n":    "line break",
		"'states'":    "quotation marks around it",
		"var.states":  "is the name of a variable in quotation marks",
		"$STATES_KEY": "begins with a variable of the shell",
		"<states>":    "is a placeholder",
		"[MASKED]":    "is what logs show in place of a secret; set the secret itself",
		" states":     "begins or ends with a space",
	}
}
