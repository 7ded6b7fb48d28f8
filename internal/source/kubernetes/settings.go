package kubernetes

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// The variables of the backend, and one of the kubernetes provider.
const (
	hostVar        = "KUBE_HOST"
	pathVar        = "KUBE_CONFIG_PATH"
	pathsVar       = "KUBE_CONFIG_PATHS"
	contextVar     = "KUBE_CTX"
	userVar        = "KUBE_CTX_AUTH_INFO"
	clusterVar     = "KUBE_CTX_CLUSTER"
	inClusterVar   = "KUBE_IN_CLUSTER_CONFIG"
	tokenVar       = "KUBE_TOKEN"
	usernameVar    = "KUBE_USER"
	passwordVar    = "KUBE_PASSWORD"
	certificateVar = "KUBE_CLIENT_CERT_DATA"
	keyVar         = "KUBE_CLIENT_KEY_DATA"
	caVar          = "KUBE_CLUSTER_CA_CERT_DATA"
	insecureVar    = "KUBE_INSECURE"
	serverNameVar  = "KUBE_TLS_SERVER_NAME"
	proxyVar       = "KUBE_PROXY_URL"
)

// settings say which cluster is asked, and as whom.
type settings struct {
	host                   string
	paths                  []string // kubeconfigs that must be there
	context, user, cluster string   // of the kubeconfig; "" for its own choice
	inCluster              bool
	account                account
	plugin                 *plugin
	ca, serverName         string
	insecure, saysVerify   bool // saysVerify: insecure is set, to either value
	proxy                  string

	lookup  attr.LookupEnv
	ambient bool // kubeconfigs and accounts that nobody named may be used
}

// account is who asks.
type account struct {
	token, username, password string
	certificate, key          string // PEM
}

func (a account) isSet() bool { return a != account{} }

// choose returns the settings for the cluster that a data source calls name.
func choose(credentials source.Credentials, lookup attr.LookupEnv, name string) (settings, error) {
	credentials.Env = nil // settings.fill knows which variables belong together
	v, err := credentials.Named("cluster", name)
	if err != nil {
		return settings{}, err
	}
	if v.Found {
		return fromBlock(v.Values, lookup)
	}
	s := settings{lookup: lookup}
	s.fill()
	if err := s.check(); err != nil {
		return settings{}, fmt.Errorf("the environment variables KUBE_*: %w", err)
	}
	return s, nil
}

func fromBlock(v attr.Values, lookup attr.LookupEnv) (settings, error) {
	s := settings{
		host: v.String("host"), paths: v.Strings("config_paths"), inCluster: v.Bool("in_cluster_config"),
		context: v.String("config_context"), user: v.String("config_context_auth_info"), cluster: v.String("config_context_cluster"),
		account: account{
			token: v.String("token"), username: v.String("username"), password: v.String("password"),
			certificate: v.String("client_certificate"), key: v.String("client_key"),
		},
		ca: v.String("cluster_ca_certificate"), serverName: v.String("tls_server_name"),
		insecure: v.Bool("insecure"), saysVerify: v.Has("insecure"),
		proxy: v.String("proxy_url"), lookup: lookup,
	}
	if p := v.String("config_path"); p != "" {
		if len(s.paths) > 0 {
			return settings{}, v.Errorf("config_paths", "config_path and config_paths exclude each other")
		}
		s.paths = []string{p}
	}
	if b, ok := v.Block("exec"); ok {
		if s.account.isSet() {
			return settings{}, v.Errorf("", "exec excludes token, username, password, client_certificate and client_key")
		}
		s.plugin = &plugin{apiVersion: b.String("api_version"), command: b.String("command"), args: b.Strings("args"), env: b.StringMap("env")}
		if err := s.plugin.check(); err != nil {
			return settings{}, v.Errorf("exec", "%w", err)
		}
	}
	if v.String("name") == "" {
		s.fill()
	}
	if err := s.check(); err != nil {
		return settings{}, v.Errorf("", "%w", err)
	}
	return s, nil
}

func (s *settings) get(name string) string {
	value, _ := s.lookup.Get(name)
	return value
}

// saysWhere reports whether it is said which cluster is asked.
func (s *settings) saysWhere() bool { return s.host != "" || len(s.paths) > 0 || s.inCluster }

// fill completes what the block, if any, says. What the variables say about
// the cluster counts only where the block does not, and a secret that comes
// with KUBE_HOST goes to no other host.
func (s *settings) fill() {
	ownPlace := s.saysWhere()
	if host := s.get(hostVar); !ownPlace || host == "" || sameServer(host, s.host) {
		s.fillAccount()
	}
	if ownPlace {
		return
	}
	s.ambient = true
	s.host = s.get(hostVar)
	s.inCluster, _ = strconv.ParseBool(s.get(inClusterVar)) // anything but a plain yes is a no
	if p := s.get(pathVar); p != "" {
		s.paths = []string{p}
	} else if list := s.get(pathsVar); list != "" {
		s.paths = filepath.SplitList(list)
	}
	for name, to := range map[string]*string{
		contextVar: &s.context, userVar: &s.user, clusterVar: &s.cluster, caVar: &s.ca, serverNameVar: &s.serverName, proxyVar: &s.proxy,
	} {
		if *to == "" {
			*to = s.get(name)
		}
	}
	if !s.saysVerify {
		s.insecure, _ = strconv.ParseBool(s.get(insecureVar))
	}
}

func (s *settings) fillAccount() {
	if s.account.isSet() || s.plugin != nil {
		return
	}
	s.account = account{
		token: s.get(tokenVar), username: s.get(usernameVar), password: s.get(passwordVar),
		certificate: s.get(certificateVar), key: s.get(keyVar),
	}
}

func sameServer(a, b string) bool {
	u, errA := parseHost(a)
	v, errB := parseHost(b)
	return errA == nil && errB == nil && source.Covers(&url.URL{Scheme: u.Scheme, Host: u.Host}, v)
}

func (s *settings) check() error {
	a := s.account
	switch {
	case (a.certificate == "") != (a.key == ""):
		return errors.New("client_certificate and client_key are needed together")
	case a.token != "" && (a.username != "" || a.password != ""):
		return errors.New("token excludes username and password")
	case s.inCluster && (s.host != "" || len(s.paths) > 0):
		return errors.New("in_cluster_config excludes host, config_path and config_paths")
	case len(s.paths) == 0 && !s.ambient && (s.context != "" || s.user != "" || s.cluster != ""):
		return errors.New("config_context, config_context_auth_info and config_context_cluster need a config_path")
	}
	if s.host != "" {
		u, err := parseHost(s.host)
		if err != nil {
			return err
		}
		s.host = u.String()
	}
	if s.proxy != "" {
		u, err := url.Parse(s.proxy)
		if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
			return errors.New("proxy_url must be a URL such as http://proxy.example.com:3128")
		}
	}
	return nil
}

// parseHost reads the host of an API server. Without a scheme it is https:
// client-go would guess, and guess http.
func parseHost(host string) (*url.URL, error) {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("host must be the URL of an API server, such as https://10.0.0.1:6443, without user name, password or query")
	}
	return u, nil
}
