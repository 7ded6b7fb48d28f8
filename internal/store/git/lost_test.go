package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// relay stands between git and a server, and may do something with each push.
type relay struct {
	target string // of the server
	push   atomic.Pointer[func(w http.ResponseWriter, send func() *httptest.ResponseRecorder)]
}

func (l *relay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	_, _ = body.ReadFrom(r.Body)
	send := func() *httptest.ResponseRecorder {
		ctx, url := context.WithoutCancel(r.Context()), l.target+r.URL.RequestURI()
		req, err := http.NewRequestWithContext(ctx, r.Method, url, bytes.NewReader(body.Bytes()))
		answer := httptest.NewRecorder()
		if err != nil {
			return answer
		}
		req.Header = r.Header.Clone()
		req.Header.Del("Accept-Encoding")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			answer.WriteHeader(http.StatusBadGateway)
			return answer
		}
		defer resp.Body.Close()
		for name, values := range resp.Header {
			answer.Header()[name] = values
		}
		answer.WriteHeader(resp.StatusCode)
		_, _ = answer.Body.ReadFrom(resp.Body)
		return answer
	}
	if push := l.push.Load(); push != nil && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
		(*push)(w, send)
		return
	}
	give(w, send())
}

func give(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func drop(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// behind is a state on a server behind a relay.
func behind(t *testing.T) (*gittest.Repo, *relay, func() store.State) {
	t.Helper()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	origin := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "alice", Password: canary})
	l := &relay{target: origin.Origin}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	return repo, l, func() store.State {
		s := at(t, texts{"repository": server.URL + "/acme/infra.git", "path": "net/prod", "username": "alice", "password": canary})
		return carefully(s)
	}
}

// TestAmbiguous: whatever becomes of the answer to a push, what is there then counts.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	for name, c := range testkit.Some(map[string]struct {
		push func(w http.ResponseWriter, send func() *httptest.ResponseRecorder)
		done bool
	}{
		"done, dropped": {func(w http.ResponseWriter, send func() *httptest.ResponseRecorder) { send(); drop(w) }, true},
		"done, 502": {func(w http.ResponseWriter, send func() *httptest.ResponseRecorder) {
			send()
			w.WriteHeader(http.StatusBadGateway)
		}, true},
		"done twice": {func(w http.ResponseWriter, send func() *httptest.ResponseRecorder) { send(); give(w, send()) }, true},
		"not done":   {func(w http.ResponseWriter, _ func() *httptest.ResponseRecorder) { drop(w) }, false},
		"not done, 503": {func(w http.ResponseWriter, _ func() *httptest.ResponseRecorder) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}, false},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, l, open := behind(t)
			s := open()
			check := func(what string, err error) {
				t.Helper()
				if c.done && err != nil || !c.done && err == nil || err != nil && strings.Contains(err.Error(), canary) {
					t.Errorf("%s: %v", what, err)
				}
			}
			l.push.Store(&c.push)
			check("a lock", s.Lock(t.Context(), storetest.Lock("1")))
			l.push.Store(nil)
			must(t, s.Lock(t.Context(), storetest.Lock("1")))
			l.push.Store(&c.push)
			_, err := s.Write(t.Context(), storetest.State(1), "")
			check("a write", err)
			if n := repo.Git("rev-list", "--count", "main"); (n == "2") != c.done {
				t.Errorf("there are %s commits", n)
			}
			if name == "done, 502" { // by force
				s = open()
			}
			check("an unlock", s.Unlock(t.Context(), "1"))
			if left := repo.Git("for-each-ref", "refs/heads/locks/"); (left == "") != c.done {
				t.Errorf("this is left: %q", left)
			}
		})
	}
}

// TestInterrupted: whoever gives up while the lock is asked for leaves neither that nor a
// folder.
//
// Promise: States in stores
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for name, done := range map[string]bool{"after": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, l, open := behind(t)
			s := open()
			var text strings.Builder
			ctx, cancel := context.WithCancel(notice.With(t.Context(), func(line string) { text.WriteString(line) }))
			push := func(w http.ResponseWriter, send func() *httptest.ResponseRecorder) {
				if done {
					l.push.Store(nil)
					send()
				}
				cancel()
				drop(w) // of a push that is not done, also if curl sends it again
			}
			l.push.Store(&push)
			if err := s.Lock(ctx, storetest.Lock("1")); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if left := repo.Git("for-each-ref", "refs/heads/locks/"); left != "" {
				t.Errorf("this is left: %q", left)
			}
			if strings.Contains(text.String(), "force-unlock") == done { // a slow server may make it later
				t.Errorf("this was said: %q", text.String())
			}
			l.push.Store(nil)
			must(t, s.Lock(t.Context(), storetest.Lock("2")))
		})
	}
}

