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

// Answer is an error for a server response. [Wire.Get] returns it unchanged.
type Answer interface {
	error
	IsAnswer() bool
}

// ownError is an error whose text is safe to show. Errors from net/http are not; see [netfail.Reason].
type ownError struct {
	error
	final bool // whether another attempt would fail in the same way
}

func (e ownError) Unwrap() error { return e.error }

// Final returns an error whose text is safe to show, for failures where another attempt would fail in the
// same way.
func Final(format string, args ...any) error { return ownError{fmt.Errorf(format, args...), true} }

// Again returns an error whose text is safe to show, for failures where another attempt may help.
func Again(format string, args ...any) error { return ownError{fmt.Errorf(format, args...), false} }

// Own returns the part of err whose text is safe to show, or nil if there is none.
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

// Reason returns the text of the error from [Own]. If there is none, it returns the result of
// [netfail.Reason].
func Reason(err error, trust string) string {
	if own := Own(err); own != nil {
		return own.Error()
	}
	return netfail.Reason(err, trust)
}

// reason returns an error whose text is safe to show.
func (w Wire) reason(err error) error {
	if own, ok := errors.AsType[ownError](err); ok {
		return own
	}
	text := netfail.Reason(err, w.Trust)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && w.Unreached != "" {
		text += ". " + w.Unreached
	}
	if netfail.IsTimeout(err) {
		text = fmt.Sprintf("%s within %s", netfail.NoAnswer, w.Timeout)
		if w.Attr != "" {
			text += "; try again, or raise the argument " + w.Attr
		}
	}
	return errors.New(text)
}

// Unexpected returns the error for an unexpected status in a server's response. The parameter who names the
// server.
func Unexpected(who string, code int) error {
	advice := answers.Find([]answers.Row{
		{Status: "409 423", Text: "try again after the lock is released"},
		{Status: "413", Text: "raise the size limit of the server, or of a proxy in front of it"},
		{Status: "507", Text: "free space on the server, or raise the quota"},
		{Status: "408 429 5xx", Text: "try again later, or check the server's log"},
		{Status: "3xx 4xx", Text: "check the address"},
		{Text: "check the server's log"},
	}, code, "", "").Text
	return Final("%s answered %s; %s", who, Status(code), advice)
}

// Status returns a status code with its standard text. The server's own text is not used, because it may be
// anything.
func Status(code int) string {
	if text := http.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return strconv.Itoa(code)
}
