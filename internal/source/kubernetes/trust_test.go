package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

func with(env environment, blocks ...attrs) source.Settings {
	s := settingsOf(blocks...)
	s.LookupEnv = env.lookup
	return s
}

func connectionOf(t *testing.T, s source.Settings, cluster string) (*connection, error) {
	t.Helper()
	r := newRun(s.For(Kind()))
	chosen, err := choose(r.credentials, cluster)
	if err != nil {
		return nil, err
	}
	return r.connect(t.Context(), chosen)
}

// Which token goes to which host, and what the environment has a say in.
func TestWhoIsAsked(t *testing.T) {
	path := kubeconfig(t, "https://config.example.test", map[string]any{}, map[string]any{"token": "config-token"})
	ambient := environment{"KUBE_HOST": "https://env.example.test", "KUBE_TOKEN": "env-token"}
	for name, c := range map[string]struct {
		env         environment
		blocks      []attrs
		cluster     string
		host, token string
	}{
		"environment":     {ambient, nil, "", "https://env.example.test", "env-token"},
		"token elsewhere": {ambient, []attrs{{"host": text("https://a.test")}}, "", "https://a.test", ""},
		"token for the same host": {ambient, []attrs{{"host": text("https://env.example.test:443/")}}, "", "https://env.example.test:443/",
			"env-token"},
		"token for any host": {environment{"KUBE_TOKEN": "env-token"}, []attrs{{"host": text("a.test")}}, "", "https://a.test", "env-token"},
		"kubeconfig of a block": {ambient, []attrs{{"config_path": text(path), "config_context": text("right")}}, "",
			"https://config.example.test", "config-token"},
		"kubeconfig with a token": {environment{"KUBE_TOKEN": "env-token"},
			[]attrs{{"config_path": text(path), "config_context": text("right")}}, "", "https://config.example.test", "env-token"},
		"two clusters, first": {nil, []attrs{{"host": text("a.test"), "token": text("a")},
			{"name": text("b"), "host": text("b.test"), "token": text("b")}}, "", "https://a.test", "a"},
		"two clusters, second": {nil, []attrs{{"host": text("a.test"), "token": text("a")},
			{"name": text("b"), "host": text("b.test"), "token": text("b")}}, "b", "https://b.test", "b"},
		"KUBE_CONFIG_PATH": {environment{"KUBE_CONFIG_PATH": path, "KUBE_CTX": "right"}, nil, "", "https://config.example.test", "config-token"},
		"KUBE_CONFIG_PATHS": {environment{"KUBE_CONFIG_PATHS": path, "KUBE_CTX_CLUSTER": "here", "KUBE_CTX_AUTH_INFO": "me"}, nil, "",
			"https://config.example.test", "config-token"},
		"KUBECONFIG": {environment{"KUBECONFIG": filepath.Join(t.TempDir(), "none") + string(os.PathListSeparator) + path}, nil, "",
			"https://127.0.0.1:1", "nobodys-token"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := connectionOf(t, with(c.env, c.blocks...), c.cluster)
			if err != nil {
				t.Fatal(err)
			}
			if got.Host != c.host || got.BearerToken != c.token || got.BearerTokenFile != "" || got.ExecProvider != nil {
				t.Errorf("got %s with %q, want %s with %q", got.Host, got.BearerToken, c.host, c.token)
			}
		})
	}
}

