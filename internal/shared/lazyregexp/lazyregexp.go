// Package lazyregexp provides regular expressions that are compiled on first use. The provider has more than
// a hundred of them, every CLI command starts the provider, and most reads use only a handful.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a [regexp.Regexp] that is compiled on first use.
type Regexp struct{ compiled func() *regexp.Regexp }

// New returns a Regexp. If the expression is invalid, the first use panics.
func New(expression string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// MatchString calls [regexp.Regexp.MatchString].
func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// Match calls [regexp.Regexp.Match].
func (r *Regexp) Match(b []byte) bool { return r.compiled().Match(b) }

// FindString calls [regexp.Regexp.FindString].
func (r *Regexp) FindString(s string) string { return r.compiled().FindString(s) }

// FindStringSubmatch calls [regexp.Regexp.FindStringSubmatch].
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

// FindSubmatch calls [regexp.Regexp.FindSubmatch].
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.compiled().FindSubmatch(b) }

// ReplaceAllString calls [regexp.Regexp.ReplaceAllString].
func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compiled().ReplaceAllString(s, with)
}
