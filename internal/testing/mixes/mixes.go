// Package mixes chooses combinations of environment variables, for tests that do not know which variables cause harm
// together.
package mixes

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Variables are the environment variables that a test sets.
type Variables map[string]string

// named matches a variable in an error: a variable that is refused beside a secret, has an invalid value, or steers a
// client.
var named = regexp.MustCompile(`\bvariable ([A-Za-z_0-9]+)`)

// Past sets the variables in v, and calls ask. As long as the error names variables, Past removes these and calls ask
// again, so that it also finds problems hidden by another variable.
func (v Variables) Past(t *testing.T, ask func() error) {
	t.Helper()
	for name, value := range v {
		t.Setenv(name, value)
	}
	for range v {
		err := ask()
		if err == nil {
			return
		}
		again := false
		for _, m := range named.FindAllStringSubmatch(err.Error(), -1) {
			again = again || os.Getenv(m[1]) != ""
			t.Setenv(m[1], "")
		}
		if !again {
			return
		}
	}
}

// Of returns combinations of variables, each with a name: all of them, all but one, and random halves. Each variable
// gets a random one of its possible values. There are a few hundred combinations, see [testkit.Rounds]. Their names
// contain the random seed, which STATECRYPT_SEED can set.
func Of(names []string, values func(name string) []string) iter.Seq2[string, Variables] {
	const halves = 200
	m := newMix(names, values)
	return func(yield func(string, Variables) bool) {
		if !yield(m.set("all", func(string) bool { return true })) {
			return
		}
		for _, i := range m.rand.Perm(len(m.names))[:testkit.Rounds(len(m.names))] {
			if !yield(m.set("all but "+m.names[i], func(name string) bool { return name != m.names[i] })) {
				return
			}
		}
		for i := range testkit.Rounds(halves) {
			if !yield(m.set(fmt.Sprintf("half %d", i), func(string) bool { return m.rand.IntN(2) == 0 })) {
				return
			}
		}
	}
}

// Pairs returns each pair of variables, or a tenth of the pairs, in the same form as [Of].
func Pairs(names []string, values func(name string) []string) iter.Seq2[string, Variables] {
	m := newMix(names, values)
	return func(yield func(string, Variables) bool) {
		for i, one := range m.names {
			for _, other := range m.names[i+1:] {
				if m.rand.IntN(10) >= testkit.Rounds(10) {
					continue
				}
				if !yield(m.set(one+" and "+other, func(name string) bool { return name == one || name == other })) {
					return
				}
			}
		}
	}
}

type mix struct {
	names  []string
	values func(name string) []string
	rand   *rand.Rand
	seed   uint64
}

func newMix(names []string, values func(name string) []string) mix {
	seed, err := strconv.ParseUint(os.Getenv("STATECRYPT_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	return mix{slices.Compact(slices.Sorted(slices.Values(names))), values, rand.New(rand.NewPCG(seed, 0)), seed}
}

func (m mix) set(what string, keep func(name string) bool) (string, Variables) {
	v := Variables{}
	for _, name := range m.names {
		if keep(name) {
			some := m.values(name)
			v[name] = some[m.rand.IntN(len(some))]
		}
	}
	return fmt.Sprintf("%s, seed %d", what, m.seed), v
}

// Known returns the variables that packages of this program read by themselves, except the variables in the given
// classes, and variables about the process itself.
func Known(without ...Class) (names []string) {
	for _, some := range Table() {
		for name := range strings.FieldsSeq(strings.ReplaceAll(some.Names, "*", "X")) {
			if !slices.Contains(without, some.Class) && !world.IsBare(strings.ToUpper(name)) && name != "GODEBUG" {
				names = append(names, name)
			}
		}
	}
	return names
}

// Declared returns the variables named in the attributes.
func Declared(attrs ...attr.Attr) (names []string) {
	for _, a := range attrs {
		names = slices.Concat(names, a.Env, Declared(a.Attrs...))
	}
	return names
}
