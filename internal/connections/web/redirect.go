package web

import (
	"errors"
	"net/url"
)

// MayLead is the error for a place that the server at from must not lead to, by a
// redirect or because it names another server. What may be sent to others is for
// package source to say. The error continues a sentence that says what is
// there.
func MayLead(from, to *url.URL) error {
	switch {
	case to.Scheme == "http" && from.Scheme == "https":
		return errors.New("at a place with http instead of https, where anybody on the way could read and replace the state")
	case to.Scheme != "https" && to.Scheme != "http", to.Hostname() == "", to.Opaque != "":
		return errors.New("at a place that is neither http nor https")
	case to.User != nil:
		return errors.New("at a URL with a user name or password in it")
	}
	return nil
}
