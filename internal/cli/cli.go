// Package cli has the common parts of two tables of commands and flags: statecrypt's own, and
// Terraform's and OpenTofu's under wrap.
package cli

import (
	"slices"
	"strings"
)

// Command is a row of a [Table].
type Command[T any] struct {
	Name     string // one word or two
	Wants    string // the arguments, in words for people
	Min, Max int    // the allowed numbers of arguments
	Flags    string // separated by spaces; a flag that takes a value has "=" after its name, and maybe a name of the value
	Does     T
}

// Many is the Max of commands without a limit.
const Many = 1 << 30

// FlagNames returns the names of the flags of the command.
func (c Command[T]) FlagNames() (names []string) {
	for flag := range strings.FieldsSeq(c.Flags) {
		name, _, _ := strings.Cut(flag, "=")
		names = append(names, name)
	}
	return names
}

// HasFlag reports whether the command has the flag.
func (c Command[T]) HasFlag(name string) bool { return slices.Contains(c.FlagNames(), name) }

// Value returns the name of a flag's value in the help, such as "FILE", and reports whether the flag takes a value.
func (c Command[T]) Value(flag string) (value string, takes bool) {
	for known := range strings.FieldsSeq(c.Flags) {
		if value, takes = strings.CutPrefix(known, flag+"="); takes {
			return value, true
		}
	}
	return "", false
}

// TakesValue reports whether a value follows the flag.
func (c Command[T]) TakesValue(flag string) bool {
	_, takes := c.Value(flag)
	return takes
}

// Mistake explains flags that a command does not have.
type Mistake struct {
	Flags string // separated by spaces
	With  string // the command, or a flag that the command has; "" for any
	Meant string
}

// Meant returns the text of the first mistake that covers a flag, and "" if none does.
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

// Find returns the command with a name, and false if there is none.
func (t Table[T]) Find(name string) (Command[T], bool) {
	if at := slices.Index(t.Names(), name); at >= 0 {
		return t[at], true
	}
	return Command[T]{}, false
}

// Names returns the names of the commands.
func (t Table[T]) Names() (names []string) {
	for _, c := range t {
		names = append(names, c.Name)
	}
	return names
}

// With returns the names of the commands that have a flag.
func (t Table[T]) With(flag string) []string {
	return slices.DeleteFunc(slices.Clone(t), func(c Command[T]) bool { return !c.HasFlag(flag) }).Names()
}

// FlagNames returns the names of the flags of all commands.
func (t Table[T]) FlagNames() (names []string) {
	for _, c := range t {
		names = append(names, c.FlagNames()...)
	}
	return names
}
