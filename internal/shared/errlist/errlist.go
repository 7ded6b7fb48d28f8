// Package errlist holds the errors that are found in one pass.
package errlist

import "errors"

// Errors are those found so far.
type Errors []error

func (e Errors) Error() string { return errors.Join(e...).Error() }

// Unwrap returns them, for [errors.Is] and [errors.As].
func (e Errors) Unwrap() []error { return e }

// Err returns nil if there are none, and the error itself if it is the only one.
func (e Errors) Err() error {
	switch len(e) {
	case 0:
		return nil
	case 1:
		return e[0]
	}
	return e
}
