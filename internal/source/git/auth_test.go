package git

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

func stateRepo(t *testing.T) *gittest.Repo {
	t.Helper()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "state"})
	return repo
}

func mustNotHold(t *testing.T, what, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if s != "" && strings.Contains(text, s) {
			t.Errorf("%s holds the secret %q: %s", what, s, text)
		}
	}
}

// TestPasswords: where a password may come from, and what arrives.
func TestPasswords(t *testing.T) {
	t.Parallel()
	repo := stateRepo(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	says := openMistakes(t, "credentials")
	for name, c := range map[string]struct {
		env, block vars
		user       string // in the URL
		want       string // user:password
		fails      bool
	}{
		"block":                {block: vars{"username": "u", "password": "p"}, want: "u:p"},
		"block before env":     {env: vars{"GIT_USERNAME": "x", "GIT_PASSWORD": "y"}, block: vars{"username": "u", "password": "p"}, want: "u:p"},
		"GIT_PASSWORD":         {env: vars{"GIT_USERNAME": "u", "GIT_PASSWORD": "p", "GITHUB_TOKEN": "z"}, want: "u:p"},
		"GIT_PASSWORD_FILE":    {env: vars{"GIT_USERNAME": "u", "GIT_PASSWORD_FILE": file("a", " p\r\n"), "GITHUB_TOKEN": "z"}, want: "u:p"},
		"GITHUB_TOKEN":         {env: vars{"GITHUB_TOKEN": "z"}, want: "x-access-token:z"},
		"GITHUB_TOKEN, user":   {env: vars{"GIT_USERNAME": "u", "GITHUB_TOKEN": "z"}, want: "u:z"},
		"GITHUB_TOKEN_FILE":    {env: vars{"GITHUB_TOKEN_FILE": file("b", "z\n")}, want: "x-access-token:z"},
		"user of the URL":      {env: vars{"GIT_PASSWORD": "p"}, user: "bob@", want: "bob:p"},
		"block's user wins":    {block: vars{"username": "u", "password": "p"}, user: "bob@", want: "u:p"},
		"percent, quotes":      {block: vars{"username": "u", "password": `p%41"'$(x)` + "`\\"}, want: `u:p%41"'$(x)` + "`\\"},
		"UTF-8":                {block: vars{"username": "ü", "password": "pä"}, want: "ü:pä"},
		"colon in password":    {block: vars{"username": "u", "password": "p:q"}, want: "u:p:q"},
		"no username":          {block: vars{"password": "p"}, fails: true},
		"another's username":   {env: vars{"GIT_USERNAME": "u"}, block: vars{"password": "p"}, fails: true},
		"colon in username":    {block: vars{"username": "u:v", "password": "p"}, fails: true},
		"newline in password":  {block: vars{"username": "u", "password": "p\nhost=evil"}, fails: true},
		"return in password":   {block: vars{"username": "u", "password": "p\r"}, fails: true},
		"newline in username":  {block: vars{"username": "u\n", "password": "p"}, fails: true},
		"file does not exist":  {env: vars{"GIT_PASSWORD_FILE": dir + "/none-secret"}, fails: true},
		"file in UTF-16":       {env: vars{"GIT_PASSWORD_FILE": file("u", "\xff\xfep\x00")}, fails: true},
		"file is empty":        {env: vars{"GIT_PASSWORD_FILE": file("c", " \n")}, fails: true},
		"file is a directory":  {env: vars{"GITHUB_TOKEN_FILE": dir}, fails: true},
		"file is not readable": {env: vars{"GITHUB_TOKEN_FILE": "\x00"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" && strings.HasPrefix(name, "file ") {
				t.Skip("Windows words this error differently")
			}
			user, password, _ := strings.Cut(c.want, ":")
			server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: user, Password: password})
			address := strings.Replace(server.URL, "://", "://"+c.user, 1)
			r := newTestRun(t, c.env, with(vars{"url": server.Origin}, c.block))
			if c.fails {
				_, err := read(t, r, place{repository: address, path: "s"})
				says.Error(t, name, err)
				mustNotHold(t, "the error", err.Error(), "none-secret", "host=evil")
				if n := len(server.Requests()); n != 0 {
					t.Errorf("%d requests in spite of the error", n)
				}
				return
			}
			mustRead(t, r, place{repository: address, path: "s"}, "state")
			for _, got := range server.Authorizations() {
				if got != "Basic "+basicAuth(user, password) {
					t.Errorf("Authorization: %s", got)
				}
			}
			if n := len(server.Authorizations()); n != 5 || len(server.Requests()) != 5 {
				t.Errorf("%d of %d requests had credentials; want 5 of 5, without asking first", n, len(server.Requests()))
			}
		})
	}
}

