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

// selection determines which values are encrypted: either those below a matching name, or all others.
type selection struct {
	matches func(name string) bool
	seals   bool  // true if values below matching names are encrypted; false if all others are
	perByte int64 // the number of instructions in the regular expression, which limits the cost per byte

	known map[string]bool // the results for names so far; states have few different names
	cost  *meter.Meter
}

const (
	instructions   = 32 // the number of instructions, each run for one byte, that one unit pays for
	perInstruction = 2  // the units for compiling one instruction
)

// has reports whether a name matches.
func (s *selection) has(name string) (bool, error) {
	matches, known := s.known[name]
	if known {
		return matches, nil
	}
	err := s.cost.Charge(s.perByte*int64(len(name))/instructions, "the names in the file and the regular expression for the encrypted values")
	if err != nil {
		return false, fmt.Errorf("%w; use a simpler regular expression", err)
	}
	s.known[name] = s.matches(name)
	return s.known[name], nil
}

// selects returns the selection that follows from the file's rules. The rules are not authenticated, so if
// partial is false, they are ignored, and all values must be encrypted.
func (m *metadata) selects(partial bool, cost *meter.Meter) (*selection, error) {
	s := &selection{seals: m.EncryptedSuffix != "" || m.EncryptedRegex != "", known: map[string]bool{}, cost: cost}
	pattern := m.EncryptedRegex + m.UnencryptedRegex // at most one of the rules is set
	switch suffix := m.EncryptedSuffix + m.UnencryptedSuffix; {
	case !partial:
		s.matches, s.seals = func(string) bool { return false }, false
		return s, nil
	case m.UnencryptedCommentRegex+m.EncryptedCommentRegex != "":
		return s, errors.New("comments decide which values of the file are encrypted, but this is not supported here; use a rule " +
			"like encrypted_regex")
	case pattern == "":
		suffix = cmp.Or(suffix, "_unencrypted") // the suffix that sops uses if there is no rule
		s.matches = func(name string) bool { return strings.HasSuffix(name, suffix) }
		return s, nil
	}
	return s, s.compile(pattern)
}

// compile compiles a regular expression. It rejects expressions that are too long or have too many
// instructions, which repetitions multiply.
func (s *selection) compile(pattern string) error {
	const what = "the instructions of the regular expression for the encrypted values"
	if err := s.cost.Charge(int64(len(pattern)), what); err != nil {
		return err
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return fmt.Errorf("%w: the regular expression for the encrypted values is not valid", driver.ErrDamaged)
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

// instructionsOf returns an upper bound for the number of instructions that an expression compiles to.
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
