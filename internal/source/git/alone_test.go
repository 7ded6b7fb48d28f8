package git

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// TestPasswordTravelsAlone: the password of a block reaches no program but git's own, and
// no address but that of the block, whatever stands in variables and in the user's files.
// The state is read nevertheless.
//
// Promise: Where secrets go
func TestPasswordTravelsAlone(t *testing.T) {
	long(t)
	t.Parallel()
	for scheme, server := range map[string]*gittest.HTTPServer{
		"http":  gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Username: "u", Password: canary}),
		"https": gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{TLS: true, Username: "u", Password: canary}),
	} {
		scope := server.Origin + "/acme/"
		other := newStranger(t)
		bySSH := vars{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "url.ssh://x/.insteadOf", "GIT_CONFIG_VALUE_0": scope}
		home := func(instead, settings string) string {
			return "[url \"ssh://x/\"]\n\tinsteadOf = " + instead + "\n" + settings
		}
		for name, c := range map[string]struct {
			env    func(s *stranger) vars
			config string // ~/.gitconfig, in which PROGRAM is the stranger's
		}{
			"GIT_SSH_COMMAND":             {env: func(s *stranger) vars { return with(bySSH, vars{"GIT_SSH_COMMAND": s.program}) }},
			"GIT_SSH":                     {env: func(s *stranger) vars { return with(bySSH, vars{"GIT_SSH": s.program}) }},
			"GIT_SSH, with a file":        {env: func(s *stranger) vars { return vars{"GIT_SSH": s.program} }, config: home(scope, "")},
			"a file alone":                {config: home(scope, "[core]\n\tsshCommand = PROGRAM\n")},
			"a file about the address":    {config: home(server.URL, "[core]\n\tsshCommand = PROGRAM\n")},
			"a file that leads elsewhere": {config: "[url \"" + other.url + "/\"]\n\tinsteadOf = " + server.URL + "\n"},
			"a file about what git is told": {
				config: "[url \"" + other.url + "/\"]\n\tinsteadOf = statecrypt:the-address-of-the-block\n\tinsteadOf = statecrypt:\n",
			},
			"a file that has settings logged": {
				config: "[trace2]\n\teventTarget = PROGRAM.log\n\tnormalTarget = PROGRAM.log\n\tconfigParams = *\n",
			},
			"GIT_EXEC_PATH": {env: func(s *stranger) vars {
				for _, name := range []string{"git-remote-http", "git-remote-https", "git-fetch"} {
					if err := os.Symlink(s.program, filepath.Join(s.dir, name)); err != nil {
						t.Fatal(err)
					}
				}
				return vars{"GIT_EXEC_PATH": s.dir}
			}},
			"LD_LIBRARY_PATH": {env: func(s *stranger) vars { return vars{"LD_LIBRARY_PATH": noLibraries(t, s.dir)} }},
		} {
			t.Run(scheme+", "+name, func(t *testing.T) {
				t.Parallel()
				s, dir := newStranger(t), t.TempDir()
				own := vars{"url": scope, "username": "u", "password": canary}
				if server.CAFile != "" {
					own["ca_file"] = server.CAFile
				}
				r := newTestRun(t, nil, own)
				if c.env != nil {
					r.environ = c.env(s).environ()
				}
				if c.config != "" {
					s.write(t, filepath.Join(dir, ".gitconfig"), strings.ReplaceAll(c.config, "PROGRAM", s.program), 0o600)
				}
				r.environ = append(r.environ, "HOME="+dir)
				mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
				s.check(t, nil)
				other.check(t, nil)
			})
		}
	}
}

