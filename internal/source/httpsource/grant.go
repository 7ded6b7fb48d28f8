package httpsource

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// header returns the headers with secrets, which are added to each request.
func header(g source.Grant) (http.Header, error) {
	h, err := ownHeaders(g.StringMap("headers"))
	if err != nil {
		return nil, err
	}
	token, taken := g.String("bearer_token"), h.Get("Authorization") != ""
	username, password := g.String("username"), g.String("password")
	if taken { // variables that would set the same header are ignored
		username, password = own(g, "username"), own(g, "password")
	}
	basic := username != "" || password != ""
	words := source.CheckWord("username", username)
	switch {
	case token != "" && basic, taken && basic, token != "" && taken:
		var set []string
		for name, isSet := range map[string]bool{"username with password": basic, "bearer_token": token != "", "an Authorization " +
			"header": taken} {
			if isSet {
				set = append(set, name)
			}
		}
		slices.Sort(set)
		return nil, fmt.Errorf("%s are set, but only one of them can be sent; remove the others", strings.Join(set, " and "))
	case words != nil:
		return nil, words
	case token != "":
		h.Set("Authorization", "Bearer "+token)
	case basic:
		r := http.Request{Header: h}
		r.SetBasicAuth(username, password)
	}
	return h, nil
}

// own returns the value that the block itself sets for an attribute. It returns an empty string if the value
// comes from a variable.
func own(g source.Grant, name string) string {
	if g.Variable(name) != "" {
		return ""
	}
	return g.String(name)
}

func ownHeaders(headers map[string]string) (http.Header, error) {
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			if strings.Contains(name, ":") {
				return nil, errors.New(`headers: the name of a header contains a colon; write the headers like { "PRIVATE-TOKEN" = var.token }`)
			}
			return nil, errors.New("headers: the name of a header is not valid; use letters, digits and dashes")
		case isReserved(name):
			return nil, fmt.Errorf("headers: %s cannot be set; remove it", http.CanonicalHeaderKey(name))
		case len(h.Values(name)) > 0:
			return nil, fmt.Errorf("headers: %s is set twice; remove one of them", http.CanonicalHeaderKey(name))
		default:
			h.Set(name, headers[name])
		}
	}
	return h, nil
}

// query returns the secret part of the query, encoded.
func query(g source.Grant) string {
	q := url.Values{}
	for name, value := range g.StringMap("query") {
		q.Set(name, value)
	}
	return q.Encode()
}

// isReserved reports whether a header affects the framing or the destination of a request, or is set by this
// package.
func isReserved(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Connection", "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Accept-Encoding", "Referer":
		return true
	}
	return false
}
