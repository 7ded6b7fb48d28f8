package consul

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// The variables of Consul's own programs, which the backend reads as well. Two
// are left out: CONSUL_CAPATH, because a file can hold many certificates, and
// CONSUL_GRPC_ADDR with its kin, because the store is not served there.
const (
	addressVar     = "CONSUL_HTTP_ADDR"
	sslVar         = "CONSUL_HTTP_SSL"
	tokenVar       = "CONSUL_HTTP_TOKEN"
	tokenFileVar   = "CONSUL_HTTP_TOKEN_FILE"
	authVar        = "CONSUL_HTTP_AUTH"
	caVar          = "CONSUL_CACERT"
	certificateVar = "CONSUL_CLIENT_CERT"
	keyVar         = "CONSUL_CLIENT_KEY"
	serverNameVar  = "CONSUL_TLS_SERVER_NAME"
	verifyVar      = "CONSUL_HTTP_SSL_VERIFY"
	namespaceVar   = "CONSUL_NAMESPACE"
	partitionVar   = "CONSUL_PARTITION"
)

const defaultAddress = "localhost:8500"

// settings say which server is asked, and as whom.
type settings struct {
	place                     place
	token, tokenFile          string // the file counts more
	auth                      string // user:password
	caFile, certFile, keyFile string
	serverName                string
	unverified                bool
	namespace, partition      string // where the data source does not say it
	proxies                   *httpproxy.Config
}

// place is a server.
type place struct {
	base   url.URL // scheme, host, and the path before /v1/kv/
	socket string  // connected to in place of the host; "" for none
}

// choose returns the settings for the server that a data source calls name.
func choose(credentials source.Credentials, lookup attr.LookupEnv, name string) (settings, error) {
	credentials.Env = nil // settings.fill knows which variables belong together
	v, err := credentials.Named("credentials_name", name)
	if err != nil {
		return settings{}, err
	}
	family := lookup
	if name != "" {
		family = nil
	}
	s, err := newSettings(v.Values, family)
	switch {
	case err != nil && v.Found:
		return settings{}, v.Errorf("", "%w", err)
	case err != nil:
		return settings{}, fmt.Errorf("the environment variables CONSUL_*: %w", err)
	}
	s.proxies = web.Proxies(lookup)
	return s, nil
}

func newSettings(v attr.Values, env attr.LookupEnv) (settings, error) {
	s := settings{
		token: v.String("access_token"), tokenFile: v.String("token_file"), auth: v.String("http_auth"),
		caFile: v.String("ca_file"), certFile: v.String("cert_file"), keyFile: v.String("key_file"),
		serverName: v.String("tls_server_name"), unverified: v.Has("ssl_verify") && !v.Bool("ssl_verify"),
	}
	if s.token != "" && s.tokenFile != "" {
		return settings{}, errors.New("access_token and token_file exclude each other")
	}
	address, scheme := v.String("address"), v.String("scheme")
	if address != "" && !sameServer(get(env, addressVar), address) {
		env = nil
	}
	if err := s.fill(env, v.Has("ssl_verify")); err != nil {
		return settings{}, err
	}
	if scheme == "" {
		ssl, err := boolean(env, sslVar, false)
		if err != nil {
			return settings{}, err
		}
		if ssl {
			scheme = "https"
		}
	}
	if address == "" {
		address = get(env, addressVar)
	}
	var err error
	if s.place, err = parsePlace(address, scheme); err != nil {
		return settings{}, err
	}
	return s, s.check()
}

// fill completes what the block, if any, says.
func (s *settings) fill(env attr.LookupEnv, saysVerify bool) error {
	if s.token == "" && s.tokenFile == "" {
		s.token, s.tokenFile = get(env, tokenVar), get(env, tokenFileVar)
	}
	if s.certFile == "" && s.keyFile == "" { // a pair
		s.certFile, s.keyFile = get(env, certificateVar), get(env, keyVar)
	}
	for name, to := range map[string]*string{authVar: &s.auth, caVar: &s.caFile, serverNameVar: &s.serverName} {
		if *to == "" {
			*to = get(env, name)
		}
	}
	s.namespace, s.partition = get(env, namespaceVar), get(env, partitionVar)
	if saysVerify {
		return nil
	}
	verify, err := boolean(env, verifyVar, true)
	s.unverified = !verify
	return err
}

func (s *settings) check() error {
	switch {
	case (s.certFile == "") != (s.keyFile == ""):
		return errors.New("cert_file and key_file are needed together")
	case !web.IsFieldValue(s.token):
		return errors.New("access_token holds a line break or another control character")
	}
	return nil
}

func get(env attr.LookupEnv, name string) string {
	value, _ := env.Get(name)
	return value
}

// boolean reads a variable. What is neither yes nor no may be meant as either:
// Consul's programs take it for a no, which would switch the verification off.
func boolean(env attr.LookupEnv, name string, otherwise bool) (bool, error) {
	text := get(env, name)
	if text == "" {
		return otherwise, nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s must be true or false", name)
	}
	return b, nil
}

// sameServer reports whether the variable's address, if there is one, names the
// same server: a secret that is meant for one goes to no other.
func sameServer(variable, address string) bool {
	if variable == "" {
		return true
	}
	a, errA := parsePlace(variable, "")
	b, errB := parsePlace(address, "")
	return errA == nil && errB == nil && strings.EqualFold(a.base.Host, b.base.Host) && a.socket == b.socket
}

var errAddress = errors.New("address must be host:port, an http or https URL without user name, password and query, or unix:// with the path of a socket")

// parsePlace reads an address as Consul's programs do: either of address and
// scheme can ask for https, and neither can take it back.
func parsePlace(address, scheme string) (place, error) {
	if scheme == "" {
		scheme = "http"
	}
	if scheme != "http" && scheme != "https" {
		return place{}, errors.New("scheme must be http or https")
	}
	if address == "" {
		address = defaultAddress
	}
	if own, rest, ok := strings.Cut(address, "://"); ok {
		switch own {
		case "http":
		case "https":
			scheme = "https"
		case "unix":
			if rest == "" {
				return place{}, errAddress
			}
			return place{base: url.URL{Scheme: scheme, Host: "localhost"}, socket: rest}, nil
		default:
			return place{}, errAddress
		}
		address = rest
	}
	u, err := url.Parse(scheme + "://" + address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return place{}, errAddress // the text of err would repeat the address
	}
	return place{base: url.URL{Scheme: scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}}, nil
}