// TestStraySecrets: without a block that covers the URL.
//
// Promise: Where secrets go
func TestStraySecrets(t *testing.T) {
	long(t)
	t.Parallel()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{})
	secretFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secretFile, []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	says := openMistakes(t, "secrets without a block")
	for name, c := range testkit.Some(map[string]struct {
		env   vars
		sent  string
		fails bool
	}{
		"GIT_PASSWORD": {env: vars{"GIT_PASSWORD": canary},
			fails: true},
		"GIT_PASSWORD_FILE":                 {env: vars{"GIT_PASSWORD_FILE": secretFile}, fails: true},
		"the error says what to write":      {env: vars{"GIT_PASSWORD": canary}, fails: true},
		"GITHUB_TOKEN is ignored":           {env: vars{"GITHUB_TOKEN": canary}},
		"GITHUB_TOKEN_FILE is ignored":      {env: vars{"GITHUB_TOKEN_FILE": secretFile}},
		"GITHUB_TOKEN is ignored elsewhere": {env: vars{"GITHUB_TOKEN": canary, "GITHUB_SERVER_URL": "https://github.example.com"}},
		"GITHUB_TOKEN, another scheme": {env: vars{"GITHUB_TOKEN": canary,
			"GITHUB_SERVER_URL": strings.Replace(server.Origin, "http:", "https:", 1)}},
		"GITHUB_TOKEN for GITHUB_SERVER_URL": {env: vars{"GITHUB_TOKEN": canary, "GITHUB_SERVER_URL": server.Origin}, sent: "x-access-token"},
		"GITHUB_TOKEN_FILE there": {env: vars{"GITHUB_TOKEN_FILE": secretFile, "GITHUB_SERVER_URL": server.Origin},
			sent: "x-access-token"},
		"GITHUB_TOKEN before GIT_PASSWORD": {env: vars{"GIT_PASSWORD": "x", "GIT_USERNAME": "u", "GITHUB_TOKEN": canary,
			"GITHUB_SERVER_URL": server.Origin}, sent: "u"},
		"no token for GITHUB_SERVER_URL": {env: vars{"GIT_PASSWORD": canary, "GITHUB_SERVER_URL": server.Origin},
			fails: true},
		"SSH_PRIVATE_KEY is no secret of http": {env: vars{"SSH_PRIVATE_KEY": secretFile}},
		"GITHUB_SERVER_URL that is none":       {env: vars{"GITHUB_TOKEN": canary, "GITHUB_SERVER_URL": "x"}},
	}) {
		t.Run(name, func(t *testing.T) {
			server.Reset()
			s, err := read(t, newTestRun(t, c.env), place{repository: server.URL, path: "s"})
			if c.fails {
				says.Error(t, name, err)
				mustNotHold(t, "the error", err.Error(), canary)
			} else if err != nil || string(s.Data) != "state" {
				t.Fatal(err)
			}
			got := server.Authorizations()
			if c.sent == "" && len(got) > 0 || c.sent != "" && (len(got) == 0 || got[0] != "Basic "+basicAuth(c.sent, canary)) {
				t.Errorf("sent %q", got)
			}
		})
	}
	t.Run("environment is not to be used", func(t *testing.T) {
		server.Reset()
		r := newReader(source.Settings{}.For(Kind()))
		r.tempDir = t.TempDir()
		mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
	})
	t.Run("github.com", func(t *testing.T) {
		where, err := parseRepository("https://github.com/acme/infra.git")
		if err != nil {
			t.Fatal(err)
		}
		a, err := newTestRun(t, vars{"GITHUB_TOKEN": canary}).accessTo(where)
		if err != nil || a.password != canary || a.scope != "https://github.com/" {
			t.Errorf("%+v, %v", a, err)
		}
		for _, other := range []string{"https://github.com.evil.io/a", "https://github.com@evil.io/a", "http://github.com/a",
			"https://github.com:8443/a", "https://gist.github.com/a", "https://github.com./a"} {
			where, err := parseRepository(other)
			if err != nil {
				t.Fatal(err)
			}
			a, err := newTestRun(t, vars{"GITHUB_TOKEN": canary}).accessTo(where)
			if err != nil || a.password != "" {
				t.Errorf("%s: %+v, %v", other, a, err)
			}
		}
	})
}

