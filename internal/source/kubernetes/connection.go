package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/trust"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// serviceAccount is the folder in which a pod finds its own token and the cluster's certificate.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// homeConfig is the path of kubectl's default kubeconfig.
const homeConfig = "~/.kube/config"

// connection holds a client configuration after its files were read and its plugin was run.
type connection struct {
	*rest.Config
	expires time.Time // expiry of a plugin's credentials; zero if unknown
}

// connect returns a client configuration. It reads kubeconfigs and runs a plugin, but does not contact the
// server itself.
func (r *run) connect(ctx context.Context, s settings) (*connection, error) {
	c, err := r.place(s)
	if err != nil {
		return nil, err
	}
	if err := s.overlay(c); err != nil {
		return nil, err
	}
	if err := loadFiles(c); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(c.Host, "http:") && !c.Insecure && len(c.CAData) == 0 {
		if err := trust.Check(r.world); err != nil {
			return nil, err
		}
	}
	conn := &connection{Config: c}
	p, err := pluginOf(c)
	if err != nil || p == nil {
		return conn, err
	}
	p.world = r.world
	answer, err := p.run(ctx)
	if err != nil {
		return nil, err
	}
	c.BearerToken, c.CertData, c.KeyData = answer.token, answer.certificate, answer.key
	conn.expires = answer.expires
	return conn, nil
}

var errNoCluster = errors.New("no cluster is set; set the argument host, config_path or in_cluster_config in {credentials}")

// place returns the configuration for the cluster that the settings name. If they name none, it returns the
// configuration that kubectl, or a program in a pod, would use.
func (r *run) place(s settings) (*rest.Config, error) {
	switch {
	case s.Bool("in_cluster_config"):
		return r.inCluster(s)
	case slices.ContainsFunc(s.paths, recognize.IsKubeconfig),
		s.ambient && len(s.paths) == 0 && recognize.IsKubeconfig(s.String(kubectlVar)):
		return nil, errors.New("config_path, config_paths or KUBECONFIG contains a kubeconfig instead of a path; write the kubeconfig to " +
			"a file, and set its path")
	case len(s.paths) > 0:
		return s.kubeconfig(s.paths, true)
	case s.host != "":
		return &rest.Config{}, nil
	case !s.ambient:
		return nil, errNoCluster
	}
	if list := s.String(kubectlVar); list != "" {
		return s.kubeconfig(filepath.SplitList(list), false)
	}
	if path, err := world.ExpandHome(homeConfig); err == nil {
		if _, err := os.Stat(path); err == nil {
			if err := s.Refuse("host", "the file "+homeConfig, "token", "password", "client_key"); err != nil {
				return nil, err
			}
			return s.kubeconfig([]string{path}, true)
		}
	}
	if s.get("KUBERNETES_SERVICE_HOST") != "" {
		if err := s.Refuse("in_cluster_config", "the environment variable KUBERNETES_SERVICE_HOST"); err != nil {
			return nil, err
		}
		return r.inCluster(s)
	}
	if s.lookup == nil || s.Found {
		return nil, errNoCluster
	}
	return nil, fault.Known(errors.New("no cluster is set; add a kubernetes credentials block to {settings}, or set the variable "+
		"KUBE_CONFIG_PATH, KUBE_HOST or KUBECONFIG. There is no ~/.kube/config, and this is not a pod"), fault.NoCredentials{})
}

// kubeconfig merges the kubeconfigs at paths. If all is true, all of them must exist. Otherwise, as with
// KUBECONFIG, files may be missing.
func (s settings) kubeconfig(paths []string, all bool) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{}
	for _, p := range paths {
		path, err := world.ExpandHome(p)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err != nil && (all || !errors.Is(err, fs.ErrNotExist)) {
			return nil, fmt.Errorf("%s: %w. Check config_path or KUBECONFIG", quoted([]string{p}), keyfile.Explain(path, err))
		}
		rules.Precedence = append(rules.Precedence, path)
	}
	merged, err := rules.Load()
	if err != nil { // err may quote the file
		return nil, fmt.Errorf("%s is not a kubeconfig; check the path and the content of the file", quoted(rules.Precedence))
	}
	context := s.String("config_context")
	if _, ok := merged.Contexts[context]; !ok && context != "" {
		return nil, fmt.Errorf("%s has no context with the name in config_context%s", quoted(rules.Precedence),
			syntax.Configured(context, slices.Sorted(maps.Keys(merged.Contexts))))
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context, Context: api.Context{
		AuthInfo: s.String("config_context_auth_info"), Cluster: s.String("config_context_cluster"),
	}}
	if s.host != "" {
		overrides.ClusterInfo.Server = s.host
	}
	c, err := clientcmd.NewNonInteractiveClientConfig(*merged, context, overrides, nil).ClientConfig()
	switch {
	case err == nil:
		return c, nil
	case clientcmd.IsEmptyConfig(err) && !slices.ContainsFunc(rules.Precedence, recognize.Exists):
		return nil, fmt.Errorf("%s does not exist; correct KUBECONFIG, or set config_path in a kubernetes credentials block",
			quoted(rules.Precedence))
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("%s names no cluster; check that it is the right file, or set the argument host", quoted(rules.Precedence))
	}
	if all, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		for _, one := range all.Errors() {
			if path, why := ofFile(one); path != "" {
				return nil, fmt.Errorf("%s names a file that cannot be read%s: %w", quoted(rules.Precedence), path, why)
			}
		}
	}
	return nil, fmt.Errorf("%s cannot be used; check that its context, user and cluster exist and are complete, and check the files that "+
		"it names",
		quoted(rules.Precedence))
}

