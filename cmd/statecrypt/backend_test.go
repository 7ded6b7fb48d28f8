package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/httpstore/giteatest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// httpStore is a server for Terraform's http backend, with a password.
type httpStore struct {
	sync.Mutex
	url, state, lock string
	info             string
	seen             []string      // methods
	sticks           bool          // the lock
	lies             bool          // of writes, which it does not do
	tells            bool          // whose it is
	held             chan struct{} // gets an element at a GET, which is then not answered; nil for none
}

func newHTTPStore(t *testing.T, state string) *httpStore {
	t.Helper()
	s := &httpStore{state: state}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *httpStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, password, _ := r.BasicAuth(); password != canary {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.Lock()
	defer s.Unlock()
	s.seen = append(s.seen, r.Method)
	if r.Method == http.MethodGet && s.held != nil {
		s.held <- struct{}{}
		<-r.Context().Done() // whoever asked has gone
		return
	}
	var given struct{ ID string }
	_ = json.Unmarshal(body, &given)
	switch {
	case r.Method == http.MethodGet && s.state == "":
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		_, _ = io.WriteString(w, s.state)
	case r.Method == "LOCK" && s.lock == "":
		s.lock = given.ID
		if s.tells {
			s.info = string(body)
		}
	case r.Method == "UNLOCK" && s.lock == given.ID && !s.sticks:
		s.lock, s.info = "", ""
	case r.Method == http.MethodPost && s.lock == r.URL.Query().Get("ID"):
		if !s.lies {
			s.state = string(body)
		}
	default:
		w.WriteHeader(http.StatusLocked)
		_, _ = io.WriteString(w, cmp.Or(s.info, `{"ID":"`+s.lock+`","Operation":"OperationTypeApply","Who":"ci@host"}`))
	}
}

// block describes the store.
func (s *httpStore) block() string {
	return "backend \"http\" {\naddress = \"" + s.url + "/state\"\nlock_address = \"" + s.url + "/lock\"\nunlock_address = \"" + s.url +
		"/lock\"\npassword = \"" + canary + "\"\n}\n"
}

var lockID = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// TestRotateBackend: the state in the backend of the new settings gets their key, once.
//
// Promise: Files of the command
func TestRotateBackend(t *testing.T) {
	t.Parallel()
	old, again := must(t, onlyOld, plain, "encrypt"), must(t, onlyNew, plain, "encrypt")
	highest := strings.Replace(plain, `"serial":7,`, `"serial":9223372036854775807,`, 1)
	mistakes := openMistakes(t, "rotate -backend")
	for row, c := range map[string]struct {
		stored, lock, flags string
		from, to            string // in place of the usual settings
		sticks              bool   // the lock
		lies                bool   // the server keeps nothing
	}{
		"rotated, and the lock sticks": {stored: old, sticks: true},
		"rotated":                      {stored: old},
		"in JSON":                      {stored: old, flags: "-json"},
		"done":                         {stored: again},
		"again":                        {stored: again, flags: "-again"},
		"again, and nothing is kept":   {stored: again, flags: "-again", lies: true},
		"nothing is kept":              {stored: old, lies: true},
		"no next serial":               {stored: must(t, onlyOld, highest, "encrypt")},
		"another key":                  {stored: must(t, otherKey, plain, "encrypt")},
		"plaintext":                    {stored: plain},
		"from plaintext":               {stored: plain, from: plainText + "state { method = method.unencrypted.p }"},
		"a page":                       {stored: "<html>" + canary},
		"none":                         {},
		"locked":                       {stored: old, lock: "4711"},
		"no backend":                   {stored: old, to: onlyNew},
		"with files":                   {stored: old, flags: "x"},
		"of plans":                     {stored: old, flags: "-plan"},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			s := newHTTPStore(t, c.stored)
			s.lock, s.sticks, s.lies = c.lock, c.sticks, c.lies
			if c.from == "" {
				c.from = onlyOld + "backend \"http\" { address = \"http://127.0.0.1:1/\" }\n" // it is that of -to that counts
			}
			if c.to == "" {
				c.to = onlyNew + s.block()
			}
			to := write(t, "new.hcl", c.to)
			args := []string{"rotate", "-from", write(t, "old.hcl", c.from), "-to", to, "-backend"}
			got := statecrypt(t, "", "", append(args, strings.Fields(c.flags)...)...)
			mistakes.checkAll(t, row, called{code: got.code, stdout: got.stdout, stderr: lockID.ReplaceAllString(got.stderr, "ID")})
			if s.lock != c.lock && !c.sticks {
				t.Errorf("it is locked by %q", s.lock)
			}
			switch {
			case got.code != 0 && !c.sticks || row == "done":
				if s.state != c.stored {
					t.Errorf("this is stored: %s", s.state)
				}
			case must(t, "", s.state, "decrypt", "-config", to) != plainNext:
				t.Errorf("this is stored: %s", s.state)
			}
		})
	}
}

