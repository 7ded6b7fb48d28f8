package sops

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// selection decides which values are encrypted: those below a name that matches,
// or those that are not.
type selection struct {
	matches func(name string) bool
	seals   bool // what matches is encrypted, and nothing else
}

// selects reads the rules for what stays unencrypted, which are in the file and
// not authenticated. Where every value must be encrypted there is nothing to
// select. The cost of a regular expression is bounded.
func (m *metadata) selects(state object, partial bool) (selection, error) {
	s := selection{seals: m.EncryptedSuffix != "" || m.EncryptedRegex != ""}
	pattern := m.EncryptedRegex + m.UnencryptedRegex // one of the rules at most is there
	switch suffix := m.EncryptedSuffix + m.UnencryptedSuffix; {
	case !partial:
		return selection{matches: func(string) bool { return false }}, nil
	case m.UnencryptedCommentRegex+m.EncryptedCommentRegex != "":
		return s, errors.New("comments decide which values of the file are encrypted, which is not supported here; " +
			"use encrypted_regex and the like")
	case pattern == "":
		suffix = cmp.Or(suffix, "_unencrypted") // as sops does without any rule
		s.matches = func(name string) bool { return strings.HasSuffix(name, suffix) }
		return s, nil
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || len(pattern) > maxSelector {
		return s, fmt.Errorf("%w: it selects values by something that is not a regular expression, or a very long one", encryption.ErrDamaged)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || float64(len(program.Inst))*float64(countNames(state, 1)) > maxSelecting {
		return s, errors.New("the file selects its encrypted values by a regular expression that takes too long")
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return s, err
	}
	s.matches = compiled.MatchString
	return s, nil
}

// countNames counts the names on the ways to all values.
func countNames(value any, depth int) int {
	switch v := value.(type) {
	case object:
		n := 0
		for _, item := range v {
			n += countNames(item.value, depth+1)
		}
		return n
	case []any:
		n := 0
		for _, element := range v {
			n += countNames(element, depth)
		}
		return n
	}
	return depth
}
