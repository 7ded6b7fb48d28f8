// Package harmless holds values for the Harmless and HarmlessIf fields of attributes, for use by several
// kinds.
package harmless

import (
	"slices"
	"strconv"
)

// Secret is the reason why a secret that belongs to no other attribute, such as an ID, is harmless.
const Secret = "It goes where the code says, as the code's own secrets do, and tells nobody anything of those."

// OneOf returns a function that reports whether its argument is one of values.
func OneOf(values ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(values, value) }
}

// True reports whether value is a bool that is true.
func True(value string) bool { b, err := strconv.ParseBool(value); return err == nil && b }

// False reports whether value is a bool that is false.
func False(value string) bool { b, err := strconv.ParseBool(value); return err == nil && !b }
