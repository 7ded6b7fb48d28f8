package kubernetes

import (
	"errors"
	"maps"
	"net/url"
	"path/filepath"
	"slices"

	api "k8s.io/client-go/tools/clientcmd/api"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// settings holds the values of a block: the address of the cluster and the credentials for it.
type settings struct {
	source.Grant
	host    string          // URL of the API server; "" if not set
	paths   []string        // kubeconfigs, which must exist
	exec    *api.ExecConfig // the block's plugin, or nil
	lookup  attr.LookupEnv
	ambient bool // whether kubeconfigs and service accounts may be used that no setting names
}

// choose returns the settings in the block called name.
func choose(credentials source.Credentials, name string) (settings, error) {
	g, err := credentials.Named("cluster", name)
	if err != nil {
		return settings{}, err
	}
	s := settings{Grant: g, paths: pathsOf(g), lookup: credentials.Env}
	if host := recognize.Endpoint(g.String("host")); host != nil {
		s.host = host.String()
	}
	filled := func(name string) bool { return g.Variable(name) != "" }
	saysWhere := s.host != "" || len(s.paths) > 0 || s.Bool("in_cluster_config")
	s.ambient = name == "" && (!saysWhere || g.Has(pathsVar) || slices.ContainsFunc(credentials.Home.Attrs, filled))
	if s.exec, err = s.execBlock(); err != nil {
		return settings{}, err
	}
	if err := s.check(); err != nil {
		return settings{}, g.Errorf("", "%w", err)
	}
	return s, nil
}

// has reports whether one of the attributes is set and not empty.
func (s *settings) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return s.String(name) != "" })
}

// pathsOf returns the kubeconfigs from the first of config_path, config_paths and KUBE_CONFIG_PATHS that is
// set.
func pathsOf(g source.Grant) []string {
	if path := g.String("config_path"); path != "" {
		return []string{path}
	}
	if paths := g.Strings("config_paths"); len(paths) > 0 {
		return paths
	}
	return filepath.SplitList(g.String(pathsVar))
}

// execBlock returns the plugin in the exec block, or nil if there is no such block.
func (s *settings) execBlock() (*api.ExecConfig, error) {
	b, ok := s.Block("exec")
	if !ok {
		return nil, nil
	}
	e := &api.ExecConfig{APIVersion: b.String("api_version"), Command: b.String("command"), Args: b.Strings("args")}
	env := b.StringMap("env")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		e.Env = append(e.Env, api.ExecEnvVar{Name: name, Value: env[name]})
	}
	if err := checkPlugin(e); err != nil {
		return nil, s.Errorf("exec", "%w", err)
	}
	return e, nil
}

func (s *settings) get(name string) string {
	value, _ := s.lookup.Get(name)
	return value
}

// near returns SameServer if the URLs of two API servers have the same scheme, host and port.
func near(home, asked string) source.Match {
	u, v := recognize.Endpoint(home), recognize.Endpoint(asked)
	return source.SameServerIf(u != nil && v != nil && source.Covers(&url.URL{Scheme: u.Scheme, Host: u.Host}, v))
}

func (s *settings) check() error {
	switch {
	case s.has("token") && s.has("username", "password"):
		return errors.New("token is set together with username or password; remove one of them")
	case s.Bool("in_cluster_config") && (s.host != "" || len(s.paths) > 0):
		return errors.New("in_cluster_config cannot be set together with host, config_path or config_paths; remove in_cluster_config or " +
			"the others")
	case len(s.paths) == 0 && !s.ambient && s.has("config_context", "config_context_auth_info", "config_context_cluster"):
		return errors.New("config_context, config_context_auth_info or config_context_cluster is set, but config_path is not; set config_path")
	}
	return nil
}

// noHost is the error message for a value that is not the URL of an API server. A host without a scheme means
// https here, although client-go would use http.
const noHost = "this is not the URL of an API server; write a URL like https://10.0.0.1:6443, without user name, password or query"
