// Package answers explains answers of services with tables. A table has a row for each known answer,
// and the first row that fits counts.
package answers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// Row is an answer of a service with its meaning. Status, Code and Said fit all answers if they are
// empty.
type Row struct {
	Status string // one or several HTTP statuses, such as "403 5xx"
	Code   string // one or several error codes of the service
	Said   string // a part of the service's text, which is not shown
	Unless bool   // whether the row does not apply to this request

	Wraps error // error that precedes the text, which may then be ""
	Text  string

	Advice string // advice to the user, see fault.With
}

// Find returns the first row that fits, and the zero Row if none does. A status of 600 or more counts
// as 5xx.
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

// Err returns the error with the text and the advice of the row.
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
