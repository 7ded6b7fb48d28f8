package kubernetes

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	api "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// kubeconfig writes one with two contexts: "right" leads to the server as
// user, and "wrong", the current one, to nowhere.
func kubeconfig(t *testing.T, server string, cluster, user map[string]any) string {
	t.Helper()
	cluster["server"] = server
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "wrong",
		"clusters": []any{
			map[string]any{"name": "here", "cluster": cluster},
			map[string]any{"name": "nowhere", "cluster": map[string]any{"server": "https://127.0.0.1:1"}},
		},
		"users": []any{
			map[string]any{"name": "me", "user": user},
			map[string]any{"name": "nobody", "user": map[string]any{"token": "nobodys-token"}},
		},
		"contexts": []any{
			map[string]any{"name": "right", "context": map[string]any{"cluster": "here", "user": "me"}},
			map[string]any{"name": "wrong", "context": map[string]any{"cluster": "nowhere", "user": "nobody"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return file(t, filepath.Join(t.TempDir(), "config"), string(data), 0o600)
}

func file(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func trusting(s *kubetest.Server) map[string]any {
	return map[string]any{"certificate-authority-data": []byte(s.CA())}
}

func list1(values ...string) cty.Value {
	var out []cty.Value
	for _, v := range values {
		out = append(out, text(v))
	}
	return cty.ListVal(out)
}

func TestKubeconfig(t *testing.T) {
	s := prod(t)
	path := kubeconfig(t, s.URL, trusting(s), map[string]any{"token": s.Token})
	tokenFile := file(t, filepath.Join(t.TempDir(), "token"), s.Token+"\n", 0o600)
	byFile := kubeconfig(t, s.URL, trusting(s), map[string]any{"tokenFile": tokenFile})
	t.Setenv("HOME", filepath.Dir(path))
	for name, a := range map[string]attrs{
		"context":          {"config_path": text(path), "config_context": text("right")},
		"cluster and user": {"config_path": text(path), "config_context_cluster": text("here"), "config_context_auth_info": text("me")},
		"user by host": {"config_path": text(path), "config_context_auth_info": text("me"), "host": text(s.URL),
			"cluster_ca_certificate": text(s.CA())},
		"token by block": {"config_path": text(path), "config_context_cluster": text("here"), "token": text(s.Token)},
		"home":           {"config_path": text("~/config"), "config_context": text("right")},
		"token file":     {"config_path": text(byFile), "config_context": text("right")},
		"several":        {"config_paths": list1(path, byFile), "config_context": text("right")},
	} {
		t.Run(name, func(t *testing.T) {
			if snap := sourcetest.Fetch(t, open(t, settingsOf(a))); string(snap.Data) != stateJSON || snap.Warnings != nil {
				t.Errorf("got %q, %q", snap.Data, snap.Warnings)
			}
		})
	}
	says := sourcetest.OpenMistakes(t, "kubernetes, kubeconfigs", s.Token)
	for name, a := range map[string]attrs{
		"current context": {"config_path": text(path)},
		"no such context": {"config_path": text(path), "config_context": text("none")},
		"no such user":    {"config_path": text(path), "config_context_auth_info": text("none")},
		"no such file":    {"config_path": text(path + "x")},
		"not one":         {"config_path": text(tokenFile)},
		"auth-provider": {"config_context": text("right"), "config_path": text(kubeconfig(t, s.URL, trusting(s), map[string]any{
			"auth-provider": map[string]any{"name": "oidc", "config": map[string]any{"id-token": s.Token}}}))},
	} {
		t.Run(name, func(t *testing.T) {
			says.Error(t, name, fails(t, open(t, settingsOf(a))))
		})
	}
}

func TestClientCertificate(t *testing.T) {
	s := prod(t)
	authority := nettest.NewAuthority()
	issued := authority.Issue(nettest.OfClient("reader"))
	certificate, key := issued.Chain, issued.Key
	s.TLS.ClientAuth, s.TLS.ClientCAs = tls.VerifyClientCertIfGiven, nettest.Pool(authority.PEM)
	s.Accepts = func(r *http.Request) bool {
		return len(r.TLS.VerifiedChains) > 0 && r.TLS.PeerCertificates[0].Subject.CommonName == "reader"
	}
	dir := t.TempDir()
	files := map[string]any{
		"client-certificate": file(t, filepath.Join(dir, "crt"), certificate, 0o600),
		"client-key":         file(t, filepath.Join(dir, "key"), key, 0o600),
	}
	for name, a := range map[string]attrs{
		"block": {"host": text(s.URL), "cluster_ca_certificate": text(s.CA()), "client_certificate": text(certificate), "client_key": text(key)},
		"data": {"config_context": text("right"), "config_path": text(kubeconfig(t, s.URL, trusting(s),
			map[string]any{"client-certificate-data": []byte(certificate), "client-key-data": []byte(key)}))},
		"files": {"config_context": text("right"), "config_path": text(kubeconfig(t, s.URL, trusting(s), files))},
		"plugin": {"host": text(s.URL), "cluster_ca_certificate": text(s.CA()), "exec": execBlock(attrs{
			"command": text(credentialPlugin(t, map[string]any{"clientCertificateData": certificate, "clientKeyData": key}, ""))})},
	} {
		t.Run(name, func(t *testing.T) { sourcetest.Fetch(t, open(t, settingsOf(a))) })
	}
	a := access(s)
	fails(t, open(t, settingsOf(a)), "401")
	says := sourcetest.OpenMistakes(t, "kubernetes, client_key")
	for name, key := range map[string]string{
		"not a key": "not a key",
		"in base64": base64.StdEncoding.EncodeToString([]byte("-----BEGIN PRIVATE KEY-----")),
		"a path":    "keys/client.pem",
		"the head":  "-----BEGIN",
	} {
		set := settingsOf(attrs{"host": text(s.URL), "client_certificate": text(certificate), "client_key": text(key)})
		src, err := Kind().Start(set)(request(t, attrs{"secret_suffix": text("prod")}, set.LookupEnv))
		if err == nil {
			_, err = src.Fetch(t.Context())
		}
		if says.Error(t, name, err); err != nil && strings.Contains(err.Error(), key) {
			t.Errorf("%s: the error shows it: %v", name, err)
		}
	}
}

func TestBasicAuthentication(t *testing.T) {
	s := prod(t)
	s.Accepts = func(r *http.Request) bool { u, p, _ := r.BasicAuth(); return u == "me" && p == "secret-password" }
	a := access(s)
	delete(a, "token")
	a["username"], a["password"] = text("me"), text("secret-password")
	sourcetest.Fetch(t, open(t, settingsOf(a)))
}

func TestInCluster(t *testing.T) {
	s := prod(t)
	u, _ := url.Parse(s.URL)
	account := t.TempDir()
	file(t, filepath.Join(account, "token"), s.Token+"\n", 0o600)
	file(t, filepath.Join(account, "ca.crt"), s.CA(), 0o600)
	env := environment{"KUBERNETES_SERVICE_HOST": u.Hostname(), "KUBERNETES_SERVICE_PORT": u.Port()}
	inPod := func(settings source.Settings) *run {
		r := newRun(settings.For(Kind()))
		r.serviceAccount = account
		return r
	}
	for name, settings := range map[string]source.Settings{
		"block": {Credentials: settingsOf(attrs{"in_cluster_config": cty.True}).Credentials, LookupEnv: env.lookup},
		"found": {LookupEnv: env.lookup},
		"variable": {LookupEnv: environment{"KUBERNETES_SERVICE_HOST": u.Hostname(), "KUBERNETES_SERVICE_PORT": u.Port(),
			"KUBE_IN_CLUSTER_CONFIG": "true", "KUBECONFIG": filepath.Join(t.TempDir(), "none")}.lookup},
	} {
		t.Run(name, func(t *testing.T) {
			r := inPod(settings)
			src, err := r.open(request(t, attrs{"secret_suffix": text("prod")}, nil))
			if err != nil {
				t.Fatal(err)
			}
			sourcetest.Fetch(t, src)
			// A token that was rotated is read again when the old one is refused.
			old := s.Token
			s.Change(func() { s.Token = "rotated-token" })
			file(t, filepath.Join(account, "token"), s.Token, 0o600)
			sourcetest.Fetch(t, src)
			s.Change(func() { s.Token = old })
			file(t, filepath.Join(account, "token"), s.Token, 0o600)
		})
	}
	t.Run("beside a token of the code", func(t *testing.T) {
		own := settingsOf(attrs{"in_cluster_config": cty.True, "token": text(s.Token)}).Credentials
		src, err := inPod(source.Settings{Credentials: own, LookupEnv: env.lookup}).open(request(t, attrs{"secret_suffix": text("prod")}, nil))
		if err != nil {
			t.Fatal(err)
		}
		fails(t, src, "kubernetes.default.svc")
	})
	t.Run("no account", func(t *testing.T) {
		r := inPod(settingsOf(attrs{"in_cluster_config": cty.True}))
		r.serviceAccount = t.TempDir()
		src, err := r.open(request(t, attrs{"secret_suffix": text("prod")}, nil))
		if err != nil {
			t.Fatal(err)
		}
		sourcetest.OpenMistakes(t, "kubernetes, in a cluster").Error(t, "no pod", fails(t, src))
	})
}

func execBlock(a attrs) cty.Value {
	if _, ok := a["api_version"]; !ok {
		a["api_version"] = text("client.authentication.k8s.io/v1")
	}
	return cty.ObjectVal(a)
}

// credentialPlugin writes a real program that prints status, after more has
// run. It counts its runs in the file count beside it.
func credentialPlugin(t *testing.T, status map[string]any, more string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the plugin is a shell script")
	}
	answer, err := json.Marshal(map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file(t, filepath.Join(dir, "answer"), string(answer), 0o600)
	return file(t, filepath.Join(dir, "plugin"), fmt.Sprintf("#!/bin/sh\ndir=%s\necho run >>$dir/count\n%s\ncat $dir/answer\n", dir, more),
		0o700)
}

func runs(t *testing.T, plugin string) int {
	data, err := os.ReadFile(filepath.Join(filepath.Dir(plugin), "count"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "run")
}

func TestPlugin(t *testing.T) {
	s := prod(t)
	for name, value := range map[string]string{"KUBE_TOKEN": "a", "KUBE_PASSWORD": "b", "KUBE_CLIENT_KEY_DATA": "c", "TF_VAR_secret": "d",
		"MY_PASSPHRASE": "e", "GITHUB_TOKEN": "f", "AWS_PROFILE": "kept"} {
		t.Setenv(name, value)
	}
	status := map[string]any{"token": s.Token}
	command := credentialPlugin(t, status, "env >$dir/env; echo \"$@\" >$dir/args")
	inKubeconfig := map[string]any{"exec": map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "command": command,
		"args": []string{"get", "token\n\tof two lines"}, "interactiveMode": "IfAvailable",
		"env": []any{map[string]any{"name": "PLUGIN_SETTING", "value": "set"}}, "provideClusterInfo": true,
	}}
	block := access(s)
	delete(block, "token")
	block["exec"] = execBlock(attrs{"command": text(command), "args": list1("get", "token\n\tof two lines"),
		"env": cty.MapVal(map[string]cty.Value{"PLUGIN_SETTING": text("set")})})
	for name, a := range map[string]attrs{
		"block":      block,
		"kubeconfig": {"config_context": text("right"), "config_path": text(kubeconfig(t, s.URL, trusting(s), inKubeconfig))},
	} {
		t.Run(name, func(t *testing.T) {
			os.Remove(filepath.Join(filepath.Dir(command), "count"))
			settings := settingsOf(a)
			settings.LookupEnv = environment{}.lookup
			src := open(t, settings)
			for range 3 {
				sourcetest.Fetch(t, src)
			}
			if n := runs(t, command); n != 1 {
				t.Errorf("it was run %d times", n)
			}
			env, _ := os.ReadFile(filepath.Join(filepath.Dir(command), "env"))
			for _, part := range []string{"KUBE_TOKEN", "KUBE_PASSWORD", "KUBE_CLIENT_KEY_DATA", "TF_VAR_secret", "MY_PASSPHRASE", "GITHUB_TOKEN"} {
				if strings.Contains(string(env), part) {
					t.Errorf("it got %s", part)
				}
			}
			want := []string{"AWS_PROFILE=kept", "PLUGIN_SETTING=set",
				`KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{`}
			if name == "kubeconfig" {
				want = append(want, `"server":"`+s.URL+`"`)
			}
			for _, part := range want {
				if !strings.Contains(string(env), part) {
					t.Errorf("it did not get %s in\n%s", part, env)
				}
			}
			if args, _ := os.ReadFile(filepath.Join(filepath.Dir(command), "args")); string(args) != "get token\n\tof two lines\n" {
				t.Errorf("it got the arguments %q", args)
			}
		})
	}
}

// A plugin is asked again when what it answered has expired, or is refused.
func TestPluginExpires(t *testing.T) {
	s := prod(t)
	with := func(command string) source.Source {
		a := access(s)
		delete(a, "token")
		a["exec"] = execBlock(attrs{"command": text(command)})
		return open(t, settingsOf(a))
	}
	t.Run("expired", func(t *testing.T) {
		command := credentialPlugin(t, map[string]any{"token": s.Token,
			"expirationTimestamp": time.Now().Add(5 * time.Second).Format(time.RFC3339)}, "")
		src := with(command)
		sourcetest.Fetch(t, src)
		sourcetest.Fetch(t, src)
		if n := runs(t, command); n != 2 {
			t.Errorf("it was run %d times", n)
		}
	})
	t.Run("refused", func(t *testing.T) {
		command := credentialPlugin(t, map[string]any{"token": s.Token}, "")
		src := with(command)
		sourcetest.Fetch(t, src)
		s.Change(func() { s.Token = "another" })
		fails(t, src, "401 Unauthorized")
		if n := runs(t, command); n != 2 {
			t.Errorf("it was run %d times", n)
		}
	})
}

// What is in the place of the path of a kubeconfig may be one itself, with its token, as in
// a variable of a pipeline that is no file.
func TestKubeconfigInPlaceOfItsPath(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry-t0ken"
	content := "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: https://127.0.0.1:1\n  name: c\nusers:\n" +
		"- name: u\n  user:\n    token: " + canary + "\n"
	inJSON := `{"apiVersion":"v1","kind":"Config","users":[{"name":"u","user":{"token":"` + canary + `"}}]}`
	encoded := base64.StdEncoding.EncodeToString([]byte(content))
	ambient := func(name, value string) source.Settings {
		return source.Settings{LookupEnv: environment{name: value}.lookup}
	}
	says := sourcetest.OpenMistakes(t, "kubernetes, kubeconfigs in place of paths")
	for name, settings := range map[string]source.Settings{
		"config_path":           settingsOf(attrs{"config_path": text(content)}),
		"config_paths":          settingsOf(attrs{"config_paths": list1(content)}),
		"config_path, JSON":     settingsOf(attrs{"config_path": text(inJSON)}),
		"config_path, base64":   settingsOf(attrs{"config_path": text(encoded)}),
		"KUBECONFIG":            ambient("KUBECONFIG", content),
		"KUBECONFIG, JSON":      ambient("KUBECONFIG", inJSON),
		"KUBECONFIG, base64":    ambient("KUBECONFIG", encoded),
		"KUBE_CONFIG_PATH":      ambient("KUBE_CONFIG_PATH", content),
		"KUBE_CONFIG_PATHS":     ambient("KUBE_CONFIG_PATHS", content),
		"KUBECONFIG, the token": ambient("KUBECONFIG", canary),
	} {
		src, err := Kind().Start(settings)(request(t, attrs{"secret_suffix": text("prod")}, settings.LookupEnv))
		if err == nil {
			_, err = src.Fetch(t.Context())
		}
		says.Error(t, name, err)
		if err != nil && (strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), encoded[len(encoded)-30:])) {
			t.Errorf("%s: the error shows it: %v", name, err)
		}
	}
}

func TestPluginFails(t *testing.T) {
	s := prod(t)
	secret := "plugin-printed-this"
	says := sourcetest.OpenMistakes(t, "kubernetes, plugins", secret, "--secret-argument")
	for name, c := range map[string]struct {
		status map[string]any
		more   string
	}{
		"exit":        {nil, "printf 'log in first\\033[2J' >&2; exit 3"},
		"no JSON":     {nil, "echo " + secret + "; exit 0"},
		"nothing":     {map[string]any{}, ""},
		"half a pair": {map[string]any{"clientCertificateData": secret}, ""},
		"another api": {nil, `echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"` + secret +
			`"}}'; exit 0`},
		"flood": {nil, "yes " + secret + " | head -c 3000000; exit 0"},
	} {
		t.Run(name, func(t *testing.T) {
			a := access(s)
			delete(a, "token")
			a["exec"] = execBlock(attrs{"command": text(credentialPlugin(t, c.status, c.more)), "args": list1("--secret-argument")})
			says.Error(t, name, fails(t, open(t, settingsOf(a))))
		})
	}
	t.Run("not there", func(t *testing.T) {
		a := access(s)
		delete(a, "token")
		a["exec"] = execBlock(attrs{"command": text(filepath.Join(t.TempDir(), "plugin"))})
		sourcetest.OpenMistakes(t, "kubernetes, plugins that do not run").Error(t, "no program", fails(t, open(t, settingsOf(a))))
	})
	t.Run("stuck", func(t *testing.T) {
		p := &plugin{patience: 100 * time.Millisecond, ExecConfig: &api.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: credentialPlugin(t, nil, "sleep 100")}}
		begin := time.Now()
		if _, err := p.run(t.Context()); err == nil || time.Since(begin) > time.Minute {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
	})
	t.Run("terminal", func(t *testing.T) {
		path := kubeconfig(t, s.URL, trusting(s), map[string]any{"exec": map[string]any{
			"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true", "interactiveMode": "Always"}})
		err := fails(t, open(t, settingsOf(attrs{"config_path": text(path), "config_context": text("right")})))
		sourcetest.OpenMistakes(t, "kubernetes, plugins of a terminal").Error(t, "always", err)
	})
}

func TestInsecureAndPlain(t *testing.T) {
	s := prod(t)
	a := attrs{"host": text(s.URL), "token": text(s.Token), "insecure": cty.True}
	snap := sourcetest.Fetch(t, open(t, settingsOf(a)))
	if len(snap.Warnings) != 1 || snap.Warnings[0].Title != netfail.NotVerified {
		t.Fatalf("got %q", snap.Warnings)
	}
	sourcetest.OpenMistakes(t, "kubernetes, warnings").Check(t, "insecure", snap.Warnings[0].Text)
	// A kubeconfig that does not verify is overruled.
	path := kubeconfig(t, s.URL, map[string]any{"insecure-skip-tls-verify": true}, map[string]any{"token": s.Token})
	a = attrs{"config_path": text(path), "config_context": text("right")}
	if snap := sourcetest.Fetch(t, open(t, settingsOf(a))); len(snap.Warnings) != 1 {
		t.Errorf("got %q", snap.Warnings)
	}
	a["insecure"] = cty.False
	fails(t, open(t, settingsOf(a)), "unknown authority")
	a["cluster_ca_certificate"] = text(s.CA())
	if snap := sourcetest.Fetch(t, open(t, settingsOf(a))); len(snap.Warnings) != 0 {
		t.Errorf("got %q", snap.Warnings)
	}
	a["tls_server_name"] = text("example.org")
	fails(t, open(t, settingsOf(a)), "example.org")
	a["tls_server_name"] = text("example.com") // is in the certificate
	sourcetest.Fetch(t, open(t, settingsOf(a)))
}

// What is sent in the open is said. Behind kubectl proxy, nothing leaves this machine.
func TestPlainHTTP(t *testing.T) {
	s := prod(t)
	plain := nettest.Serve(t, s)
	reads := func(host, token, proxy string) string {
		snap := sourcetest.Fetch(t, open(t, settingsOf(attrs{"host": text(host), "token": text(token), "proxy_url": text(proxy)})))
		return fmt.Sprint(snap.Warnings)
	}
	const outside = "http://cluster.example.com"
	if got := reads(outside, s.Token, plain); !strings.Contains(got, "without encryption, because the host begins with http") {
		t.Errorf("got %q", got)
	}
	if got := reads(plain, s.Token, ""); got != "[]" {
		t.Errorf("got %q", got)
	}
	s.Change(func() { s.Token = "" })
	if got := reads(outside, "", plain); got != "[]" {
		t.Errorf("without credentials: got %q", got)
	}
}

func TestProxy(t *testing.T) {
	env := environment{"HTTPS_PROXY": "http://env.test:1"}
	path := kubeconfig(t, "https://cluster.example.test", map[string]any{"proxy-url": "http://kubeconfig.test:1"}, map[string]any{})
	for name, c := range map[string]struct {
		settings source.Settings
		want     string
	}{
		"environment":    {with(env, attrs{"host": text("cluster.example.test")}), "http://env.test:1"},
		"no environment": {settingsOf(attrs{"host": text("cluster.example.test")}), ""},
		"kubeconfig":     {with(env, attrs{"config_path": text(path), "config_context": text("right")}), "http://kubeconfig.test:1"},
		"the block's own": {with(env, attrs{"config_path": text(path), "config_context": text("right"),
			"proxy_url": text("http://block.test:1")}), "http://block.test:1"},
	} {
		t.Setenv("HTTPS_PROXY", "http://process.test:1")
		conn, err := connectionOf(t, c.settings, "")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if u, err := conn.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "cluster.example.test"}}); err != nil {
			t.Error(err)
		} else if u != nil {
			got = u.String()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// client-go writes to a log where it can. Secrets leak there.
func TestNothingIsLogged(t *testing.T) {
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	defer klog.LogToStderr(true)
	defer klog.SetOutput(io.Discard)
	s := prod(t)
	a := access(s)
	sourcetest.Fetch(t, open(t, settingsOf(a)))
	for _, change := range []func(){
		func() { a["token"] = text("wrong") },
		func() { s.Allows = func(string, string) bool { return false } },
		func() {
			s.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Warning", `299 - "a warning"`)
				w.Header().Set("Content-Length", "100")
				w.WriteHeader(500)
				return true
			}
		},
		nil, // the server ends
	} {
		if change == nil {
			s.Close()
		} else {
			s.Change(change)
		}
		fails(t, open(t, settingsOf(a)))
	}
	klog.Flush()
	if log.Len() > 0 {
		t.Errorf("logged %q", log.String())
	}
	klog.Error("this test would see it")
	klog.Flush()
	if log.Len() == 0 {
		t.Error("the test sees no log")
	}
}

// Whatever client-go may come to send, only reads leave.
func TestReadOnly(t *testing.T) {
	s := prod(t)
	conn, err := connectionOf(t, settingsOf(access(s)), "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(conn, patience)
	if err != nil {
		t.Fatal(err)
	}
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, refusal := web.ReadOnly{}.RoundTrip(post)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"} {
		if err := c.rest.Verb(method).AbsPath("/api/v1/namespaces/default/secrets/x").Do(t.Context()).Error(); err == nil ||
			errors.Unwrap(err) == nil || errors.Unwrap(err).Error() != refusal.Error() {
			t.Errorf("%s: got %v", method, err)
		}
	}
	if got := s.Requests(); len(got) > 0 {
		t.Errorf("the server got %q", got)
	}
}

// The name of a program is cut between characters.
func TestLongNameOfAProgram(t *testing.T) {
	t.Parallel()
	if got, want := programName("/bin/"+strings.Repeat("x", 99)+"é"), `"`+strings.Repeat("x", 99)+`…"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
