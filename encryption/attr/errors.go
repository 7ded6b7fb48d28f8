package attr

import (
	"errors"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/syntax"
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
	names := make([]string, len(attrs))
	for i, a := range attrs {
		names[i] = a.Name
	}
	return syntax.Suggest(name, names)
}
