package provider

import "strings"

const place = "in the provider block"

func show(err error) string { return sentence(err.Error()) }

// sentence is listed, so it may look at the text.
func sentence(s string) string {
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}