// TestLookAlikes asks a real server, which answers at every path, and looks at
// what it was sent.
//
// Promise: Where secrets go
func TestLookAlikes(t *testing.T) {
	t.Parallel()
	repo := stateRepo(t)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	other := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	host := strings.TrimPrefix(server.Origin, "http://")
	otherHost := strings.TrimPrefix(other.Origin, "http://")
	_, port, _ := strings.Cut(host, ":")
	block := vars{"url": server.Origin + "/acme/", "username": "u", "password": canary}

	for address, sent := range testkit.Some(map[string]bool{
		server.Origin + "/acme/x.git":                     true,
		server.Origin + "/acme/sub/x.git":                 true,
		server.Origin + "/acme":                           true,
		server.Origin + "/acme-x/x.git":                   false,
		server.Origin + "/acme.git":                       false,
		server.Origin + "/ACME/x.git":                     false,
		server.Origin + "/x/acme/x.git":                   false,
		server.Origin + "//acme/x.git":                    false,
		server.Origin + "/acme/../x.git":                  false,
		server.Origin + "/acme/./x.git":                   false,
		server.Origin + "/acme/..%2fx.git":                false,
		server.Origin + "/acme/%2e%2e/x.git":              false,
		server.Origin + "/%61cme/x.git":                   false,
		server.Origin + "/acme%2fx.git":                   false,
		"http://localhost:" + port + "/acme/x.git":        false,
		"http://127.1:" + port + "/acme/x.git":            false,
		"http://" + host + "@" + otherHost + "/acme/x":    false,
		"http://127.0.0.1@" + otherHost + "/acme/x.git":   false,
		other.Origin + "/acme/x.git":                      false,
		other.Origin + "/" + host + "/acme/x.git":         false,
		"http://" + host + ".evil.io/acme/x.git":          false,
		"http://127.0.0.1.evil.io:" + port + "/acme/x.it": false,
		"https://" + host + "/acme/x.git":                 false,
		"http://" + host + "\\@" + otherHost + "/acme/x":  false,
		"http://" + host + "#@" + otherHost + "/acme/x":   false,
		"http://" + host + "?@" + otherHost + "/acme/x":   false,
		"http://evil@" + host + "@" + otherHost + "/acme": false,
	}) {
		server.Reset()
		other.Reset()
		r := newTestRun(t, nil, block)
		_, err := read(t, r, place{repository: address, path: "s"})
		if err != nil {
			mustNotHold(t, "the error", err.Error(), canary, basicAuth("u", canary))
		}
		got := append(server.Authorizations(), other.Authorizations()...)
		if sent && (err != nil || len(got) != 5) {
			t.Errorf("%s: credentials in %d requests, want 5; %v", address, len(got), err)
		}
		for _, header := range got {
			if !sent && strings.Contains(header, basicAuth("u", canary)) {
				t.Errorf("%s: the server got the credentials", address)
			}
		}
	}
}

func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	says := openMistakes(t, "plain http")
	for address, want := range map[string]bool{
		"http://localhost:1/a": true, "http://127.9.9.9/a": true, "http://[::1]/a": true,
		"http://git.example.com/a": false, "http://10.0.0.1/a": false, "http://localhost.evil.io/a": false, "http://127.0.0.1.evil.io/a": false,
		"https://git.example.com/a": true,
	} {
		where, err := parseRepository(address)
		if err != nil {
			t.Fatal(err)
		}
		block := vars{"url": source.Origin(where.url), "username": "u", "password": canary}
		a, err := newTestRun(t, nil, block).accessTo(where)
		if want && (err != nil || a.password != canary) {
			t.Errorf("%s: %v", address, err)
		}
		if !want {
			says.Error(t, address, err)
			mustNotHold(t, "the error", err.Error(), canary)
		}
		if a, err := newTestRun(t, nil, with(block, vars{"allow_plain_http": "true"})).accessTo(where); err != nil || a.password != canary {
			t.Errorf("%s with allow_plain_http: %v", address, err)
		}
	}
}

