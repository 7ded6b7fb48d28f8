package git

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// stranger is somebody who sets variables and wants the password of a block: a
// server with a certificate of its own, a proxy that leads to it, and a program
// and files that keep whatever they see.
type stranger struct {
	got     nettest.Log[string] // what requests show of who asks
	url     string
	caFile  string
	proxy   string
	dir     string
	program string
	config  string // a file of git's configuration
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	s := &stranger{dir: t.TempDir()}
	authority := nettest.NewAuthority()
	s.caFile = filepath.Join(s.dir, "ca.pem")
	s.write(t, s.caFile, authority.PEM, 0o600)
	s.url = nettest.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.got.Note(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
	}), authority.Issue(nil, "127.0.0.1").Pair()).URL
	s.proxy = nettest.Serve(t, http.HandlerFunc(s.connect))
	s.program = filepath.Join(s.dir, "program")
	script := fmt.Sprintf("#!/bin/sh\n{ env; echo \"$@\"; cat; cat /proc/self/fd/3; } >>'%s/seen' 2>/dev/null\nexit 1\n", s.dir)
	s.write(t, s.program, script, 0o700)
	for _, hook := range []string{"reference-transaction", "post-index-change", "pre-auto-gc"} {
		s.write(t, filepath.Join(s.dir, "hooks", hook), script, 0o700)
	}
	s.config = filepath.Join(s.dir, "git", "config")
	s.write(t, s.config, fmt.Sprintf("[http]\n\tsslVerify = false\n[credential]\n\thelper = !%s\n[trace2]\n\teventTarget = %s/trace2\n",
		s.program, s.dir), 0o600)
	return s
}

func (s *stranger) write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// connect leads every host to the stranger's server.
func (s *stranger) connect(w http.ResponseWriter, r *http.Request) {
	nettest.Tunnel(w, r, strings.TrimPrefix(s.url, "https://"))
}

// settings are those of git's configuration that would help the stranger.
func (s *stranger) settings(scope string) []setting {
	return []setting{
		{"credential.helper", "!" + s.program}, {"credential." + scope + ".helper", "!" + s.program}, {"core.askPass", s.program},
		{"core.hooksPath", filepath.Join(s.dir, "hooks")}, {"core.alternateRefsCommand", s.program}, {"core.fsmonitor", s.program},
		{"core.sshCommand", s.program}, {"core.gitProxy", s.program}, {"uploadpack.packObjectsHook", s.program},
		{"http.sslVerify", "false"}, {"http." + scope + ".sslVerify", "false"}, {"http.sslCAInfo", s.caFile},
		{"http.proxySSLVerify", "false"}, {"http.followRedirects", "true"}, {"http." + scope + ".followRedirects", "true"},
		{"http.proxy", s.proxy}, {"url." + s.url + "/.insteadOf", scope}, {"include.path", s.config},
		{"http.cookieFile", s.dir + "/cookies"}, {"http.saveCookies", "true"}, {"trace2.eventTarget", s.dir + "/trace2"},
	}
}

// value is what the stranger sets a variable to.
func (s *stranger) value(name string) string {
	contains := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(name, part) {
				return true
			}
		}
		return false
	}
	switch {
	case contains("NO_PROXY", "no_proxy"):
		return "none.invalid"
	case contains("CERT", "CAINFO", "CAPATH", "CA_BUNDLE"):
		return s.caFile
	case contains("COMMAND", "ASKPASS", "GIT_SSH", "EDITOR", "PAGER", "PROVIDER", "MODULE"):
		return s.program
	case contains("PROXY", "proxy"):
		return s.proxy
	case contains("TRACE", "LOG", "CURL_VERBOSE"):
		return filepath.Join(s.dir, name)
	case contains("CONFIG_GLOBAL", "CONFIG_SYSTEM"):
		return s.config
	case contains("XDG_CONFIG_HOME", "TEMPLATE"):
		return s.dir
	case contains("NO_VERIFY", "COUNT"):
		return "1"
	}
	return s.url
}

// each calls f for every variable that git, ssh and the libraries of this program are
// known to read. Whoever says where programs and their parts are is none of them:
// git itself can be replaced in this way.
func (s *stranger) each(f func(name, value string)) {
	lists := withheldFromGit
	for _, some := range append(slices.Clone(forGit), withoutPassword...) {
		lists = append(slices.Clone(lists), some.names)
	}
	for _, some := range world.Known() {
		lists = append(lists, some.Names)
	}
	for name := range strings.FieldsSeq(strings.Join(append(lists, "http_proxy https_proxy all_proxy no_proxy"), " ")) {
		name, _, _ = strings.Cut(strings.ReplaceAll(name, "*", "X"), "=")
		isPath := world.IsBare(strings.ToUpper(name)) || name == "GIT_EXEC_PATH" || strings.HasSuffix(name, "LIBRARY_PATH")
		if !isPath && !strings.HasPrefix(name, "GIT_CONFIG_KEY") && !strings.HasPrefix(name, "GIT_CONFIG_VALUE") {
			f(name, s.value(name))
		}
	}
}

