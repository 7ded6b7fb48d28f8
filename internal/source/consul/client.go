package consul

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	nethttp "net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-cleanhttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// patience says how long a read waits and how often it asks again.
type patience struct {
	timeout          time.Duration // of one try
	tries            int           // beyond the first
	waitMin, waitMax time.Duration
}

var usualPatience = patience{timeout: time.Minute, tries: 2, waitMin: time.Second, waitMax: 10 * time.Second}

const maxRefusal = 4 << 10 // bytes of an answer that is an error

// where is what the query of a request says.
type where struct{ datacenter, namespace, partition string }

// client asks one server.
type client struct {
	web        *retryablehttp.Client
	base       url.URL
	patience   patience
	token      string
	user, pass string
	sends      bool // something that tells who asks
	unverified bool
	exposed    bool // what is sent can be read on the way
}

// newClient reads the files that the settings name, and sends nothing.
func newClient(s settings, p patience) (*client, error) {
	c := &client{base: s.place.base, patience: p, token: s.token}
	if s.tokenFile != "" {
		text, err := readFile("token_file", s.tokenFile)
		if err != nil {
			return nil, err
		}
		// As Consul's programs have it, an empty file is none.
		c.token = either(strings.TrimSpace(string(text)), s.token)
		if !isFieldValue(c.token) {
			return nil, errors.New("the file that token_file names holds more than one line")
		}
	}
	c.user, c.pass, _ = strings.Cut(s.auth, ":")
	settings, err := tlsConfig(s)
	if err != nil {
		return nil, err
	}
	c.sends = c.token != "" || s.auth != "" || len(settings.Certificates) > 0
	c.unverified = s.unverified && c.base.Scheme == "https"
	c.exposed = c.base.Scheme == "http" && s.place.socket == "" && !isLoopback(c.base.Hostname())

	t := cleanhttp.DefaultPooledTransport()
	find := s.proxies.ProxyFunc()
	t.Proxy = func(req *nethttp.Request) (*url.URL, error) { return find(req.URL) }
	t.TLSClientConfig = settings
	t.DisableCompression = true // what is unpacked is not bounded by what is read
	t.MaxResponseHeaderBytes = 1 << 20
	t.OnProxyConnectResponse = proxyAnswer
	if s.place.socket != "" { // whose host, localhost, no proxy is asked for
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.place.socket)
		}
	}
	c.web = &retryablehttp.Client{
		HTTPClient: &nethttp.Client{
			Transport: t, Timeout: p.timeout,
			CheckRedirect: func(*nethttp.Request, []*nethttp.Request) error { return errRedirect },
		},
		RetryMax: p.tries, RetryWaitMin: p.waitMin, RetryWaitMax: p.waitMax,
		CheckRetry: worthAnotherTry, Backoff: wait, ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return c, nil
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func readFile(attr, path string) ([]byte, error) {
	path, err := config.ExpandHome(path)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return nil, fmt.Errorf("the file %q, which %s names: %w", path, attr, err)
	}
	return text, nil
}

