// Package harmless has values of Harmless and HarmlessIf that several kinds use.
package harmless

import (
	"slices"
	"strconv"
)

// Secret is the reason of secrets that are no part of an identity with others.
const Secret = "It goes where the code says, as the code's own secrets do, and tells nobody anything of those."

// OneOf reports whether a value is one of these.
func OneOf(values ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(values, value) }
}

// True reports whether value switches a bool attribute on.
func True(value string) bool { b, err := strconv.ParseBool(value); return err == nil && b }

// False reports whether value switches a bool attribute off.
func False(value string) bool { b, err := strconv.ParseBool(value); return err == nil && !b }
