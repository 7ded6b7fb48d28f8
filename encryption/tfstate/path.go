package tfstate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// valueError is an error about a part of a value, with the path to that part.
type valueError struct {
	steps  []string // innermost first
	reason error
}

// maxSteps is the maximum number of path steps that an error shows.
const maxSteps = 10

func (e *valueError) Error() string {
	steps, more := slices.Clone(e.steps), ""
	slices.Reverse(steps)
	if len(steps) > maxSteps {
		steps, more = steps[:maxSteps], "…"
	}
	return "at " + strings.Join(steps, "") + more + ": " + e.reason.Error()
}

func (e *valueError) Unwrap() error { return e.reason }

// within adds a step to the beginning of the path in err.
func within(step string, err error) error {
	e, ok := errors.AsType[*valueError](err)
	if !ok {
		e = &valueError{reason: err}
	}
	e.steps = append(e.steps, step)
	return e
}

func indexStep(i int) string { return "[" + strconv.Itoa(i) + "]" }

// attributeStep returns the path step to an attribute. It shows the name, because the name is part
// of the type.
func attributeStep(name string) string { return "." + quote(name) }

// keyStep returns the path step to a key of a map. It hides the key if the output is sensitive,
// because a key is data like the values. It may be a user name or a token.
func (d *decoder) keyStep(key string) string {
	if d.sensitive {
		return "[…]"
	}
	return "[" + quote(key) + "]"
}

// unsupported returns the error for an attribute that the type does not have. It hides the name if
// the output is sensitive, because the name may be data.
func (d *decoder) unsupported(name string) error {
	if d.sensitive {
		return errors.New("the value has an attribute that is not in its type")
	}
	return fmt.Errorf("the attribute %s is not in the type", quote(name))
}

const (
	maxShown        = 60  // maximum length of a name or a key in an error, in bytes
	maxShownAddress = 300 // maximum length of an address in an error, in bytes; addresses in nested modules are long
)

func quote(text string) string { return outside.Quoted(text, maxShown) }

// show returns an address, or a part of one, escaped and shortened for an error.
func show(address string) string { return outside.Line(address, maxShownAddress) }
