package sops

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// selection decides which values are encrypted: the ones below a matching name, or all others.
type selection struct {
	matches func(name string) bool
	seals   bool  // matching names are encrypted, and no others
	perByte int64 // the costs of matching a byte of a name: the instructions of a regular expression

	known map[string]bool // :: name that was matched → whether it does; states have few names
	cost  *meter.Meter
}

const (
	instructions   = 32 // that match a byte in one unit of the meter
	perInstruction = 2  // units to compile one
)

// has reports whether a name matches.
func (s *selection) has(name string) (bool, error) {
	matches, known := s.known[name]
	if known {
		return matches, nil
	}
	err := s.cost.Charge(s.perByte*int64(len(name))/instructions, "its names and the regular expression that selects them")
	if err != nil {
		return false, fmt.Errorf("the file selects its encrypted values by a regular expression that takes too long: %w; use a simpler one", err)
	}
	s.known[name] = s.matches(name)
	return s.known[name], nil
}

// selects reads the rules for unencrypted values, which are in the file and not authenticated.
// If partial is false, every value must be encrypted, and it selects none.
func (m *metadata) selects(partial bool, cost *meter.Meter) (*selection, error) {
	s := &selection{seals: m.EncryptedSuffix != "" || m.EncryptedRegex != "", known: map[string]bool{}, cost: cost}
	pattern := m.EncryptedRegex + m.UnencryptedRegex // one of the rules at most is there
	switch suffix := m.EncryptedSuffix + m.UnencryptedSuffix; {
	case !partial:
		s.matches, s.seals = func(string) bool { return false }, false
		return s, nil
	case m.UnencryptedCommentRegex+m.EncryptedCommentRegex != "":
		return s, errors.New("comments decide which values of the file are encrypted, which is not supported here; " +
			"use encrypted_regex and the like")
	case pattern == "":
		suffix = cmp.Or(suffix, "_unencrypted") // as sops does without any rule
		s.matches = func(name string) bool { return strings.HasSuffix(name, suffix) }
		return s, nil
	}
	return s, s.compile(pattern)
}

// compile compiles an expression. It refuses one that is too long or has too many instructions,
// which a repetition multiplies.
func (s *selection) compile(pattern string) error {
	const what = "the instructions of the regular expression that selects its values"
	if err := s.cost.Charge(int64(len(pattern)), what); err != nil {
		return err
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return fmt.Errorf("%w: it selects values by something that is not a regular expression", driver.ErrDamaged)
	}
	s.perByte = instructionsOf(parsed)
	if err := s.cost.Charge(perInstruction*s.perByte, what); err != nil {
		return err
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	s.matches = compiled.MatchString
	return nil
}

// instructionsOf is how many instructions an expression is compiled to, at most.
func instructionsOf(e *syntax.Regexp) int64 {
	n := int64(1 + len(e.Rune))
	for _, part := range e.Sub {
		n += instructionsOf(part)
	}
	if e.Op == syntax.OpRepeat {
		n *= int64(max(e.Min, e.Max, 1)) + 1
	}
	return n
}