func tlsConfig(s settings) (*tls.Config, error) {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: s.serverName,
		InsecureSkipVerify: s.unverified, //nolint:gosec // the user's choice, with a warning at each read
	}
	if s.caFile != "" {
		text, err := readFile("ca_file", s.caFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("the file that ca_file names holds no certificate in PEM format")
		}
	}
	if s.certFile == "" {
		return c, nil
	}
	certificate, err := readFile("cert_file", s.certFile)
	if err != nil {
		return nil, err
	}
	key, err := readFile("key_file", s.keyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.New("the files that cert_file and key_file name must hold a certificate and its unencrypted key in PEM format")
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// proxyAnswer replaces the error of net/http, which would be the proxy's own
// words.
func proxyAnswer(_ context.Context, _ *url.URL, _ *nethttp.Request, resp *nethttp.Response) error {
	if resp.StatusCode == nethttp.StatusOK {
		return nil
	}
	return final("the proxy refused the connection (%s)", status(resp.StatusCode))
}

// warnings says what is wrong with the connection although it works.
func (c *client) warnings() []string {
	switch {
	case c.unverified:
		return []string{"The server's certificate was not verified, because ssl_verify is off. Anybody on the way can read the token and replace the state."}
	case c.exposed && c.sends:
		return []string{"The credentials and the state were sent without encryption, because the server is asked by http. Anybody on the way can read them and replace the state."}
	}
	return nil
}

// entry is a key with its value.
type entry struct {
	Key         string
	Value       []byte // null in JSON where it is empty
	ModifyIndex uint64
}

// get reads one key, whose value has hardly more than limit bytes.
func (c *client) get(ctx context.Context, w where, key string, limit int64) (*entry, error) {
	u := c.base
	u.Path += "/v1/kv/" + key
	query := url.Values{}
	for name, value := range map[string]string{"dc": w.datacenter, "ns": w.namespace, "partition": w.partition} {
		if value != "" {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	req, err := retryablehttp.NewRequestWithContext(ctx, nethttp.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("the address of the server and the path do not make a URL")
	}
	if c.token != "" {
		req.Header.Set("X-Consul-Token", c.token)
	}
	if c.user != "" || c.pass != "" {
		req.SetBasicAuth(c.user, c.pass)
	}
	req.Header.Set("User-Agent", "terraform-provider-statecrypt")
	x := &exchange{client: c, where: w, key: key, limit: limit}
	req.SetResponseHandler(x.receive)
	resp, err := c.web.Do(req)
	if resp != nil {
		defer resp.Body.Close()
	}
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	if x.entry == nil { // a status that is worth another try, after the last one
		return nil, c.explain(ctx, x.refusal(resp))
	}
	return x.entry, nil
}

// exchange is the reading of one key.
type exchange struct {
	*client
	where where
	key   string
	limit int64
	entry *entry
}

// receive looks at an answer that is no reason to try again. A body that breaks
// off is one.
func (x *exchange) receive(resp *nethttp.Response) error {
	defer resp.Body.Close() // not drained: a server may stop anywhere
	switch resp.StatusCode {
	case nethttp.StatusOK:
	case nethttp.StatusNotFound:
		// Whatever else is at the address has no index to tell.
		if n, err := strconv.ParseUint(resp.Header.Get("X-Consul-Index"), 10, 64); err != nil || n == 0 {
			return final("the server has no key-value store of Consul (404 Not Found); check the address")
		}
		return errNoKey
	default:
		return x.refusal(resp)
	}
	most := x.limit/3*4 + 64<<10 // in base64, with names and numbers around it
	body := &flagged{Reader: resp.Body}
	text, err := source.Read(body, resp.ContentLength, most)
	switch {
	case resp.Request.Context().Err() != nil: // net/http may take what comes while it hangs up for an answer
		return resp.Request.Context().Err()
	case body.err != nil:
		return body.err
	case resp.ContentLength > most, err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return errTooLarge
	case err != nil:
		return err
	}
	var entries []entry
	if err := json.Unmarshal(text, &entries); err != nil || len(entries) != 1 || entries[0].Key != x.key {
		return final("the answer is not a key of Consul's key-value store; check the address")
	}
	x.entry = &entries[0]
	if x.entry.Value == nil {
		x.entry.Value = []byte{}
	}
	return nil
}

// worthAnotherTry decides after each try.
func worthAnotherTry(ctx context.Context, resp *nethttp.Response, err error) (bool, error) {
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return !isFinal(err), nil
	default:
		code := resp.StatusCode
		return code == nethttp.StatusTooManyRequests || code >= 500 && code != nethttp.StatusNotImplemented, nil
	}
}

// wait is exponential, or what the server asks for; but a server must not hold
// a run for as long as it likes.
func wait(shortest, longest time.Duration, try int, resp *nethttp.Response) time.Duration {
	return max(0, min(longest, retryablehttp.DefaultBackoff(shortest, longest, try, resp)))
}

// flagged remembers whether reading failed, as opposed to reading too much.
type flagged struct {
	io.Reader
	err error
}

func (f *flagged) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}
