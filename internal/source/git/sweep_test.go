package git

import (
	"cmp"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/mixes"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// stranger is someone who sets variables and wants the password of a block: a
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
	// As ssh, it gets no end of its input.
	script := fmt.Sprintf("#!/bin/sh\nexec >>'%s/seen' 2>/dev/null\nenv; echo \"$@\"; cat /proc/self/fd/3\n"+
		"case \"$*\" in *upload-pack*) ;; *) cat ;; esac\nexit 1\n", s.dir)
	s.write(t, s.program, script, 0o700)
	for _, hook := range []string{"reference-transaction", "post-index-change", "pre-auto-gc"} {
		s.write(t, filepath.Join(s.dir, "hooks", hook), script, 0o700)
	}
	s.config = filepath.Join(s.dir, "git", "config")
	s.write(t, s.config, fmt.Sprintf("[http]\n\tsslVerify = false\n[credential]\n\thelper = !%s\n[trace2]\n\teventTarget = %s/trace2\n"+
		"\tconfigParams = *\n", s.program, s.dir), 0o600)
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
		{"http.proxy", s.proxy}, {"url.ssh://x/.insteadOf", scope + "old"}, {"url." + s.url + "/.insteadOf", scope}, {"include.path", s.config},
		{"http.cookieFile", s.dir + "/cookies"}, {"http.saveCookies", "true"}, {"trace2.eventTarget", s.dir + "/trace2"},
	}
}

// values are what the stranger may set a variable to.
func (s *stranger) values(name, scope string) []string {
	contains := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(strings.ToUpper(name), part) })
	}
	settings := s.settings(scope)
	for i, c := range settings {
		switch name {
		case fmt.Sprintf("GIT_CONFIG_KEY_%d", i):
			return []string{c.key}
		case fmt.Sprintf("GIT_CONFIG_VALUE_%d", i):
			return []string{c.value}
		}
	}
	var parameters []string
	for _, c := range settings {
		parameters = append(parameters, "'"+c.key+"'='"+c.value+"'")
	}
	switch {
	case name == "GIT_CONFIG_PARAMETERS":
		return append(parameters, strings.Join(parameters, " "))
	case name == "GIT_CONFIG_COUNT":
		return []string{strconv.Itoa(len(settings))}
	case contains("NO_PROXY"):
		return []string{"none.invalid"}
	case contains("PROXY"):
		return []string{s.proxy}
	case contains("CERT", "CAINFO", "CAPATH", "CA_BUNDLE"):
		return []string{s.caFile}
	case contains("EXEC_PATH", "LIBRARY_PATH", "XDG_CONFIG_HOME", "TEMPLATE"):
		return []string{s.dir}
	case contains("CONFIG_GLOBAL", "CONFIG_SYSTEM"):
		return []string{s.config}
	}
	return []string{s.program, s.url, "1", filepath.Join(s.dir, name)}
}

// names are all variables that git, ssh and the libraries of this program are known to
// read, but those that say where programs and files of the user are.
func (s *stranger) names(scope string) []string {
	names := strings.Fields("http_proxy https_proxy all_proxy no_proxy")
	for _, pair := range slices.Concat(withheldFromGit, forCommits, forTalks) {
		name, _, _ := strings.Cut(strings.ReplaceAll(pair, "*", "X"), "=")
		names = append(names, name)
	}
	for i := range s.settings(scope) {
		names = append(names, fmt.Sprintf("GIT_CONFIG_KEY_%d", i), fmt.Sprintf("GIT_CONFIG_VALUE_%d", i))
	}
	names = slices.Concat(names, mixes.Known(), mixes.Declared(credentialsTable().Attrs...), mixes.Declared(credentialsTable().Variables...))
	return slices.DeleteFunc(names, func(name string) bool { return world.IsBare(strings.ToUpper(name)) })
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

// TestSweep: no variables hand the password of a block to a stranger, to a program
// or to a log, however many there are and whichever way it goes to git.
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
	old, denied := place{repository: scope + "old", path: "s"}, place{repository: scope + "denied", path: "s"}
	own := vars{"url": scope, "username": "u", "password": canary, "ca_file": server.CAFile}
	s, seen := newStranger(t), map[string]bool{}
	try := func(name string, v vars) {
		direct := with(v, vars{"HTTPS_PROXY": "", "https_proxy": "", "ALL_PROXY": "", "all_proxy": ""})
		got := gitsEnviron(t, old, own, v) + gitsEnviron(t, old, own, direct)
		if seen[got] { // git can't tell it from one that was tried
			return
		}
		seen[got] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				at   place
				vars vars
			}{{old, v}, {old, direct}, {denied, direct}} {
				r := newTestRun(t, v, own)
				r.environ, r.versionOK = c.vars.environ(), true // which is asked of git without the secret
				_, err := read(t, r, c.at)
				s.check(t, err)
			}
		})
	}
	names := s.names(scope)
	values := func(name string) []string { return s.values(name, scope) }
	for name, v := range mixes.Of(names, values) {
		try(name, numbered(v))
	}
	for name, v := range mixes.Pairs(names, values) {
		try(name, numbered(v))
	}
	if len(seen) < 5 {
		t.Errorf("git got only %d environments", len(seen))
	}
}

// numbered has the settings in variables that are there as git wants them: counted, without
// gaps.
func numbered(v mixes.Variables) vars {
	out, n := vars(v), 0
	for i := range 100 {
		key, value := fmt.Sprintf("GIT_CONFIG_KEY_%d", i), fmt.Sprintf("GIT_CONFIG_VALUE_%d", i)
		k, setting := out[key], out[value]
		delete(out, key)
		delete(out, value)
		if k != "" && setting != "" {
			out[fmt.Sprintf("GIT_CONFIG_KEY_%d", n)], out[fmt.Sprintf("GIT_CONFIG_VALUE_%d", n)] = k, setting
			n++
		}
	}
	out["GIT_CONFIG_COUNT"] = strconv.Itoa(n)
	return out
}

