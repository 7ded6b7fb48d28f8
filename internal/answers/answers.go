// Package answers explains service responses with tables. A table has one row for each known response, and the first
// matching row applies.
package answers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// Row is a service response with its meaning. Status, Code and Said match every response if they are empty.
type Row struct {
	Status string // one or more HTTP statuses, such as "403 5xx"
	Code   string // one or more error codes of the service
	Said   string // a part of the service's message, which is not shown
	Unless bool   // if true, the row does not apply to this request

	Wraps error // the error that precedes the text; the text may then be empty
	Text  string

	Advice string // advice for the user; see fault.With
}

// Find returns the first matching row, or the zero Row if none matches. A status of 600 or more is treated as 5xx.
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

// Coded returns a text with the code of the response, in parentheses, after its first clause: before any advice.
func Coded(text, code string) string {
	end := len(text)
	for _, mark := range []string{"; ", ". "} {
		if at := strings.Index(text, mark); at >= 0 {
			end = min(end, at)
		}
	}
	return text[:end] + " (" + code + ")" + text[end:]
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