// TestServerOfTheBlock: no file of the user has git take another server for that of the
// block, or follow it to another one.
//
// Promise: Where secrets go
func TestServerOfTheBlock(t *testing.T) {
	long(t)
	t.Parallel()
	var to string
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Username: "u", Password: canary,
		Before: func(w http.ResponseWriter, r *http.Request) bool {
			moved := strings.HasPrefix(r.URL.Path, "/acme/old")
			if moved {
				http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusMovedPermanently)
			}
			return moved
		}})
	named := strings.Replace(server.Origin, "127.0.0.1", "localhost", 1)
	for name, c := range map[string]struct {
		url, config string // in which ADDRESS is the stranger's, without a scheme
		works       bool
	}{
		"any certificate":       {url: "https://ADDRESS/acme/", config: "[http]\n\tsslVerify = false\n"},
		"any certificate of it": {url: "https://ADDRESS/acme/", config: "[http \"https://ADDRESS/acme/infra.git\"]\n\tsslVerify = false\n"},
		"another address of a name": {url: named + "/acme/", works: true,
			config: "[http]\n\tcurloptResolve = " + named[len("http://"):] + ":127.0.0.2\n"},
		"the same, of it": {url: named + "/acme/", works: true,
			config: "[http \"" + named + "/acme/infra.git\"]\n\tcurloptResolve = " + named[len("http://"):] + ":127.0.0.2\n"},
		"where it redirects to": {url: server.Origin + "/acme/old/",
			config: "[http \"" + server.Origin + "/acme/old/infra.git\"]\n\tfollowRedirects = true\n\tsslVerify = false\n"},
		"another authority of it": {url: "https://ADDRESS/acme/",
			config: "[http \"https://ADDRESS/acme/infra.git\"]\n\tsslCAInfo = AUTHORITY\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, home := newStranger(t), t.TempDir()
			to = s.url
			if _, port, _ := strings.Cut(named[len("http://"):], ":"); strings.Contains(c.config, "127.0.0.2") {
				listener, err := net.Listen("tcp", "127.0.0.2:"+port)
				if err != nil {
					t.Skip(err)
				}
				t.Cleanup(func() { listener.Close() })
				go func() {
					_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // of a test
						s.got.Note(r.Header.Get("Authorization"))
						w.WriteHeader(http.StatusUnauthorized)
					}))
				}()
			}
			of := strings.NewReplacer("ADDRESS", strings.TrimPrefix(s.url, "https://"), "AUTHORITY", s.caFile)
			s.write(t, filepath.Join(home, ".gitconfig"), of.Replace(c.config), 0o600)
			block := vars{"url": of.Replace(c.url), "username": "u", "password": canary}
			if strings.Contains(c.config, "AUTHORITY") {
				block["ca_file"] = filepath.Join(s.dir, "own.pem")
				s.write(t, block["ca_file"], nettest.NewAuthority().PEM, 0o600)
			}
			r := newTestRun(t, nil, block)
			r.environ = append(r.environ, "HOME="+home)
			_, err := read(t, r, place{repository: block["url"] + "infra.git", path: "s"})
			if (err == nil) != c.works {
				t.Errorf("got %v", err)
			}
			s.check(t, err)
		})
	}
}

// TestHelperOfAProxy: whoever gives the password of a proxy does not get that of the block.
func TestHelperOfAProxy(t *testing.T) {
	long(t)
	t.Parallel()
	s, home := newStranger(t), t.TempDir()
	s.write(t, filepath.Join(home, ".gitconfig"), "[http]\n\tproxy = http://me@127.0.0.1:2\n[credential]\n\thelper = !"+
		s.program+"\n", 0o600)
	r := newTestRun(t, nil, vars{"url": "http://127.0.0.1:1/", "username": "u", "password": canary})
	r.environ = append(r.environ, "HOME="+home)
	_, err := read(t, r, place{repository: "http://127.0.0.1:1/a", path: "s"})
	if err == nil {
		t.Error("nobody is there, and something was read")
	}
	s.check(t, nil)
}

// noLibraries is a folder with files that no program can load, named as libraries of the
// part of git that speaks http.
func noLibraries(t *testing.T, dir string) string {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("the names of libraries are those of Linux")
	}
	list, err := exec.Command("ldd", filepath.Join(strings.TrimSpace(string(path)), "git-remote-http")).Output()
	if err != nil {
		t.Skip("ldd does not list the libraries of git")
	}
	for _, m := range regexp.MustCompile(`(?m)^\s*(libcurl\S+) =>`).FindAllStringSubmatch(string(list), -1) {
		if err := os.WriteFile(filepath.Join(dir, m[1]), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestInsteadOfBesidePassword: an address that only url.<base>.insteadOf makes one of a
// server is an error that says what to set.
func TestInsteadOfBesidePassword(t *testing.T) {
	long(t)
	t.Parallel()
	home := t.TempDir()
	config := "[url \"https://git.example.com/\"]\n\tinsteadOf = http://127.0.0.1:1/\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newTestRun(t, nil, vars{"url": "http://127.0.0.1:1/", "username": "u", "password": canary})
	r.environ = append(r.environ, "HOME="+home)
	_, err := read(t, r, place{repository: "http://127.0.0.1:1/a", path: "s"})
	openMistakes(t, "insteadOf").Error(t, "beside a password", err)
}

// TestMachineBesidePassword: the machine's proxy, in a variable or in the user's file, and
// an authority of the user's file stay in effect.
//
// Promise: Where secrets go
func TestMachineBesidePassword(t *testing.T) {
	long(t)
	t.Parallel()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{TLS: true, Username: "u", Password: canary})
	authority := "[http]\n\tsslCAInfo = " + filepath.ToSlash(server.CAFile) + "\n"
	proxy := nettest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nettest.Tunnel(w, r, strings.TrimPrefix(server.Origin, "https://"))
	}))
	for name, c := range map[string]struct {
		env    vars
		config string
	}{
		"a variable": {env: vars{"HTTPS_PROXY": proxy}},
		"a file":     {config: "\tproxy = " + proxy + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(authority+c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			r := newTestRun(t, nil, vars{"url": "https://example.com/", "username": "u", "password": canary})
			r.environ = append(c.env.environ(), "HOME="+home)
			mustRead(t, r, place{repository: "https://example.com/acme/infra", path: "s"}, "state")
		})
	}
}