// TestProgramsOfUser: what signs a commit sees no password, neither that of the block nor
// those that are in variables for git's helpers, and knows who makes the commit.
//
// Promise: Where secrets go
func TestProgramsOfUser(t *testing.T) {
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	dir := t.TempDir()
	gpg, log := filepath.Join(dir, "gpg"), filepath.Join(dir, "log")
	script := "#!/bin/sh\n{ env; ls -l /proc/self/fd; cat; } >>'" + log + "'\nprintf '[GNUPG:] SIG_CREATED \\n' >&2\n" +
		"printf -- '-----BEGIN PGP SIGNATURE-----\\nx\\n-----END PGP SIGNATURE-----\\n'\n"
	must(t, os.WriteFile(gpg, []byte(script), 0o700))
	config := filepath.Join(dir, "config")
	must(t, os.WriteFile(config, []byte("[gpg]\n\tprogram = "+gpg+"\n[commit]\n\tgpgSign = true\n[push]\n\tgpgSign = true\n[user]\n\t"+
		"name = U\n\temail = u@example.com\n[core]\n\tautocrlf = true\n[i18n]\n\tcommitEncoding = latin1\n"), 0o600))
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": config, "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GH_TOKEN": canary,
		"AWS_SECRET_ACCESS_KEY": canary,
		"GIT_ASKPASS":           canary, "HTTPS_PROXY": "http://u:" + canary + "@127.0.0.1:1", "GITHUB_TOKEN": canary, "GIT_PASSWORD": canary,
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.https://example.com/.extraHeader", "GIT_CONFIG_VALUE_0": "Authorization: " + canary,
		"GIT_CONFIG_PARAMETERS": "'http.extraheader'='X: " + canary + "'", "TF_VAR_x": canary,
	} {
		t.Setenv(name, value)
	}
	s := at(t, overHTTP(gittest.HTTPOptions{})(t, repo), texts{"path": "net/prod"})
	must(t, s.Lock(t.Context(), storetest.Lock("größe\r")))
	data := []byte("{}\r\n\x00\xff")
	_, err := s.Write(t.Context(), data, "")
	must(t, err)
	must(t, s.Unlock(t.Context(), "größe\r"))
	text, err := os.ReadFile(log)
	must(t, err)
	if strings.Contains(string(text), canary) || strings.Contains(string(text), "memfd") || strings.Count(string(text), "\ntree ") != 2 {
		t.Errorf("the program has seen\n%s", text)
	}
	commit := repo.Git("cat-file", "commit", "main")
	if !strings.Contains(commit, "author A <a@example.com>") || !strings.Contains(commit, "committer U <u@example.com>") ||
		!strings.Contains(commit, "gpgsig -----BEGIN PGP SIGNATURE-----") || strings.Contains(commit, "encoding") ||
		!strings.Contains(commit, "größe") {
		t.Errorf("the commit is\n%s", commit)
	}
	got, _, err := s.Read(t.Context())
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("got %q, %v", got, err)
	}
	s = at(t, overHTTP(gittest.HTTPOptions{})(t, repo), texts{"path": "net/prod", "author_name": "B", "author_email": "b@example.com"})
	_, version, err := s.Read(t.Context())
	must(t, err)
	_, err = s.Write(t.Context(), []byte("{}"), version)
	must(t, err)
	want := "B b@example.com B b@example.com Update net/prod\n\nchange by " + store.Me()
	if who := repo.Git("log", "-1", "--format=%an %ae %cn %ce %B", "main"); who != want {
		t.Errorf("it is %s", who)
	}
}

