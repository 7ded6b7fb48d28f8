// Package testkit contains helpers for the tests of all modules.
package testkit

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// Rounds returns the number of rounds for a long loop: a tenth of all, but at least one. With "make soak", it
// returns all.
func Rounds(all int) int {
	if os.Getenv("STATECRYPT_SOAK") != "" {
		return all
	}
	return max(1, all/10)
}

// OneIsEnough skips an acceptance test in short mode. The test has already run with the first CLI, and "make
// test-versions" runs it with all of them.
func OneIsEnough(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("another CLI adds little to it")
	}
}

// Sample returns every tenth row, or all rows with "make soak". It is for tests that changes rarely affect,
// such as tests of other programs' files against other programs.
func Sample[V any](all []V) (sample []V) {
	step := max(1, len(all)/Rounds(len(all)))
	for i := 0; i < len(all); i += step {
		sample = append(sample, all[i])
	}
	return sample
}

// Some returns all rows of a table, or only two in short mode, as under the race detector. It is for tests
// whose rows start processes and do not differ in how they share memory.
func Some[V any](rows map[string]V) map[string]V {
	if !testing.Short() {
		return rows
	}
	few := map[string]V{}
	for _, name := range slices.Sorted(maps.Keys(rows))[:min(2, len(rows))] {
		few[name] = rows[name]
	}
	return few
}

// Attrs holds the attributes of an entry.
type Attrs map[string]cty.Value

// With returns a copy with more attributes, given as pairs of a name and a value: a string, a number, a bool,
// a list of strings or a block. The value nil removes an attribute.
func (a Attrs) With(pairs ...any) Attrs {
	out := Attrs{}
	maps.Copy(out, a)
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		if pairs[i+1] == nil {
			delete(out, name)
			continue
		}
		out[name] = value(pairs[i+1])
	}
	return out
}

func value(v any) cty.Value {
	switch v := v.(type) {
	case string:
		return cty.StringVal(v)
	case int:
		return cty.NumberIntVal(int64(v))
	case float64:
		return cty.NumberFloatVal(v)
	case bool:
		return cty.BoolVal(v)
	case []string:
		return List(v...)
	case Attrs:
		return cty.ObjectVal(v)
	}
	return v.(cty.Value)
}

// List returns a list of strings, which may be empty.
func List(texts ...string) cty.Value {
	if len(texts) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	values := make([]cty.Value, len(texts))
	for i, text := range texts {
		values[i] = cty.StringVal(text)
	}
	return cty.ListVal(values)
}

// Program returns the path in an environment variable. It skips the test if the variable is not set, and in
// short mode.
func Program(tb testing.TB, variable string) string {
	tb.Helper()
	path := os.Getenv(variable)
	switch {
	case testing.Short():
		tb.Skip("a program of others needs seconds")
	case path == "":
		tb.Skipf("%s is not set; make test-all and make test-services build the programs of others and set the variables for them", variable)
	}
	return path
}

// OneGoroutine skips a long test in short mode, as under the race detector: the tested code runs in a single
// goroutine, so there is no race to find.
func OneGoroutine(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("all of it runs in one goroutine, and it takes long")
	}
}
