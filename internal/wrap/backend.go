package wrap

import (
	"bytes"
	"cmp"
	"context"
	"crypto/fips140"
	"crypto/md5" //nolint:gosec // Content-MD5 finds accidents, not attacks
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

const (
	maxState     = 512 << 20 // bytes, of a state and of any other body
	maxRedirects = 10
	patience     = 5 * time.Minute // for one request to the real backend
)

// backend is the real one, as TF_HTTP_* describe it.
type backend struct {
	client              http.Client
	limit               int64 // bytes of an answer
	read, write, remove endpoint
	lock, unlock        endpoint // without a URL where there is none
	username, password  string
}

type endpoint struct {
	method string
	url    *url.URL
}

// variables looks names up in environ, where the last one counts.
func variables(environ []string) attr.LookupEnv {
	return func(name string) (string, bool) {
		for _, pair := range slices.Backward(environ) {
			key, value, _ := strings.Cut(pair, "=")
			if key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name) {
				return value, true
			}
		}
		return "", false
	}
}

// newBackend reads the variables of Terraform's http backend.
func newBackend(lookup attr.LookupEnv) (*backend, error) {
	get := func(name string) string { value, _ := lookup("TF_HTTP_" + name); return value }
	state, err := parseAddress("TF_HTTP_ADDRESS", get("ADDRESS"))
	lock, lockErr := parseAddress("TF_HTTP_LOCK_ADDRESS", get("LOCK_ADDRESS"))
	unlock, unlockErr := parseAddress("TF_HTTP_UNLOCK_ADDRESS", get("UNLOCK_ADDRESS"))
	settings, tlsErr := tlsSettings(get)
	if err := errors.Join(err, lockErr, unlockErr, tlsErr); err != nil {
		return nil, err
	}
	if state == nil {
		return nil, errors.New("TF_HTTP_ADDRESS is not set: it has to say where the backend keeps the state")
	}
	transport := web.Transport(settings, web.Proxies(lookup))
	return &backend{
		client:   http.Client{Transport: transport, CheckRedirect: checkRedirect, Timeout: patience},
		limit:    maxState,
		read:     endpoint{http.MethodGet, state},
		write:    endpoint{cmp.Or(get("UPDATE_METHOD"), http.MethodPost), state},
		remove:   endpoint{http.MethodDelete, state},
		lock:     endpoint{cmp.Or(get("LOCK_METHOD"), "LOCK"), lock},
		unlock:   endpoint{cmp.Or(get("UNLOCK_METHOD"), "UNLOCK"), unlock},
		username: get("USERNAME"),
		password: get("PASSWORD"),
	}, nil
}

func parseAddress(name, text string) (*url.URL, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no address is not a mistake
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" { // the error has the text in it
		return nil, fmt.Errorf("%s is not an http or https URL", name)
	}
	return u, nil
}

func tlsSettings(get func(string) string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	c.InsecureSkipVerify, err = strconv.ParseBool(cmp.Or(get("SKIP_CERT_VERIFICATION"), "false")) //nolint:gosec // the user's choice
	if err != nil {
		return nil, errors.New("TF_HTTP_SKIP_CERT_VERIFICATION is neither true nor false")
	}
	if ca := get("CLIENT_CA_CERTIFICATE_PEM"); ca != "" {
		if c.RootCAs = web.Authorities([]byte(ca)); c.RootCAs == nil {
			return nil, errors.New("TF_HTTP_CLIENT_CA_CERTIFICATE_PEM holds no certificate in PEM format")
		}
	}
	if certificate, key := get("CLIENT_CERTIFICATE_PEM"), get("CLIENT_PRIVATE_KEY_PEM"); certificate != "" || key != "" {
		pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
		if err != nil {
			return nil, errors.New("TF_HTTP_CLIENT_CERTIFICATE_PEM and TF_HTTP_CLIENT_PRIVATE_KEY_PEM must be a certificate " +
				"and its unencrypted key in PEM format")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// checkRedirect lets a redirect lead nowhere else, because credentials would go
// along, and lets none turn a write into a read.
func checkRedirect(to *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return web.Final("the backend redirected more than %d times", maxRedirects)
	case source.Origin(to.URL) != source.Origin(via[0].URL):
		return web.Final("the backend redirected to another address, and no credentials are sent there; " +
			"if that is where the state lies, set TF_HTTP_ADDRESS to it")
	case to.Method != via[0].Method:
		return web.Final("the backend answered a %s with a redirect that would turn it into a %s", via[0].Method, to.Method)
	}
	return nil
}

// answer is one of the real backend.
type answer struct {
	status int
	media  string
	body   []byte
}

// ask sends one request. Id is that of the lock; body is nil for requests
// without one.
func (b *backend) ask(ctx context.Context, to endpoint, id string, body []byte) (*answer, error) {
	u := *to.url
	if id != "" {
		query := u.Query()
		query.Set("ID", id)
		u.RawQuery = query.Encode()
	}
	var content io.Reader // nil, not a nil *bytes.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, to.method, u.String(), content)
	if err != nil { // it has the URL in it
		return nil, errors.New("the request cannot be made; check the TF_HTTP_* variables for addresses and methods")
	}
	if b.username != "" {
		req.SetBasicAuth(b.username, b.password)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		if !fips140.Enabled() { // there, MD5 may be forbidden
			sum := md5.Sum(body) //nolint:gosec // see above
			req.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
		}
	}
	resp, err := b.client.Do(req) //nolint:gosec // the caller's own backend
	if err == nil {
		defer resp.Body.Close()
		body, err = web.ReadBody(resp, b.limit, io.Discard)
	}
	if err != nil {
		return nil, errors.New(web.Reason(err, "set TF_HTTP_CLIENT_CA_CERTIFICATE_PEM"))
	}
	return &answer{status: resp.StatusCode, media: resp.Header.Get("Content-Type"), body: body}, nil
}