// TestCredentials: which of them go where.
func TestCredentials(t *testing.T) {
	const repository = "TF_BACKEND_GIT_GIT_REPOSITORY"
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	for name, c := range map[string]struct {
		env   map[string]string
		block texts
		sent  bool
	}{
		"the block's":         {block: texts{"username": "alice", "password": canary}, sent: true},
		"variables":           {env: map[string]string{"GIT_USERNAME": "alice", "GIT_PASSWORD": canary}, sent: true},
		"a variable":          {env: map[string]string{"GIT_PASSWORD": canary}, block: texts{"username": "alice"}, sent: true},
		"a token, and a name": {env: map[string]string{"GIT_USERNAME": "alice", "GITHUB_TOKEN": canary}, sent: true},
		"GitHub's token":      {env: map[string]string{"GITHUB_TOKEN": canary}},
		"those of another repository": {env: map[string]string{
			"GIT_USERNAME": "alice", "GIT_PASSWORD": canary, repository: "https://x.example.com/a"}},
		"those of the same repository": {env: map[string]string{"GIT_USERNAME": "alice", "GIT_PASSWORD": canary, repository: "this"}, sent: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "alice", Password: canary})
			if c.env[repository] == "this" {
				c.env[repository] = server.URL
			}
			s, err := opened(t, c.env, texts{"repository": server.URL, "path": "net/prod"}, c.block)
			if err == nil {
				_, _, err = s.Read(t.Context())
			}
			if (err == nil) != c.sent || (len(server.Authorizations()) > 0) != c.sent || err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("it is sent: %q, %v", server.Authorizations(), err)
			}
		})
	}
}

// TestRedirected: nothing is written, and no password sent, where a server redirects.
func TestRedirected(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	other := gittest.HTTP(t, repo, gittest.HTTPOptions{TLS: true})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{TLS: true, Username: "alice", Password: canary,
		Before: gittest.RedirectTo(http.StatusMovedPermanently, func(r *http.Request) string {
			if strings.HasPrefix(r.URL.Path, "/moved/") {
				return other.Origin + r.URL.RequestURI()
			}
			return ""
		})})
	for path, moved := range map[string]bool{"/acme/infra.git": false, "/moved/infra.git": true} {
		for what, block := range map[string]texts{"password": {"username": "alice", "password": canary}, "none": nil} {
			s := at(t, texts{"repository": server.Origin + path, "path": "net/prod", "ca_file": server.CAFile}, block)
			err := s.Lock(t.Context(), storetest.Lock("1"))
			if err == nil {
				_, version, _ := s.Read(t.Context())
				_, err = s.Write(t.Context(), storetest.State(1), version)
				err = errors.Join(err, s.Unlock(t.Context(), "1"))
			}
			if works := !moved && block != nil; (err == nil) != works || err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("%s, %s: %v", path, what, err)
			}
		}
	}
	if left := repo.Git("for-each-ref", "refs/heads/locks/"); left != "" || len(other.Requests()) > 0 {
		t.Errorf("this is left: %q; the other server got %v", left, other.Requests())
	}
}

// TestAuthors: git says who makes commits, as far as it knows.
func TestAuthors(t *testing.T) {
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	login, _, _ := strings.Cut(store.Me(), "@")
	for i, c := range []struct {
		config string
		env    map[string]string
		author string
	}{
		{author: login + " " + store.Me()},
		{config: "[user]\n\tname = Jane Doe\n", author: "Jane Doe " + store.Me()},
		{config: "[user]\n\temail = jane@example.com\n", author: login + " jane@example.com"},
		{env: map[string]string{"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com"}, author: "A a@example.com"},
		{config: "[user]\n\tname = Jane Doe\n", env: map[string]string{"GIT_AUTHOR_EMAIL": "a@example.com"}, author: "Jane Doe a@example.com"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			home := t.TempDir()
			must(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(c.config), 0o600))
			t.Setenv("HOME", home)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			s := at(t, texts{"repository": repo.FileURL(), "path": fmt.Sprint("net/", i)})
			must(t, writeState(t, s))
			who := repo.Git("log", "-1", "--format=%an %ae", "main")
			name, _, _ := strings.Cut(who, " ")
			want, _, _ := strings.Cut(c.author, " ")
			if who != c.author && (c.config != "" || c.env != nil || name == "" || want == "") { // git may know the user's full name, and the domain
				t.Errorf("the author is %q, want %q", who, c.author)
			}
		})
	}
}

// TestPushInsteadOf: no file of the user has what is written go elsewhere than what is read, if
// the block has a password.
func TestPushInsteadOf(t *testing.T) {
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	other := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	config := "[push]\n\tpushOption = ci.skip\n" +
		"[url \"" + other.Origin + "/\"]\n\tpushInsteadOf = statecrypt:\n\tpushInsteadOf = http://\n\tinsteadOf = statecrypt:\n"
	must(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600))
	s := at(t, overHTTP(gittest.HTTPOptions{})(t, repo), texts{"path": "net/prod"})
	must(t, takeLock(t, s))
	must(t, errors.Join(writeState(t, s), s.Unlock(t.Context(), "1")))
	if got := other.Requests(); len(got) > 0 {
		t.Errorf("the other server got %v", got)
	}
}
