// Package testkit is what tests of all modules share.
package testkit

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// Rounds is how often a loop of many rounds runs: a tenth of all, at least once, and
// all of them in "make soak".
func Rounds(all int) int {
	if os.Getenv("STATECRYPT_SOAK") != "" {
		return all
	}
	return max(1, all/10)
}

// OneIsEnough skips an acceptance test in a short run: the first CLI has run it, and "make
// test-versions" runs it on all of them.
func OneIsEnough(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("another CLI adds little to it")
	}
}

// Sample is every tenth of many rows, and all of them in "make soak": for what a change rarely
// touches, such as files of others beside programs of others.
func Sample[V any](all []V) (sample []V) {
	step := max(1, len(all)/Rounds(len(all)))
	for i := 0; i < len(all); i += step {
		sample = append(sample, all[i])
	}
	return sample
}

// Some are all rows of a table, or with -short, as under the race detector, two of them: for tests
// whose rows start processes, and differ in nothing that memory is shared for.
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

// Attrs are the attributes of an entry.
type Attrs map[string]cty.Value

// With returns a copy with more attributes, in pairs of a name and a string, a
// number, a bool, a list of strings or a block. The value nil takes one away.
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

// List is a list of strings, which may be empty.
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

// Program is the path in an environment variable. If that is not set, and with
// -short, the test is skipped.
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

// OneGoroutine skips a long test with -short, as the race detector runs the tests: what
// it tests runs in one goroutine, in which there is nothing to find.
func OneGoroutine(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("all of it runs in one goroutine, and it takes long")
	}
}
