// Package lazyregexp has regular expressions that are compiled when they are first
// used. The provider has about seventy, every command of a CLI starts it, and few
// reads use more than a handful.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a [regexp.Regexp].
type Regexp struct{ compiled func() *regexp.Regexp }

// New is [regexp.MustCompile], which panics at the first use.
func New(expression string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// MatchString is that of [regexp.Regexp].
func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// Match is that of [regexp.Regexp].
func (r *Regexp) Match(b []byte) bool { return r.compiled().Match(b) }

// FindString is that of [regexp.Regexp].
func (r *Regexp) FindString(s string) string { return r.compiled().FindString(s) }

// FindStringSubmatch is that of [regexp.Regexp].
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

// FindSubmatch is that of [regexp.Regexp].
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.compiled().FindSubmatch(b) }

// ReplaceAllString is that of [regexp.Regexp].
func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compiled().ReplaceAllString(s, with)
}
