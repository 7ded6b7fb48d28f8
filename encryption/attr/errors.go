package attr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
)

// Errors holds the mistakes found in one pass.
type Errors []error

func (e Errors) Error() string { return errors.Join(e...).Error() }

// Unwrap returns the mistakes, for [errors.Is] and [errors.As].
func (e Errors) Unwrap() []error { return e }

// Err returns nil when there are none, and the mistake itself when it is the
// only one.
func (e Errors) Err() error {
	switch len(e) {
	case 0:
		return nil
	case 1:
		return e[0]
	}
	return e
}

func didYouMean(name string, attrs []Attr) string {
	// As the RFC of OpenTofu's encryption spelled it.
	if _, has := Find(attrs, "keys"); has && name == "key_provider" {
		name = "keys"
	}
	names := make([]string, len(attrs))
	for i, a := range attrs {
		names[i] = a.Name
	}
	return Suggest(name, names)
}

// Suggest returns ". Did you mean …?" with the candidate nearest to name, and
// "" when none is near.
func Suggest(name string, candidates []string) string {
	nearest, best := "", 3
	for _, c := range candidates {
		if d := levenshtein.Distance(strings.ToLower(name), c, nil); d < best {
			nearest, best = c, d
		}
	}
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(". Did you mean %q?", nearest) // a candidate may come from a file
}