// TestRotateInGitea: a server that keeps one state for each serial gets the next one, and says so if it
// refuses another form of it.
func TestRotateInGitea(t *testing.T) {
	t.Parallel()
	const age = `
method "age" "m" { passphrase = "correct-horse-battery-staple" }
state { method = method.age.m }
`
	g := giteatest.Start(t)
	servertest.Do(t, http.MethodPost, g.Address("net"), must(t, onlyOld, plain, "encrypt"), http.StatusCreated)
	mistakes := openMistakes(t, "rotate in Gitea")
	for _, step := range []struct {
		name, flags, to string
		fails           bool
		serial          int64
	}{
		{"another key", "-from " + write(t, "old.hcl", onlyOld), onlyNew, false, 8},
		{"again", "-again", onlyNew, false, 9},
		{"age", "-from " + write(t, "new.hcl", onlyNew), age, true, 9},
	} {
		to := write(t, "to.hcl", step.to+g.Block("net"))
		got := statecrypt(t, "", "", append([]string{"rotate", "-backend", "-to", to}, strings.Fields(step.flags)...)...)
		mistakes.checkAll(t, step.name, got)
		serial, _, err := store.Label(g.Stored("net"))
		if (got.code != 0) != step.fails || err != nil || serial == nil || *serial != step.serial {
			t.Errorf("%s: %+v, and there is %.100s", step.name, got, g.Stored("net"))
		}
	}
	want := strings.Replace(plain, `"serial":7,`, `"serial":9,`, 1)
	if got := must(t, onlyNew, string(g.Stored("net")), "decrypt"); got != want {
		t.Errorf("there is %s", got)
	}
}

// TestRecover: the state in a file replaces an older one, and a lock is given back only by its ID.
func TestRecover(t *testing.T) {
	newer := strings.Replace(plain, `"serial":7`, `"serial":8`, 1)
	stored := must(t, onlyNew, plain, "encrypt")
	mistakes := openMistakes(t, "recover")
	for row, c := range map[string]struct {
		lock, flags string
		bad         bool
	}{
		"not here":       {bad: true},
		"forced":         {flags: "-force"},
		"held":           {lock: "4711", bad: true},
		"unlocked":       {lock: "4711", flags: "-force -unlock 4711"},
		"not forced":     {lock: "4711", flags: "-unlock 4711", bad: true},
		"an empty ID":    {lock: "4711", flags: "-unlock=", bad: true},
		"two files":      {flags: "x", bad: true},
		"another's flag": {flags: "-leave", bad: true},
	} {
		t.Run(row, func(t *testing.T) {
			s := newHTTPStore(t, stored)
			s.lock = c.lock
			settings := write(t, "new.hcl", onlyNew+s.block())
			t.Chdir(filepath.Dir(settings))
			args := append([]string{"recover", "-config", settings}, strings.Fields(c.flags)...)
			if err := os.WriteFile("kept", []byte(newer), 0o600); err != nil {
				t.Fatal(err)
			}
			got := statecrypt(t, "", "", append(args, "kept")...)
			mistakes.checkAll(t, row, got)
			want, held := newer, ""
			if c.bad {
				want, held = plain, c.lock
			}
			there := must(t, "", s.state, "decrypt", "-config", settings)
			if (got.code == 0) == c.bad || there != want || s.lock != held {
				t.Errorf("got %d, the lock is %q, and this is there: %s", got.code, s.lock, there)
			}
		})
	}
}

