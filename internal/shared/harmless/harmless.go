// Package harmless holds values for the fields Harmless and HarmlessIf of attributes of several kinds.
package harmless

import (
	"slices"
	"strconv"
)

// Secret is the reason for a secret that does not belong to another attribute, such as an ID.
const Secret = "It goes where the code says, as the code's own secrets do, and tells nobody anything of those."

// OneOf returns a function that reports whether a value is one of values.
func OneOf(values ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(values, value) }
}

// True reports whether value switches a bool attribute on.
func True(value string) bool { b, err := strconv.ParseBool(value); return err == nil && b }

// False reports whether value switches a bool attribute off.
func False(value string) bool { b, err := strconv.ParseBool(value); return err == nil && !b }
