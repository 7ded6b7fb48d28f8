package httpsource

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// grant is what the user allows for some URLs: secrets, and how to connect.
// The zero value allows nothing.
type grant struct {
	username, password, token string
	headers, query            map[string]string
	certificate, key, ca      string // PEM
	unverified                bool   // skip_cert_verification
	proxy                     string
}

func grantOf(g source.Grant) grant {
	out := grant{
		username:    g.String("username"),
		password:    g.String("password"),
		token:       g.String("bearer_token"),
		headers:     g.StringMap("headers"),
		query:       g.StringMap("query"),
		certificate: g.String("client_certificate_pem"),
		key:         g.String("client_private_key_pem"),
		ca:          g.String("client_ca_certificate_pem"),
		unverified:  g.Bool("skip_cert_verification"),
		proxy:       g.String("proxy"),
	}
	if out.hasAuthorization() { // no place for variables that ask for the same header
		if g.Variable("username") != "" {
			out.username = ""
		}
		if g.Variable("password") != "" {
			out.password = ""
		}
	}
	return out
}

// hasAuthorization reports whether the Authorization header is taken, so that
// a user name and password have no place.
func (g grant) hasAuthorization() bool {
	for name := range g.headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return g.token != ""
}

// header returns the secret headers of each request.
func (g grant) header() (http.Header, error) {
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(g.headers)) {
		switch value := g.headers[name]; {
		case !isToken(name):
			return nil, errors.New("headers: a name must consist of letters, digits and dashes")
		case isReserved(name):
			return nil, fmt.Errorf("headers: %s cannot be set", http.CanonicalHeaderKey(name))
		case !isFieldValue(value):
			return nil, fmt.Errorf("headers: the value of %s holds a line break or another control character", http.CanonicalHeaderKey(name))
		case len(h.Values(name)) > 0:
			return nil, fmt.Errorf("headers: %s is set twice", http.CanonicalHeaderKey(name))
		default:
			h.Set(name, value)
		}
	}
	basic := g.username != "" || g.password != ""
	switch {
	case g.token != "" && basic, g.hasAuthorization() && basic, g.token != "" && h.Get("Authorization") != "":
		return nil, errors.New("only one of username with password, bearer_token and an Authorization header can be sent")
	case !isFieldValue(g.token):
		return nil, errors.New("bearer_token holds a line break or another control character")
	case g.token != "":
		h.Set("Authorization", "Bearer "+g.token)
	case basic:
		r := http.Request{Header: h}
		r.SetBasicAuth(g.username, g.password)
	}
	return h, nil
}

// values returns the secret parts of the query.
func (g grant) values() url.Values {
	q := url.Values{}
	for name, value := range g.query {
		q.Set(name, value)
	}
	return q
}

// isReserved names the headers that would change how the request is framed or
// where it goes.
func isReserved(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Connection", "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Accept-Encoding", "Referer":
		return true
	}
	return false
}

func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) < 0
}

func isFieldValue(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}