// What may be sent to this machine over plain http goes through no proxy, which curl would
// ask for this machine, too.
//
// Promise: Where secrets go
func TestNoProxyForThisMachine(t *testing.T) {
	t.Parallel()
	proxy := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{})
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Username: "u", Password: canary})
	for _, host := range []string{"127.0.0.1", "localhost"} {
		at := func(u string) string { return strings.Replace(u, "127.0.0.1", host, 1) }
		r := newTestRun(t, nil, vars{"url": at(server.Origin), "username": "u", "password": canary})
		r.environ = append(r.environ, "http_proxy="+proxy.Origin, "all_proxy="+proxy.Origin)
		mustRead(t, r, place{repository: at(server.URL), path: "s"}, "state")
	}
	if got := proxy.Requests(); len(got) > 0 {
		t.Errorf("the proxy got %q", got)
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Username: "u", Password: "right"})
	r := newTestRun(t, nil, vars{"url": server.Origin, "username": "u", "password": canary})
	log := userHelper(t, r, "u", "right")
	_, err := read(t, r, place{repository: server.URL, path: "s"})
	says := openMistakes(t, "a wrong password")
	says.Error(t, "of a block", err)
	mustNotHold(t, "the error", err.Error(), canary, basicAuth("u", canary))
	if text, _ := os.ReadFile(log); len(text) > 0 {
		t.Errorf("the user's own helper was asked, and may have lost what it knew: %s", text)
	}
}

func TestNoCredentials(t *testing.T) {
	t.Parallel()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Username: "u", Password: "p"})
	r := newTestRun(t, nil)
	program, ran := asker(t)
	r.environ = append(r.environ, "SSH_ASKPASS="+program, "DISPLAY=:0")
	begin := time.Now()
	_, err := read(t, r, place{repository: server.URL, path: "s"})
	if _, err := os.Stat(ran); err == nil {
		t.Error("SSH_ASKPASS, which may open a window, was run")
	}
	says := openMistakes(t, "no credentials")
	says.Error(t, "at all", err)
	sourcetest.Lacks(t, err, "credentials.git", `url = "`+server.URL+`"`, "username = var.git_username", "password = var.git_password")
	mustNotBeMissing(t, err)
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("it took %v: someone was asked", took)
	}
}

// asker is a program for GIT_ASKPASS, and the file that it leaves behind.
func asker(t *testing.T) (program, ran string) {
	t.Helper()
	dir := t.TempDir()
	program, ran = filepath.Join(dir, "ask"), filepath.Join(dir, "ran")
	script := "#!/bin/sh\ntouch '" + filepath.ToSlash(ran) + "'\ncase $1 in User*) echo u;; *) echo p;; esac\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, ran
}

// userHelper configures a credential helper as a user would, and returns the
// file where it notes that it was called.
func userHelper(t *testing.T, r *run, user, password string) (log string) {
	t.Helper()
	home := t.TempDir()
	log = filepath.Join(home, "asked")
	text := "[credential]\n\thelper = \"!f() { echo $1 >> '" + filepath.ToSlash(log) + "'; test $1 = get && echo username=" + user +
		" && echo password=" + password + "; }; f\"\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.environ = append(r.environ, "HOME="+home)
	return log
}