// quoted returns the names of kubeconfigs in quotation marks. It omits names that look like the content of a
// file.
func quoted(paths []string) string {
	var shown []string
	for _, p := range paths {
		if name := keyfile.Shown(p); name != "" {
			shown = append(shown, name)
		}
	}
	return strings.TrimSpace("the kubeconfig " + strings.Join(shown, " with "))
}

func (r *run) inCluster(s settings) (*rest.Config, error) {
	host, port := s.get("KUBERNETES_SERVICE_HOST"), s.get("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" || s.Hands("token", "password", "client_key") {
		// Either the variables are not set or must not be read, or they must not choose the server for a
		// secret from the configuration.
		host, port = "kubernetes.default.svc", "443"
	}
	token := filepath.Join(r.serviceAccount, "token")
	if _, err := os.Stat(token); err != nil {
		return nil, fmt.Errorf("in_cluster_config: %q: %w; check that this is a pod with a service account", token, keyfile.Reason(err))
	}
	return &rest.Config{
		Host: "https://" + net.JoinHostPort(host, port), BearerTokenFile: token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(r.serviceAccount, "ca.crt")},
	}, nil
}

// overlay replaces values from a kubeconfig with the settings, as the backend does.
func (s settings) overlay(c *rest.Config) error {
	if s.host != "" {
		c.Host = s.host
	}
	if s.exec != nil || s.has("token", "username", "password", "client_certificate", "client_key") {
		forget(c)
		c.BearerToken, c.Username, c.Password = s.String("token"), s.String("username"), s.String("password")
		c.CertData, c.KeyData = []byte(s.String("client_certificate")), []byte(s.String("client_key"))
		c.ExecProvider = s.exec
	}
	if ca := s.String("cluster_ca_certificate"); ca != "" {
		c.CAFile, c.CAData, c.Insecure = "", []byte(ca), false
	}
	if s.Has("insecure") {
		c.Insecure = s.Bool("insecure")
	}
	if c.Insecure {
		c.CAFile, c.CAData = "", nil
	}
	c.ServerName = cmp.Or(s.String("tls_server_name"), c.ServerName)
	u := recognize.Endpoint(c.Host)
	if u == nil {
		return errors.New("the kubeconfig: " + noHost)
	}
	c.Host = u.String()
	if c.AuthProvider != nil {
		return errors.New("the kubeconfig uses an auth-provider, but Kubernetes no longer supports those; use a credential plugin (exec), or " +
			"set the argument token")
	}
	s.setProxy(c)
	return nil
}

// forget removes the credentials from c.
func forget(c *rest.Config) {
	c.BearerToken, c.BearerTokenFile, c.Username, c.Password = "", "", "", ""
	c.CertFile, c.CertData, c.KeyFile, c.KeyData = "", nil, "", nil
	c.ExecProvider, c.AuthProvider, c.Impersonate = nil, nil, rest.ImpersonationConfig{}
}

func (s settings) setProxy(c *rest.Config) {
	if proxy := s.String("proxy_url"); proxy != "" {
		u, _ := url.Parse(proxy) // the attribute's Check has found no error
		c.Proxy = http.ProxyURL(u)
	}
	if c.Proxy == nil {
		find := web.Proxies(s.lookup).ProxyFunc()
		c.Proxy = func(req *http.Request) (*url.URL, error) { return find(req.URL) }
	}
}

// ofFile returns the path of the file that an error is about, in parentheses, and the reason. The path is
// empty if the error is about no file, or if the path may be a key that was pasted by mistake.
func ofFile(err error) (path string, why error) {
	failed, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return "", err
	}
	if shown := keyfile.Shown(failed.Path); shown != "" {
		path = " (" + shown + ")"
	}
	return path, keyfile.Explain(failed.Path, failed)
}

// loadFiles reads the files that the configuration names, once. Otherwise client-go would watch them and log
// their changes.
func loadFiles(c *rest.Config) error {
	if err := rest.LoadTLSFiles(c); err != nil {
		path, why := ofFile(err)
		return fmt.Errorf("a certificate or key that the kubeconfig names cannot be read%s: %w", path, why)
	}
	c.CAFile, c.CertFile, c.KeyFile = "", "", ""
	if c.BearerTokenFile == "" {
		return nil
	}
	token, err := keyfile.ReadText(c.BearerTokenFile)
	if err != nil {
		return fmt.Errorf("the token: %w", err)
	}
	c.BearerToken, c.BearerTokenFile = strings.TrimSpace(string(token)), ""
	return nil
}