// gitsEnviron is what git gets for the repository of a place, beside the secrets of a
// block, if someone sets variables.
func gitsEnviron(t *testing.T, at place, block, variables vars) string {
	t.Helper()
	r := runOf("", variables, block)
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
	a.grant = source.Grant{}                                                           // it is for errors, and its pointers differ each time
	return strings.ReplaceAll(fmt.Sprint(last, *a), cmp.Or(a.placeholder, "none"), "") // a random address
}

// TestSweepOfFiles: no settings of the user's files, whatever git knows, hand the password of
// a block to a program, a file or another server.
//
// Promise: Where secrets go
func TestSweepOfFiles(t *testing.T) {
	long(t)
	if runtime.GOOS == "windows" {
		t.Skip("the stranger's program is a shell script")
	}
	s, home := newStranger(t), t.TempDir()
	t.Chdir(s.dir) // git writes cookies to a file there
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{TLS: true, Username: "u", Password: canary,
		Before: gittest.RedirectTo(301, func(r *http.Request) string {
			if strings.HasPrefix(r.URL.Path, "/acme/old") {
				return s.url + r.URL.RequestURI()
			}
			return ""
		})})
	own := vars{"url": server.Origin + "/acme", "username": "u", "password": canary, "ca_file": server.CAFile}
	here, moved := place{repository: server.URL, path: "s"}, place{repository: server.Origin + "/acme/old", path: "s"}
	var names []string
	list, err := exec.Command("git", "help", "--config").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(list)) {
		section, setting, _ := strings.Cut(name, ".")
		if !slices.Contains([]string{"trace2", "credential", "http", "core"}, section) || strings.Contains(setting, "<") {
			continue
		}
		if abouts := []string{"", server.Origin + ".", here.repository + ".", moved.repository + ".", s.url + "."}; section == "credential" ||
			section == "http" {
			name = section + "." + abouts[rand.IntN(len(abouts))] + setting
		}
		names = append(names, name)
	}
	if len(names) < 50 {
		t.Fatalf("git knows %q", names)
	}
	proxy := nettest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nettest.Tunnel(w, r, strings.TrimPrefix(server.Origin, "https://"))
	}))
	refused := map[string]bool{} // settings, with their values, of which git is known to want another type
	plain := func(name string) string { return name[:strings.Index(name, ".")] + name[strings.LastIndex(name, "."):] }
	values := func(name string) (all []string) {
		for _, value := range []string{s.program, "!" + s.program, filepath.Join(s.dir, "written"), s.url, s.proxy, proxy, "true", "1", ""} {
			if !refused[strings.ToLower(plain(name))+"="+value] {
				all = append(all, value)
			}
		}
		return append(all, "")[:max(1, len(all))]
	}
	sent := 0
	try := func(name string, settings mixes.Variables) {
		t.Run(name, func(t *testing.T) {
			for _, at := range []place{here, moved} {
				for again := true; again; {
					var text strings.Builder
					for name, value := range settings {
						section, about, found := strings.Cut(strings.TrimSuffix(name, name[strings.LastIndex(name, "."):]), ".")
						if found {
							section += fmt.Sprintf(" %q", about)
						}
						fmt.Fprintf(&text, "[%s]\n\t%s = %q\n", section, name[strings.LastIndex(name, ".")+1:], value)
					}
					s.write(t, filepath.Join(home, ".gitconfig"), text.String(), 0o600)
					r := newTestRun(t, nil, own)
					r.environ = append(r.environ, "HOME="+home)
					_, err := read(t, r, at)
					if s.check(t, err); t.Failed() {
						t.Log(text.String())
					}
					again = false
					for name, value := range settings {
						if err != nil && ofAnotherType(err.Error(), strings.ToLower(plain(name))) {
							refused[strings.ToLower(plain(name))+"="+value], again = true, true
							delete(settings, name)
						}
					}
				}
			}
			sent += len(server.Authorizations())
			server.Reset()
		})
	}
	for _, i := range rand.Perm(len(names))[:testkit.Rounds(len(names))] {
		all := values(names[i])
		try(names[i], mixes.Variables{names[i]: all[rand.IntN(len(all))]})
	}
	for name, settings := range mixes.Of(names, values) {
		try(name, settings)
	}
	if sent == 0 {
		t.Error("the password was sent to nobody: this shows nothing")
	}
}

// ofAnotherType reports whether git ends because of a setting, called name, without which
// it may show more.
func ofAnotherType(said, name string) bool {
	says := map[string]string{"core.createobject": "mode for object creation", "http.sslbackend": "SSL backend"}[name]
	return strings.Contains(said, " for '"+name+"'") || says != "" && strings.Contains(said, says)
}

// TestSweepOfNothing: with the environment off, git gets none of it.
func TestSweepOfNothing(t *testing.T) {
	long(t)
	s, server := newStranger(t), gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{TLS: true, Username: "u", Password: canary})
	r := newReader(source.Settings{Credentials: newTestRun(t, nil, vars{"url": server.Origin, "username": "u", "password": canary,
		"ca_file": server.CAFile}).http}.For(Kind()))
	r.tempDir = t.TempDir()
	for _, name := range s.names(server.Origin) {
		t.Setenv(name, s.values(name, server.Origin)[0])
	}
	mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
	s.check(t, nil)
}