// TestBackendInterrupted: Ctrl-C while a server is slow leaves no lock, and every command says the same about it. If
// the lock cannot be released, the command says that instead.
func TestBackendInterrupted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals")
	}
	mistakes := openMistakes(t, "interrupted during a request")
	for name, c := range map[string]struct {
		args   string
		sticks bool
		seen   string
	}{
		"rotate":                  {args: "rotate -from old.hcl -to new.hcl -backend", seen: "LOCK GET UNLOCK"},
		"rotate, JSON":            {args: "rotate -from old.hcl -to new.hcl -backend -json", seen: "LOCK GET UNLOCK"},
		"rotate, a lock is left":  {args: "rotate -from old.hcl -to new.hcl -backend", sticks: true, seen: "LOCK GET UNLOCK"},
		"restore, a lock is left": {args: "restore -config new.hcl ./sealed", sticks: true, seen: "LOCK GET UNLOCK"},
		"restore":                 {args: "restore -config new.hcl ./sealed", seen: "LOCK GET UNLOCK"},
		"recover":                 {args: "recover -config new.hcl plain", seen: "LOCK GET UNLOCK"},
		"verify":                  {args: "verify -config new.hcl -backend", seen: "GET"},
		"inspect":                 {args: "inspect -config new.hcl -backend", seen: "GET"},
		"decrypt":                 {args: "decrypt -config new.hcl -backend", seen: "GET"},
		"show":                    {args: "show -config new.hcl -backend", seen: "GET"},
		"diff":                    {args: "diff -config new.hcl -backend sealed", seen: "GET"},
		"diff, its exit code":     {args: "diff -config new.hcl -backend -exit-code sealed", seen: "GET"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sealed := must(t, onlyNew, plain, "encrypt")
			s := newHTTPStore(t, sealed)
			s.Lock()
			s.held, s.sticks = make(chan struct{}), c.sticks
			s.Unlock()
			dir := t.TempDir()
			for name, text := range map[string]string{"old.hcl": onlyOld, "new.hcl": onlyNew + s.block(), "plain": plain, "sealed": sealed} {
				write(t, filepath.Join(dir, name), text)
			}
			cmd := exec.CommandContext(t.Context(), built(t), strings.Fields(c.args)...)
			cmd.Env = append(world.World{}.Environ().Pairs(), "PATH="+filepath.Dir(cmd.Path), "HOME="+dir)
			cmd.Dir = dir
			var out, said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				_ = cmd.Wait()
				close(ended)
			}()
			select {
			case <-s.held:
				_ = cmd.Process.Signal(os.Interrupt)
			case <-ended: // too early, which shows
			}
			<-ended
			got := called{cmd.ProcessState.ExitCode(), out.String(), lockID.ReplaceAllString(said.String(), "ID")}
			mistakes.checkAll(t, name, got)
			s.Lock()
			defer s.Unlock()
			if seen := strings.Join(s.seen, " "); got.code <= 0 || seen != c.seen || (s.lock != "") != c.sticks {
				t.Errorf("%+v after %s", got, seen)
			}
		})
	}
}

// TestLockInWords: inspect names the holder of a lock in git, even before the first state, and the command that
// releases the lock. It says so if the holder is unknown.
func TestLockInWords(t *testing.T) {
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	state := gittest.File{Path: "net.tfstate", Data: must(t, onlyOld, plain, "encrypt")}
	repo.Commit("refs/heads/main", state)
	for _, name := range []string{"net", "none"} {
		repo.Commit("refs/heads/locks/"+name+".tfstate",
			gittest.File{Path: name + ".tfstate.lock", Data: `{"ID":"4711","Operation":"OperationTypeApply","Who":"ci@host"}`})
	}
	git := fmt.Sprintf("backend \"git\" {\n  repository = %q\n  ref = \"main\"\n  path = \"net.tfstate\"\n}\n", repo.FileURL())
	mistakes := openMistakes(t, "lock in words")
	http := newHTTPStore(t, state.Data).block()
	for name, c := range map[string]struct{ block, args string }{
		"git":            {git, "inspect"},
		"git, no state":  {strings.Replace(git, "net.tfstate", "none.tfstate", 1), "inspect"},
		"http":           {http, "inspect"},
		"http, a prefix": {http, "inspect -prefix net/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(filepath.Dir(write(t, "keys.hcl", c.block+onlyOld)))
			args := append(strings.Fields(c.args), "-config", "keys.hcl", "-backend")
			mistakes.checkAll(t, name, statecrypt(t, "", "", args...))
		})
	}
}

// TestUnknownLock: the JSON of a state has no lock if the backend does not say who holds it.
func TestUnknownLock(t *testing.T) {
	t.Parallel()
	s := newHTTPStore(t, must(t, onlyOld, plain, "encrypt"))
	settings := write(t, "old.hcl", onlyOld+s.block())
	for _, command := range []string{"inspect", "verify"} {
		if got := must(t, "", "", command, "-config", settings, "-backend", "-json"); strings.Contains(got, `"lock"`) {
			t.Errorf("got %s", got)
		}
	}
}
