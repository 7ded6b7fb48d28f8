// Package answers interprets the answers of services. A package has a row for each answer that it
// knows, and the first row that fits counts.
package answers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// Row is an answer of a service, and its meaning. A field that is not set fits all answers.
type Row struct {
	Status string // of HTTP: one or several of them, such as "403 5xx"
	Code   string // the service's codes for the error: one or several words
	Said   string // a part of the service's text, which is not shown
	Unless bool   // the row is not for this request

	Wraps error // comes before the text, and may be without one
	Text  string

	Advice string // what to do about it; see fault.Advice
}

// Find returns the first row that fits, the zero Row if none does. A status of 600 and more is
// one of 5xx.
func Find(rows []Row, status int, code, said string) Row {
	statuses := []string{strconv.Itoa(status), strconv.Itoa(min(status/100, 5)) + "xx"}
	for _, row := range rows {
		if !row.Unless && isOne(row.Status, statuses...) && isOne(row.Code, code) && strings.Contains(said, row.Said) {
			return row
		}
	}
	return Row{}
}

func isOne(words string, given ...string) bool {
	return words == "" || slices.ContainsFunc(given, func(word string) bool { return slices.Contains(strings.Fields(words), word) })
}

// Err is the error that the row stands for.
func (r Row) Err() error {
	err := r.Wraps
	switch {
	case r.Wraps == nil:
		err = errors.New(r.Text)
	case r.Text != "":
		err = fmt.Errorf("%w: %s", r.Wraps, r.Text)
	}
	return fault.With(err, r.Advice)
}
