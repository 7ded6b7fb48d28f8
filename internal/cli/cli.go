// Package cli provides the common parts of two tables of commands and flags: statecrypt's own, and the one for
// Terraform and OpenTofu under wrap.
package cli

import (
	"slices"
	"strings"
)

// Command is a row in a [Table].
type Command[T any] struct {
	Name     string // one or two words
	Wants    string // a description of the arguments, for users
	Min, Max int    // the minimum and maximum number of arguments
	Flags    string // separated by spaces; a flag that takes a value ends with "=", which may be followed by a name for the value
	Does     T
}

// Many is the value of Max for commands without a limit.
const Many = 1 << 30

// FlagNames returns the names of the command's flags.
func (c Command[T]) FlagNames() (names []string) {
	for flag := range strings.FieldsSeq(c.Flags) {
		name, _, _ := strings.Cut(flag, "=")
		names = append(names, name)
	}
	return names
}

// HasFlag reports whether the command has the flag called name.
func (c Command[T]) HasFlag(name string) bool { return slices.Contains(c.FlagNames(), name) }

// Value returns the name that the help uses for a flag's value, such as "FILE", and reports whether the flag takes a
// value.
func (c Command[T]) Value(flag string) (value string, takes bool) {
	for known := range strings.FieldsSeq(c.Flags) {
		if value, takes = strings.CutPrefix(known, flag+"="); takes {
			return value, true
		}
	}
	return "", false
}

// TakesValue reports whether the flag takes a value.
func (c Command[T]) TakesValue(flag string) bool {
	_, takes := c.Value(flag)
	return takes
}

// Mistake explains flags that a command does not have.
type Mistake struct {
	Flags string // separated by spaces
	With  string // the command, or a flag that the command must have; "" for any command
	Meant string
}

// Meant returns the explanation for a flag from the first matching mistake, or an empty string if none matches.
func (c Command[T]) Meant(flag string, mistakes []Mistake) string {
	for _, m := range mistakes {
		if (m.With == "" || m.With == c.Name || c.HasFlag(m.With)) && slices.Contains(strings.Fields(m.Flags), flag) {
			return m.Meant
		}
	}
	return ""
}

// Table lists all commands of a program.
type Table[T any] []Command[T]

// Find returns the named command, or false if there is none.
func (t Table[T]) Find(name string) (Command[T], bool) {
	if at := slices.Index(t.Names(), name); at >= 0 {
		return t[at], true
	}
	return Command[T]{}, false
}

// Names returns the names of all commands.
func (t Table[T]) Names() (names []string) {
	for _, c := range t {
		names = append(names, c.Name)
	}
	return names
}

// With returns the names of the commands that have the flag.
func (t Table[T]) With(flag string) []string {
	return slices.DeleteFunc(slices.Clone(t), func(c Command[T]) bool { return !c.HasFlag(flag) }).Names()
}

// FlagNames returns the flag names of all commands.
func (t Table[T]) FlagNames() (names []string) {
	for _, c := range t {
		names = append(names, c.FlagNames()...)
	}
	return names
}
