package openbao

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/openbao/openbao/api/v2"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/trust"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const maxAnswer = 1 << 20 // the maximum size of a response, in bytes

// server holds the address of a server and the settings for connecting to it. It connects when the first key
// is needed. The API client would read the environment by itself; instead, all settings come from the table,
// so that the environment can be switched off.
type server struct {
	address   string // the server's URL, which errors may show
	namespace string
	token     string
	login     *login // nil to use token
	timeout   time.Duration
	retries   int
	retryWait time.Duration // zero for the client's default
	proxy     *url.URL
	tls       api.TLSConfig
	redirects bool
	world     world.World // determines the proxies and certificate authorities

	turn    chan struct{} // a semaphore that guards client and session
	client  *api.Client
	session session

	transport atomic.Pointer[http.Transport] // the client's transport; nil before it is created
}

func newServer(v attr.Values) *server {
	s := &server{
		address: v.String("address"), namespace: v.String("namespace"), token: v.String("token"),
		redirects: !v.Bool("disable_redirects"),
		world:     world.For(v.Environment(), false),
		turn:      make(chan struct{}, 1),
		retries:   int(v.Int("max_retries")),
		tls: api.TLSConfig{
			CACert: v.String("ca_cert_file"), CAPath: v.String("ca_cert_dir"), CACertBytes: []byte(v.String("ca_cert_pem")),
			ClientCert: v.String("client_cert_file"), ClientKey: v.String("client_key_file"),
			ClientCertBytes: []byte(v.String("client_cert_pem")), ClientKeyBytes: []byte(v.String("client_key_pem")),
			TLSServerName: v.String("tls_server_name"), Insecure: v.Bool("skip_tls_verify"),
		},
	}
	if text := v.String("proxy_address"); text != "" {
		s.proxy, _ = url.Parse(text)
	}
	s.timeout, _ = duration(v.String("client_timeout"))
	s.login = newLogin(v)
	return s
}

// duration parses the value of BAO_CLIENT_TIMEOUT: a Go duration, or a whole number of seconds. The duration
// must be positive and at most an hour.
func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if seconds, e := strconv.Atoi(text); e == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d <= 0 || d > time.Hour {
		return 0, errors.New("the value must be a duration of at most one hour, for example 60s")
	}
	return d, nil
}

// connect returns a new client. It sends no request.
func (s *server) connect() (*api.Client, error) {
	cfg := api.NewConfig() // does not read the environment
	if cfg.Error != nil {
		return nil, cfg.Error
	}
	cfg.Address, cfg.MaxRetries, cfg.DisableRedirects = s.address, s.retries, !s.redirects
	if s.retryWait > 0 {
		cfg.MinRetryWait, cfg.MaxRetryWait = s.retryWait, s.retryWait
	}
	cfg.Timeout = 0 // put applies the timeout to each request
	if err := cfg.ConfigureTLS(&s.tls); err != nil {
		return nil, errors.New("the certificates or the key for the server cannot be used: " + fileError(err))
	}
	transport, ok := cfg.HttpClient.Transport.(*http.Transport)
	switch {
	case !ok:
		return nil, errors.New("the transport of the API client does not support a proxy setting")
	case s.proxy != nil:
		transport.Proxy = http.ProxyURL(s.proxy)
	case !s.world.ReadsEnvironment():
		transport.Proxy = nil
	}
	transport.TLSClientConfig = trust.Config(s.world, transport.TLSClientConfig)
	client, err := api.NewClient(cfg)
	if err != nil {
		return nil, errors.New("the address of the server cannot be used")
	}
	address, err := url.Parse(s.address)
	if err != nil {
		return nil, errors.New("the address of the server is not a URL")
	}
	cfg.HttpClient.Transport = limitedTransport{
		inner: cfg.HttpClient.Transport, proxy: s.proxy, private: !netfail.IsExposed(address, s.proxy),
	}
	s.transport.Store(transport)
	if s.namespace != "" {
		client.SetNamespace(s.namespace)
	}
	return client, nil
}

// limitedTransport limits the size of responses, because the client reads them completely. It also rejects
// requests that an attacker on the network could read, unless that is true for the server's own address as
// well: the client follows redirects with the token, and by itself rejects only redirects from https to http.
type limitedTransport struct {
	inner   http.RoundTripper
	proxy   *url.URL
	private bool // whether requests to the server's own address are private
}

func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.private && netfail.IsExposed(r.URL, t.proxy) {
		return nil, errExposed
	}
	response, err := t.inner.RoundTrip(r)
	if err == nil {
		response.Body = outside.Limit(response.Body, maxAnswer)
	}
	return response, err
}

// ready returns the client and the token to use. It logs in first if necessary.
func (s *server) ready(ctx context.Context) (*api.Client, string, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
	if s.client == nil {
		client, err := s.connect()
		if err != nil {
			return nil, "", err
		}
		s.client = client
	}
	if s.login == nil {
		return s.client, s.token, nil
	}
	if !s.session.valid() {
		session, err := s.login.run(ctx, s)
		if err != nil {
			return nil, "", err
		}
		s.session = session
	}
	return s.client, s.session.token, nil
}

// put sends a request and returns the response, or a client error to pass to [server.explain].
func (s *server) put(ctx context.Context, client *api.Client, token, where string, body map[string]any) (*api.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r := client.NewRequest(http.MethodPut, "/v1/"+where)
	r.ClientToken = token
	if err := r.SetJSONBody(body); err != nil {
		return nil, err
	}
	response, err := client.RawRequestWithContext(ctx, r)
	if response != nil {
		defer response.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, errRedirected
	}
	secret, err := api.ParseSecret(response.Body)
	switch {
	case ctx.Err() != nil: // the response is incomplete
		return nil, ctx.Err()
	case err != nil || secret == nil:
		return nil, errNotTheAPI
	}
	return secret, nil
}
