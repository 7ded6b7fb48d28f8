package config

import (
	"maps"
	"slices"
)

// Functions returns the names of all functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(functions(""))) }