// check makes sure that the stranger has not seen the password.
func (s *stranger) check(t *testing.T, err error) {
	t.Helper()
	got := strings.Join(s.got.Requests(), "\n")
	walkErr := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			got += fmt.Sprintf("\nin %s: %s", path, text)
		}
		return err
	})
	if walkErr != nil {
		t.Fatal(walkErr)
	}
	mustNotHold(t, "what a stranger sees", got, canary, basicAuth("u", canary))
	if err != nil {
		mustNotHold(t, "the error", err.Error(), canary, basicAuth("u", canary))
	}
}

// TestSweep: no variable hands the password of a block to a stranger, to a program
// or to a log, whichever way it goes to git; and none does anything if the
// environment is off.
func TestSweep(t *testing.T) {
	long(t)
	if runtime.GOOS == "windows" {
		t.Skip("the stranger's program is a shell script")
	}
	moved := gittest.RedirectTo(301, func(r *http.Request) string {
		if rest, ok := strings.CutPrefix(r.URL.RequestURI(), "/acme/old"); ok {
			return "/acme/new" + rest // for which a helper gives the password, and not a header
		}
		return ""
	})
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{TLS: true, Username: "u", Password: canary,
		Before: func(w http.ResponseWriter, r *http.Request) bool {
			denied := strings.HasPrefix(r.URL.Path, "/acme/denied")
			if denied { // so that git looks for another password
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
			}
			return denied || moved(w, r)
		}})
	scope := server.Origin + "/acme/"
	at := place{repository: scope + "old", path: "s"}
	own := vars{"url": scope, "username": "u", "password": canary, "ca_file": server.CAFile}
	seen, model := map[string]bool{}, newStranger(t)
	try := func(name string, assign func(s *stranger) vars) {
		got := gitsEnviron(t, at, own, assign(model))
		if seen[got] { // git can't tell it from one that was tried
			return
		}
		seen[got] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStranger(t)
			for _, c := range []struct {
				at    place
				proxy string
			}{{at, ""}, {at, s.proxy}, {place{repository: scope + "denied", path: "s"}, ""}} {
				r := newTestRun(t, nil, own)
				r.environ = append(r.environ, "HTTPS_PROXY="+c.proxy)
				r.environ = append(r.environ, assign(s).environ()...)
				_, err := read(t, r, c.at)
				s.check(t, err)
			}
		})
	}
	model.each(func(name, _ string) {
		if isAmong(forGit, strings.ToUpper(name)) {
			try(name, func(s *stranger) vars { return vars{name: s.value(name)} })
		}
	})
	for i, c := range model.settings(scope) {
		try("GIT_CONFIG_COUNT: "+c.key, func(s *stranger) vars {
			return vars{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": c.key, "GIT_CONFIG_VALUE_0": s.settings(scope)[i].value}
		})
		try("GIT_CONFIG_PARAMETERS: "+c.key, func(s *stranger) vars {
			return vars{"GIT_CONFIG_PARAMETERS": "'" + c.key + "'='" + s.settings(scope)[i].value + "'"}
		})
	}
	t.Run("what git does not get", func(t *testing.T) {
		t.Parallel()
		s, r := newStranger(t), newTestRun(t, nil, own)
		s.each(func(name, value string) {
			if !isAmong(forGit, strings.ToUpper(name)) {
				r.environ = append(r.environ, name+"="+value)
			}
		})
		mustRead(t, r, at, "state")
		s.check(t, nil)
	})
}

// gitsEnviron is what git gets for the repository of a place, beside the secrets of a
// block, if somebody sets variables.
func gitsEnviron(t *testing.T, at place, block, variables vars) string {
	t.Helper()
	r := newTestRun(t, nil, block)
	r.environ = variables.environ()
	where, err := parseRepository(at.repository)
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.accessTo(where)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{} // of variables that are there twice, git gets the last
	for _, pair := range (&repository{run: r, remote: where, access: a}).environ().Pairs() {
		name, value, _ := strings.Cut(pair, "=")
		last[name] = value
	}
	return fmt.Sprint(last)
}

// TestSweepOfNothing: with the environment off, git gets none of it.
func TestSweepOfNothing(t *testing.T) {
	long(t)
	s, server := newStranger(t), gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{TLS: true, Username: "u", Password: canary})
	r := newRun(source.Settings{Credentials: newTestRun(t, nil, vars{"url": server.Origin, "username": "u", "password": canary,
		"ca_file": server.CAFile}).http}.For(Kind()))
	r.tempDir = t.TempDir()
	s.each(func(name, value string) { t.Setenv(name, value) })
	for i, c := range s.settings(server.Origin) {
		t.Setenv(fmt.Sprintf("GIT_CONFIG_KEY_%d", i), c.key)
		t.Setenv(fmt.Sprintf("GIT_CONFIG_VALUE_%d", i), c.value)
	}
	t.Setenv("GIT_CONFIG_COUNT", strconv.Itoa(len(s.settings(server.Origin))))
	mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
	s.check(t, nil)
}
