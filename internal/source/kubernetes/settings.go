package kubernetes

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
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

	own     attr.Values // of the block
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
func choose(credentials source.Credentials, name string) (settings, error) {
	g, err := credentials.Named("cluster", name)
	if err != nil {
		return settings{}, err
	}
	s := settings{
		host: g.String("host"), inCluster: g.Bool("in_cluster_config"),
		context: g.String("config_context"), user: g.String("config_context_auth_info"), cluster: g.String("config_context_cluster"),
		account: account{
			token: g.String("token"), username: g.String("username"), password: g.String("password"),
			certificate: g.String("client_certificate"), key: g.String("client_key"),
		},
		ca: g.String("cluster_ca_certificate"), serverName: g.String("tls_server_name"),
		insecure: g.Bool("insecure"), saysVerify: g.Has("insecure"),
		proxy: g.String("proxy_url"), own: g.Values, lookup: credentials.Env,
	}
	if s.paths, err = pathsOf(g); err != nil {
		return settings{}, err
	}
	s.ambient = g.Env != nil && (!s.saysWhere() || isFilled(g, "host", "config_path", "config_paths", "in_cluster_config"))
	if s.plugin, err = pluginIn(g, s.account); err != nil {
		return settings{}, err
	}
	if err := s.check(); err != nil {
		return settings{}, g.Errorf("", "%w", err)
	}
	return s, nil
}

// pathsOf returns the kubeconfigs that are named.
func pathsOf(g source.Grant) ([]string, error) {
	path, paths := g.String("config_path"), g.Strings("config_paths")
	switch {
	case path == "" && g.Variable("config_paths") != "":
		return filepath.SplitList(paths[0]), nil
	case path != "" && len(paths) > 0 && g.Variable("config_path") == "":
		return nil, g.Errorf("config_paths", "config_path and config_paths exclude each other")
	case path != "":
		return []string{path}, nil
	}
	return paths, nil
}

func isFilled(g source.Grant, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return g.Variable(name) != "" })
}

// pluginIn returns the plugin that the block names, nil for none.
func pluginIn(g source.Grant, a account) (*plugin, error) {
	b, ok := g.Block("exec")
	if !ok {
		return nil, nil
	}
	if a.isSet() {
		return nil, g.Errorf("", "exec excludes token, username, password, client_certificate and client_key")
	}
	p := &plugin{apiVersion: b.String("api_version"), command: b.String("command"), args: b.Strings("args"), env: b.StringMap("env")}
	if err := p.check(); err != nil {
		return nil, g.Errorf("exec", "%w", err)
	}
	return p, nil
}

func (s *settings) get(name string) string {
	value, _ := s.lookup.Get(name)
	return value
}

// saysWhere reports whether it is said which cluster is asked.
func (s *settings) saysWhere() bool { return s.host != "" || len(s.paths) > 0 || s.inCluster }

// near compares two hosts: a secret that comes with one goes to no other.
func near(home, asked string) source.Nearness {
	u, errHome := parseHost(home)
	v, errAsked := parseHost(asked)
	if errHome == nil && errAsked == nil && source.Covers(&url.URL{Scheme: u.Scheme, Host: u.Host}, v) {
		return source.SameServer
	}
	return source.Elsewhere
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
		if _, err := web.ParseProxy(s.proxy); err != nil {
			return fmt.Errorf("proxy_url: %w", err)
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
