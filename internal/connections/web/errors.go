package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
)

// Answer is an error that [Wire.Get] returns as it is: the server was reached, and this is its answer.
type Answer interface {
	error
	IsAnswer() bool
}

// ownError is in our own words, and so safe to show. Errors of net/http are not:
// see [netfail.Reason].
type ownError struct {
	error
	final bool // another try would give the same
}

func (e ownError) Unwrap() error { return e.error }

// Final is an error in our own words. Another try would give the same.
func Final(format string, args ...any) error { return ownError{fmt.Errorf(format, args...), true} }

// Again is an error in our own words. Another try may help.
func Again(format string, args ...any) error { return ownError{fmt.Errorf(format, args...), false} }

// Own returns the part of err whose text may be shown, and nil if there is none.
func Own(err error) error {
	own, _ := errors.AsType[ownError](err)
	return own.error
}

func isFinal(err error) bool {
	if own, ok := errors.AsType[ownError](err); ok {
		return own.final
	}
	if _, ok := errors.AsType[Answer](err); ok {
		return true
	}
	return netfail.IsTLS(err)
}

// Reason is [netfail.Reason], unless err is in our own words.
func Reason(err error, trust string) string {
	if own := Own(err); own != nil {
		return own.Error()
	}
	return netfail.Reason(err, trust)
}

// reason puts err into words.
func (w Wire) reason(err error) error {
	if own, ok := errors.AsType[ownError](err); ok {
		return own
	}
	text := netfail.Reason(err, w.Trust)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && w.Unreached != "" {
		text += "; " + w.Unreached
	}
	if netfail.IsTimeout(err) {
		text = fmt.Sprintf("%s within %s", netfail.NoAnswer, w.Timeout)
		if w.Attr != "" {
			text += "; " + w.Attr + " can be raised"
		}
	}
	return errors.New(text)
}

// Unexpected is about a status that who, a server, should not have answered with.
func Unexpected(who string, code int) error {
	advice := answers.Find([]answers.Row{
		{Status: "409 423", Text: "try again when it is free"},
		{Status: "408 429 5xx", Text: "try again later, or see its log"},
		{Status: "3xx 4xx", Text: "check the address"},
		{Text: "see its log"},
	}, code, "", "").Text
	return Final("%s answered %s; %s", who, Status(code), advice)
}

// Status is a status in our own words: a server may put anything into its own.
func Status(code int) string {
	if text := http.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return strconv.Itoa(code)
}