func TestUsersOwnSetup(t *testing.T) {
	long(t)
	t.Parallel()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Username: "u", Password: "p"})
	t.Run("netrc", func(t *testing.T) {
		r := newTestRun(t, nil)
		home := t.TempDir()
		for _, name := range []string{".netrc", "_netrc"} {
			if err := os.WriteFile(filepath.Join(home, name), []byte("machine 127.0.0.1 login u password p\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r.environ = append(r.environ, "HOME="+home)
		mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
	})
	t.Run("helper", func(t *testing.T) {
		r := newTestRun(t, nil)
		log := userHelper(t, r, "u", "p")
		mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
		if text, _ := os.ReadFile(log); !strings.Contains(string(text), "get") {
			t.Error("the helper was not asked")
		}
	})
	t.Run("GIT_ASKPASS", func(t *testing.T) {
		r := newTestRun(t, nil)
		program, _ := asker(t)
		r.environ = append(r.environ, "GIT_ASKPASS="+program)
		mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
	})
	t.Run("helper with a block that has no password", func(t *testing.T) {
		r := newTestRun(t, nil, vars{"url": server.Origin, "username": "u"})
		userHelper(t, r, "u", "p")
		mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
	})
	t.Run("GIT_CONFIG_COUNT is kept", func(t *testing.T) {
		r := newTestRun(t, vars{"GIT_PASSWORD": "p"}, vars{"url": server.Origin, "username": "u"})
		server.Reset()
		r.environ = append(r.environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+server.Origin+"/there/.insteadOf", "GIT_CONFIG_VALUE_0="+
			server.Origin+"/here/")
		mustRead(t, r, place{repository: server.Origin + "/here/x", path: "s"}, "state")
		for _, request := range server.Requests() {
			if !strings.HasPrefix(request.Path, "/there/x/") {
				t.Errorf("the user's configuration is lost: %s", request.Path)
			}
		}
	})
}

// TestRedirects: the credentials of one place must not reach another, in
// whatever way git is given them.
func TestRedirects(t *testing.T) {
	t.Parallel()
	repo := stateRepo(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, target := range map[string]gittest.HTTPOptions{"200": {}, "401": {Username: "u", Password: canary}} {
			t.Run("other origin "+http.StatusText(status)+" answers "+name, func(t *testing.T) {
				t.Parallel()
				other := gittest.HTTP(t, repo, target)
				server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: gittest.RedirectTo(status, func(r *http.Request) string {
					return other.Origin + r.URL.RequestURI()
				})})
				r := newTestRun(t, nil, vars{"url": server.Origin, "username": "u", "password": canary})
				s, err := read(t, r, place{repository: server.URL, path: "s"})
				if got := other.Authorizations(); len(got) > 0 {
					t.Errorf("the other origin got %q", got)
				}
				if len(other.Requests()) == 0 {
					t.Error("the other origin was never asked: this test shows nothing")
				}
				if name == "200" && (err != nil || string(s.Data) != "state") {
					t.Errorf("a public mirror was not read: %v", err)
				}
				if name == "401" {
					mustFail(t, err)
					mustNotHold(t, "the error", err.Error(), canary, basicAuth("u", canary))
				}
			})
		}
	}
	sameOrigin := func(r *http.Request) string {
		if rest, ok := strings.CutPrefix(r.URL.RequestURI(), "/acme/old"); ok {
			return "/acme/new" + rest
		}
		if rest, ok := strings.CutPrefix(r.URL.RequestURI(), "/acme/moved"); ok {
			return "/elsewhere/new" + rest
		}
		return ""
	}
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "u", Password: canary, Before: gittest.RedirectTo(301, sameOrigin)})
	block := vars{"url": server.Origin + "/acme", "username": "u", "password": canary}
	t.Run("same origin", func(t *testing.T) {
		mustRead(t, newTestRun(t, nil, block), place{repository: server.Origin + "/acme/old", path: "s"}, "state")
	})
	t.Run("same origin, odd password", func(t *testing.T) {
		odd := `%41"'$(x)\ ` + "`"
		server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "u", Password: odd, Before: gittest.RedirectTo(301, sameOrigin)})
		mustRead(t, newTestRun(t, nil, vars{"url": server.Origin, "username": "u", "password": odd}),
			place{repository: server.Origin + "/acme/old", path: "s"}, "state")
	})
	t.Run("same origin, outside the block's path", func(t *testing.T) {
		server.Reset()
		_, err := read(t, newTestRun(t, nil, block), place{repository: server.Origin + "/acme/moved", path: "s"})
		mustFail(t, err)
		for _, r := range server.Requests() {
			if strings.HasPrefix(r.Path, "/elsewhere/") && r.Authorization != "" {
				t.Errorf("%s got the credentials", r.Path)
			}
		}
	})
	says := openMistakes(t, "redirects")
	t.Run("https to http", func(t *testing.T) {
		plain := gittest.HTTP(t, repo, gittest.HTTPOptions{})
		server := gittest.HTTP(t, repo, gittest.HTTPOptions{TLS: true,
			Before: gittest.RedirectTo(302, func(r *http.Request) string { return plain.Origin + r.URL.RequestURI() })})
		for name, block := range map[string]vars{"no password": {"url": server.Origin, "ca_file": server.CAFile},
			"a password": {"url": server.Origin, "ca_file": server.CAFile, "username": "u", "password": canary}} {
			_, err := read(t, newTestRun(t, nil, block), place{repository: server.URL, path: "s"})
			says.Error(t, "https to http, "+name, err)
			mustNotHold(t, "the error", err.Error(), canary)
		}
		if n := len(plain.Requests()); n > 0 {
			t.Errorf("%d requests over plain http", n)
		}
	})
}

