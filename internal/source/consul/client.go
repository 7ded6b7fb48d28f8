package consul

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const maxRefusal = 4 << 10 // size limit for the part of an error response that is read, in bytes

// where holds request parameters.
type where struct{ datacenter, namespace, partition string }

// client sends requests to one server.
type client struct {
	asks     web.Wire
	base     url.URL
	header   http.Header      // headers for every request
	sends    bool             // whether requests carry a token, a password or a client certificate
	warnings []source.Warning // connection warnings, for successful reads
}

// newClient returns a client. It reads the files that the settings name, but does not contact the server.
func (r *run) newClient(s settings) (*client, error) {
	req := http.Request{Header: http.Header{"User-Agent": {"terraform-provider-statecrypt"}}}
	c := &client{base: s.base, header: req.Header}
	token, auth := s.String("access_token"), s.String("http_auth")
	if s.String("token_file") != "" {
		text, err := s.readFile("token_file")
		if err != nil {
			return nil, err
		}
		// Like Consul's own programs, it ignores an empty file.
		token = cmp.Or(strings.TrimSpace(string(text)), token)
		if !recognize.IsWord(token) {
			return nil, errors.New("the file in token_file has more than one line; keep only the line with the token")
		}
	}
	if token != "" {
		req.Header.Set("X-Consul-Token", token)
	}
	if user, pass, _ := strings.Cut(auth, ":"); user != "" || pass != "" {
		req.SetBasicAuth(user, pass)
	}
	config, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	c.sends = token != "" || auth != "" || len(config.Certificates) > 0
	c.warnings = web.Warnings(config.InsecureSkipVerify && c.base.Scheme == "https", "ssl_verify is off",
		c.sends && s.socket == "" && netfail.IsExposed(&c.base, nil), "the connection uses http")

	t := web.Transport(world.For(r.credentials.Env, true), config, web.Proxies(r.credentials.Env))
	if s.socket != "" { // the host is then localhost, for which no proxy is used
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket)
		}
	}
	c.asks = web.Wire{
		Patience:  r.patience,
		Transport: t,
		Unreached: unreached(s.String("address")),
		Trust:     "set ca_file in {credentials}",
	}
	return c, nil
}

func (s settings) readFile(attr string) ([]byte, error) {
	text, err := keyfile.ReadText(s.String(attr))
	if err != nil {
		return nil, s.Errorf(attr, "%w", err)
	}
	return text, nil
}

func (s settings) tlsConfig() (*tls.Config, error) {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: s.String("tls_server_name"),
		InsecureSkipVerify: s.Has("ssl_verify") && !s.Bool("ssl_verify"), //nolint:gosec // the user's choice, with a warning on each read
	}
	if s.String("ca_file") != "" {
		text, err := s.readFile("ca_file")
		if err != nil {
			return nil, err
		}
		if c.RootCAs = web.Authorities(text); c.RootCAs == nil {
			return nil, errors.New("the file in ca_file contains no certificate in PEM format; add the certificates of the authorities " +
				"to trust")
		}
	}
	if s.String("cert_file") == "" {
		return c, nil
	}
	certificate, err := s.readFile("cert_file")
	if err != nil {
		return nil, err
	}
	key, err := s.readFile("key_file")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.New("the files in cert_file and key_file are not a certificate and its unencrypted key in PEM format; correct the " +
			"two arguments")
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// entry is a key with its value.
type entry struct {
	Key         string
	Value       []byte // null in JSON if the value is empty
	ModifyIndex uint64
}

// get reads one key. If the value is much larger than limit bytes, it returns an error.
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
	x := &exchange{client: c, where: w, key: key, limit: limit}
	err := c.asks.Get(ctx, &u, c.header, x.receive)
	return x.entry, err
}

// exchange is the read of one key.
type exchange struct {
	*client
	where where
	key   string
	limit int64
	entry *entry
}

// receive stores the entry in x.entry if the response is successful. Otherwise it returns an error.
func (x *exchange) receive(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		// Other servers do not send an index.
		if n, err := strconv.ParseUint(resp.Header.Get("X-Consul-Index"), 10, 64); err != nil || n == 0 {
			return web.Final("the server has no Consul key-value store (404 Not Found); check the address")
		}
		return errNoKey
	default:
		return x.refusal(resp)
	}
	most := x.limit/3*4 + 64<<10 // bytes of base64, and the names and numbers around it
	text, err := web.ReadBody(resp, most, io.Discard)
	if err != nil {
		return err
	}
	var entries [2]entry // not a slice, because a small response could contain millions of entries
	if err := json.Unmarshal(text, &entries); err != nil || entries[0].Key != x.key || entries[1].Key != "" {
		return web.Final("the answer does not come from Consul's key-value store; check the address")
	}
	x.entry = &entries[0]
	if x.entry.Value == nil {
		x.entry.Value = []byte{}
	}
	return nil
}