func TestNoOneIsAsked(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	path := kubeconfig(t, "https://config.example.test", map[string]any{}, map[string]any{"token": "config-token"})
	ambient := environment{"KUBE_HOST": "https://env.example.test", "KUBE_TOKEN": "env-token", "KUBECONFIG": path,
		"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
	off := func(blocks ...attrs) source.Settings { return settingsOf(blocks...) }
	says := sourcetest.OpenMistakes(t, "kubernetes, settings of a cluster", "secret-a")
	for name, c := range map[string]struct {
		settings source.Settings
		cluster  string
	}{
		"environment switched off": {off(), ""},
		"empty environment":        {with(environment{}), ""},
		"block without a place":    {off(attrs{"token": text("secret-a")}), ""},
		"named, without a place":   {with(ambient, attrs{"name": text("a"), "token": text("secret-a")}), "a"},
		"every block has a name":   {with(ambient, attrs{"name": text("a"), "host": text("a.test")}), ""},
		"no such name":             {with(ambient, attrs{"name": text("a"), "host": text("a.test")}), "b"},
		"twice the same name":      {off(attrs{"host": text("a.test")}, attrs{"host": text("b.test")}), ""},
		"user in the host":         {off(attrs{"host": text("https://me:secret-a@a.test")}), ""},
		"token in the host":        {off(attrs{"host": text("https://a.test/?token=secret-a")}), ""},
		"another scheme":           {off(attrs{"host": text("file://a.test/secret-a")}), ""},
		"half a certificate":       {off(attrs{"host": text("a.test"), "client_key": text("-----BEGIN secret-a")}), ""},
		"two ways to be someone":   {off(attrs{"host": text("a.test"), "token": text("secret-a"), "password": text("secret-a")}), ""},
		"plugin and token": {off(attrs{"host": text("a.test"), "token": text("secret-a"),
			"exec": execBlock(attrs{"command": text("x")})}), ""},
		"old plugin": {off(attrs{"host": text("a.test"),
			"exec": execBlock(attrs{"command": text("x"), "api_version": text("client.authentication.k8s.io/v1alpha1")})}), ""},
		"path and paths":          {off(attrs{"config_path": text("a"), "config_paths": list1("b")}), ""},
		"context without a file":  {off(attrs{"host": text("a.test"), "config_context": text("a")}), ""},
		"unknown name":            {off(attrs{"name": cty.UnknownVal(cty.String), "host": text("a.test")}), ""},
		"half of the environment": {with(environment{"KUBE_HOST": "a.test", "KUBE_CLIENT_KEY_DATA": "-----BEGIN secret-a"}), ""},
		"proxy":                   {off(attrs{"host": text("a.test"), "proxy_url": text("secret-a")}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := connectionOf(t, c.settings, c.cluster)
			says.Error(t, name, err)
		})
	}
}

// What is wrong with a block that nobody uses harms nobody.
func TestBrokenBlock(t *testing.T) {
	blocks := []attrs{{"name": text("a"), "host": text("a.test")}, {"name": text("b"), "insecure": text("maybe")}}
	if c, err := connectionOf(t, settingsOf(blocks...), "a"); err != nil || c.Host != "https://a.test" {
		t.Errorf("got %v", err)
	}
	if _, err := connectionOf(t, settingsOf(blocks...), "b"); err == nil {
		t.Error("a broken block is used")
	}
}

// atHome writes the user's own kubeconfig, which leads to a server.
func atHome(t *testing.T, s *kubetest.Server) (path string) {
	t.Helper()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(kubeconfig(t, s.URL, trusting(s), map[string]any{"token": s.Token}))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	return file(t, filepath.Join(home, ".kube", "config"), strings.Replace(string(data), `"current-context":"wrong"`,
		`"current-context":"right"`, 1), 0o600)
}

// ~/.kube/config belongs to the user, and not to the environment.
func TestDefaultKubeconfig(t *testing.T) {
	s := prod(t)
	atHome(t, s)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_MASTER", "https://127.0.0.1:1")
	sourcetest.Fetch(t, open(t, with(environment{})))
	sourcetest.Fetch(t, open(t, settingsOf()))
	sourcetest.Fetch(t, open(t, settingsOf(attrs{"tls_server_name": text("127.0.0.1")})))
}

// A secret of the code does not go to the cluster of ~/.kube/config, but to one that the
// code names, which that file may be about.
//
// Promise: Where secrets go
func TestSecretBesideTheHome(t *testing.T) {
	s := prod(t)
	own := atHome(t, s)
	authority := nettest.NewAuthority()
	issued := authority.Issue(nettest.OfClient("reader"))
	says := sourcetest.OpenMistakes(t, "kubernetes, secrets beside ~/.kube/config")
	for name, a := range map[string]attrs{
		"token":       {"token": text("canary")},
		"password":    {"username": text("me"), "password": text("canary")},
		"certificate": {"client_certificate": text(issued.Chain), "client_key": text(issued.Key)},
	} {
		for on, settings := range map[string]source.Settings{"on": with(environment{"HOME": os.Getenv("HOME")}, a), "off": settingsOf(a)} {
			says.Error(t, name+", "+on, fails(t, open(t, settings)))
		}
	}
	if got := s.Requests(); len(got) > 0 {
		t.Errorf("asked for %q", got)
	}
	sourcetest.Fetch(t, open(t, settingsOf(attrs{"token": text(s.Token), "config_path": text(own)})))
	sourcetest.Fetch(t, open(t, with(environment{"KUBE_TOKEN": s.Token})))
	plugin := credentialPlugin(t, map[string]any{"token": s.Token}, "") // which finds an identity of the user
	sourcetest.Fetch(t, open(t, settingsOf(attrs{"exec": execBlock(attrs{"command": text(plugin)})})))
}

// Two clusters of one run never get each other's token.
func TestTwoClusters(t *testing.T) {
	a, b := prod(t), prod(t)
	a.Token, b.Token = "token-of-a", "token-of-b"
	blockA, blockB := access(a), access(b)
	blockA["name"], blockB["name"] = text("a"), text("b")
	openIn := Kind().Start(settingsOf(blockA, blockB))
	for name, s := range map[string]*kubetest.Server{"a": a, "b": b} {
		src, err := openIn(request(t, attrs{"secret_suffix": text("prod"), "cluster": text(name)}, nil))
		if err != nil {
			t.Fatal(err)
		}
		sourcetest.Fetch(t, src)
		if got := s.Requests(); len(got) != 1 {
			t.Errorf("asked for %q", got)
		}
		if want := `secret default/tfstate-default-prod in the Kubernetes cluster "` + name + `"`; src.String() != want {
			t.Errorf("got %s", src)
		}
	}
}