// The switch alone decides whether git asks the server that a redirect leads to. A source has it on, and a backend off.
//
// Promise: Where secrets go
func TestFollowsRedirects(t *testing.T) {
	t.Parallel()
	repo := stateRepo(t)
	other := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: gittest.RedirectTo(http.StatusFound, func(r *http.Request) string {
		return other.Origin + r.URL.RequestURI()
	})})
	for name, block := range map[string]vars{
		"no password": {"url": server.Origin},
		"a password":  {"url": server.Origin, "username": "u", "password": canary},
	} {
		for _, follows := range []bool{true, false} {
			r := newTestRun(t, nil, block)
			if !r.followsRedirects {
				t.Error("a source does not follow redirects")
			}
			r.followsRedirects = follows
			server.Reset()
			other.Reset()
			s, err := read(t, r, place{repository: server.URL, path: "s"})
			if n := len(server.Requests()); !follows && n != 1 {
				t.Errorf("%s: %d requests, where one shows that the server redirects", name, n)
			}
			if asked := len(other.Requests()) > 0; asked != follows || (err == nil) != follows || follows && string(s.Data) != "state" {
				t.Errorf("%s, %v: the other server is asked: %v, %v", name, follows, asked, err)
			}
			if sent := other.Authorizations(); len(sent) > 0 {
				t.Errorf("%s, %v: the other server got %q", name, follows, sent)
			}
		}
	}
	if connectTo(t, server.URL, nil).run.followsRedirects {
		t.Error("a backend follows redirects")
	}
}

// The switch alone decides whether a block without a password is enough to send the server a token of GitHub. A source
// has it on, and a backend off.
//
// Promise: Where secrets go
func TestTokenForBlocks(t *testing.T) {
	t.Parallel()
	env := vars{"GITHUB_TOKEN": canary}
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{})
	for _, allowed := range []bool{true, false} {
		r := newTestRun(t, env, vars{"url": server.Origin})
		if !r.tokenForBlocks {
			t.Error("the block of a source is not for a token")
		}
		r.tokenForBlocks = allowed
		server.Reset()
		mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
		want := "Basic " + basicAuth("x-access-token", canary)
		if sent := server.Authorizations(); (len(sent) > 0) != allowed || allowed && sent[0] != want {
			t.Errorf("%v: sent %q", allowed, sent)
		}
	}
	if connectTo(t, server.URL, env).run.tokenForBlocks {
		t.Error("the block of a backend is for a token")
	}
}

