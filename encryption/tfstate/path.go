package tfstate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// valueError is an error about a part of a value, with the path to it.
type valueError struct {
	steps  []string // innermost first
	reason error
}

// maxSteps is how much of the way to an error is shown.
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

// within says that err happened one step further inside.
func within(step string, err error) error {
	e, ok := errors.AsType[*valueError](err)
	if !ok {
		e = &valueError{reason: err}
	}
	e.steps = append(e.steps, step)
	return e
}

func indexStep(i int) string { return "[" + strconv.Itoa(i) + "]" }

// attributeStep shows the name: it is part of the type.
func attributeStep(name string) string { return "." + quote(name) }

// keyStep shows the key of a map, unless the output is sensitive: a key is data
// like the values, such as a user's name or a token.
func (d *decoder) keyStep(key string) string {
	if d.sensitive {
		return "[…]"
	}
	return "[" + quote(key) + "]"
}

// unsupported is about a name that the type doesn't have, which may be data too.
func (d *decoder) unsupported(name string) error {
	if d.sensitive {
		return errors.New("an attribute is not in its type")
	}
	return fmt.Errorf("unsupported attribute %s", quote(name))
}

const (
	maxShown        = 60  // bytes of a name or a key that are shown
	maxShownAddress = 300 // bytes of an address in an error: addresses in nested modules are long
)

func quote(text string) string { return outside.Quoted(text, maxShown) }

// show returns an address, or a part of one, escaped and cut for an error.
func show(address string) string { return outside.Line(address, maxShownAddress) }
