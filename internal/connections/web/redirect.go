package web

import (
	"errors"
	"net/url"
)

// MayLead returns an error if the server at from must not send a client to the URL to, either by a redirect
// or by naming another server. Package source decides which credentials the URL may receive. The error is the
// end of a sentence about the redirect.
func MayLead(from, to *url.URL) error {
	switch {
	case to.Scheme == "http" && from.Scheme == "https":
		return errors.New("at an http address instead of https, so anybody on the network path could read and replace the state")
	case to.Scheme != "https" && to.Scheme != "http", to.Hostname() == "", to.Opaque != "":
		return errors.New("at an address that is neither http nor https")
	case to.User != nil:
		return errors.New("at a URL with a user name or password")
	}
	return nil
}