// connectTo returns the server of the block of a backend that has nothing but a repository and a branch.
func connectTo(t *testing.T, repository string, env vars) *Server {
	t.Helper()
	v, err := block("backend.git", map[string]cty.Value{"repository": cty.StringVal(repository), "ref": cty.StringVal("main"),
		"path": cty.StringVal("s")}).Decode(Backend(), env.lookup)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Connect(v)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTLS(t *testing.T) {
	t.Parallel()
	repo := stateRepo(t)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{TLS: true})
	at := place{repository: server.URL, path: "s"}
	says := openMistakes(t, "TLS")
	t.Run("unknown authority", func(t *testing.T) {
		_, err := read(t, newTestRun(t, nil), at)
		says.Error(t, "an unknown authority", err)
	})
	t.Run("GIT_SSL_CAINFO", func(t *testing.T) {
		r := newTestRun(t, nil)
		r.environ = append(r.environ, "GIT_SSL_CAINFO="+server.CAFile)
		mustRead(t, r, at, "state")
	})
	t.Run("ca_file before GIT_SSL_CAINFO", func(t *testing.T) {
		r := newTestRun(t, nil, vars{"url": server.Origin, "ca_file": server.CAFile})
		r.environ = append(r.environ, "GIT_SSL_CAINFO=/nonexistent")
		mustRead(t, r, at, "state")
	})
	t.Run("ca_file that is none", func(t *testing.T) {
		missing := filepath.Join(t.TempDir(), "ca")
		for name, path := range map[string]string{"no file": missing, "perhaps a secret": "/nonexistent/" + canary,
			"its content": "-----BEGIN CERTIFICATE-----", "a folder": t.TempDir()} {
			_, err := read(t, newTestRun(t, nil, vars{"url": server.Origin, "ca_file": path}), at)
			says.Error(t, "ca_file, "+name, err)
		}
	})
	t.Run("GIT_SSL_NO_VERIFY", func(t *testing.T) {
		r := newTestRun(t, nil)
		r.environ = append(r.environ, "GIT_SSL_NO_VERIFY=1")
		if s := mustRead(t, r, at, "state"); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0].Text, "not verified") {
			t.Errorf("warnings %q", s.Warnings)
		}
	})
}

// TestSecretsStayHidden watches the arguments of all processes, the environment
// of git and of all that it starts, and the disk, while git talks to a slow server.
//
// Promise: Secrets of programs
func TestSecretsStayHidden(t *testing.T) {
	long(t)
	t.Parallel()
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("ps is not installed")
	}
	repo := stateRepo(t)
	var looks atomic.Int64
	slow := func(_ http.ResponseWriter, r *http.Request) bool {
		for until := looks.Load() + 2; looks.Load() < until && r.Context().Err() == nil; { // one that began after this
			time.Sleep(time.Millisecond)
		}
		return false
	}
	for name, before := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"header": slow,
		"helper": func(w http.ResponseWriter, r *http.Request) bool {
			slow(w, r)
			if !strings.HasPrefix(r.URL.Path, "/acme/") {
				return false
			}
			http.Redirect(w, r, "/new"+r.URL.RequestURI(), http.StatusMovedPermanently)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "u", Password: canary, Before: before})
			r := newTestRun(t, vars{"GIT_PASSWORD": canary}, vars{"url": server.Origin, "username": "u"})
			done := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { watch(t, r.tempDir, server.Origin, &looks, done) })
			mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
			close(done)
			wg.Wait()
		})
	}
}

func watch(t *testing.T, dir, origin string, looks *atomic.Int64, done <-chan struct{}) {
	secrets := []string{canary, basicAuth("u", canary)}
	seen := false
	for {
		select {
		case <-done:
			if !seen {
				t.Error("git was never seen: this test shows nothing")
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
		out, _ := exec.Command("ps", "-A", "-ww", "-o", "args").Output()
		mustNotHold(t, "a command line", string(out), secrets...)
		children := environments(dir)
		mustNotHold(t, "the environment of a child", children, secrets...)
		seen = seen || strings.Contains(string(out), "remote-http") && strings.Contains(string(out), origin) &&
			(runtime.GOOS != "linux" || children != "")
		_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().IsRegular() {
				text, _ := os.ReadFile(path)
				mustNotHold(t, path, string(text), secrets...)
			}
			if err == nil && info.IsDir() && path != dir && runtime.GOOS != "windows" && filepath.Dir(path) == dir && info.Mode().Perm() != 0o700 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return nil
		})
		looks.Add(1)
	}
}

// environments returns those of the processes that work in a folder of dir;
// only Linux shows them.
func environments(dir string) string {
	var all strings.Builder
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "GIT_DIR="+dir) {
			all.Write(text)
		}
	}
	return all.String()
}

// A user name in an address may be a token, and git repeats it when it asks for the
// password.
func TestUserNameIsNotShown(t *testing.T) {
	t.Parallel()
	const token = "x8Kq-zP2w9LmN3vR7tYb"
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Username: token, Password: "p"})
	_, err := read(t, newTestRun(t, nil), place{repository: strings.Replace(server.URL, "://", "://"+token+"@", 1), ref: "main", path: "s"})
	mustFail(t, err, "could not read Password for")
	mustNotHold(t, "the error", err.Error(), token)
}
