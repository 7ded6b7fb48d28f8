package git

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

const (
	recorded  = "net/prod.tfstate" // written twice, and locked, in testdata/locked.bundle
	second    = "a/b/dev.tfstate"
	holdersID = "11111111-2222-4333-8444-555555555555"
)

// recordedRepo is what terraform-backend-git 0.1.11 has written.
func recordedRepo(t *testing.T) (*gittest.Repo, func(path string) store.State) {
	t.Helper()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Unbundle("testdata/locked.bundle")
	env := map[string]string{"TF_BACKEND_GIT_GIT_REPOSITORY": repo.FileURL(), "TF_BACKEND_GIT_GIT_REF": "main"}
	return repo, func(path string) store.State {
		s, err := opened(t, env, texts{"ref": "", "path": path})
		must(t, err)
		return s
	}
}

// TestRecorded: its states are read, and its lock is one.
//
// Promise: States in stores
func TestRecorded(t *testing.T) {
	t.Parallel()
	repo, open := recordedRepo(t)
	s := open("./net//x/../prod.tfstate")
	data, version, err := s.Read(t.Context())
	must(t, err)
	if want := repo.Git("cat-file", "blob", "main:"+recorded); strings.TrimSpace(string(data)) != want {
		t.Errorf("got %.100q, want %.100q", data, want)
	}
	by, err := s.Holder(t.Context())
	must(t, err)
	if by == nil || by.ID != holdersID || by.Who == "" {
		t.Fatalf("the holder is %+v", by)
	}
	_, errWrite := s.Write(t.Context(), storetest.State(1), version)
	for what, err := range map[string]error{
		"a lock": s.Lock(t.Context(), storetest.Lock("1")), "a write": errWrite, "another ID": s.Unlock(t.Context(), "1"),
	} {
		if held, ok := errors.AsType[*store.HeldError](err); !ok || held.By == nil || held.By.ID != holdersID {
			t.Errorf("%s: %v", what, err)
		}
	}
	other := open(second)
	must(t, other.Lock(t.Context(), storetest.Lock("1"))) // the lock of one is not that of others
	must(t, other.Unlock(t.Context(), "1"))
	must(t, s.Unlock(t.Context(), holdersID))
	if left := repo.Git("for-each-ref", "refs/heads/locks/"); left != "" {
		t.Errorf("this is left: %s", left)
	}
	if err := s.Unlock(t.Context(), holdersID); !errors.Is(err, store.ErrMissing) {
		t.Errorf("twice: %v", err)
	}
}

// identity is what is in a commit of its time and of its author.
var identity = regexp.MustCompile(`(?m)^(author|committer) .*$`)

// TestForm compares what is written with what terraform-backend-git has written.
//
// Promise: States in stores
func TestForm(t *testing.T) {
	t.Parallel()
	repo, open := recordedRepo(t)
	raw := func(object string) string {
		cmd := exec.CommandContext(t.Context(), "git", "-C", repo.Dir, "cat-file", "commit", object)
		out, err := cmd.Output()
		must(t, err)
		return identity.ReplaceAllString(string(out), "$1 …")
	}
	before, itsLock := repo.Git("rev-parse", "main"), raw("refs/heads/locks/"+recorded)
	itsWrite := raw(before)
	files := func(at string) []string { return strings.Split(repo.Git("ls-tree", "-r", "-t", at), "\n") }
	old := files("main")

	s := open(second)
	lock := storetest.Lock("<1>") // its JSON has escapes
	must(t, s.Lock(t.Context(), lock))
	at := "refs/heads/locks/" + second
	got := files(at)
	if len(got) != 3 || !strings.HasPrefix(got[2], "100644 blob ") || !strings.HasSuffix(got[2], "\t"+second+".lock") {
		t.Errorf("the lock is %q", got)
	}
	if got := repo.Git("cat-file", "blob", at+":"+second+".lock"); got != string(lock.JSON()) {
		t.Errorf("the lock has %q, want %q", got, lock.JSON())
	}
	tree := repo.Git("rev-parse", at+"^{tree}")
	if got, want := raw(at), "tree "+tree+"\nauthor …\ncommitter …\n\nLock "+second; got != want {
		t.Errorf("the commit of the lock is\n%s\nwant\n%s", got, want)
	}
	if !strings.HasSuffix(itsLock, "\n\nLock "+recorded) {
		t.Errorf("that of terraform-backend-git is\n%s", itsLock)
	}

	_, version, err := s.Read(t.Context())
	must(t, err)
	next, err := s.Write(t.Context(), storetest.State(1), version)
	must(t, err)
	tree = repo.Git("rev-parse", "main^{tree}")
	want := fmt.Sprintf("tree %s\nparent %s\nauthor …\ncommitter …\n\nUpdate %s", tree, before, second)
	if got := raw("main"); got != want+"\n\nOperationTypeApply by <1>@host" {
		t.Errorf("the commit is\n%s\nwant\n%s", got, want)
	}
	if !regexp.MustCompile(`^tree \w+\nparent \w+\nauthor …\ncommitter …\n\n(Update|Delete) \S+$`).MatchString(itsWrite) {
		t.Errorf("that of terraform-backend-git is\n%s", itsWrite)
	}
	if want := repo.Git("rev-parse", "main:"+second); string(next) != want {
		t.Errorf("the version is %s, want %s", next, want)
	}
	for _, line := range files("main") { // modes, kinds and names are the same, and so are other files
		same := slices.ContainsFunc(old, func(o string) bool {
			return o == line || strings.Contains(second, line[strings.Index(line, "\t")+1:]) && o[:12] == line[:12] &&
				o[strings.Index(o, "\t"):] == line[strings.Index(line, "\t"):]
		})
		if !same {
			t.Errorf("this is new: %s", line)
		}
	}
	must(t, s.Remove(t.Context(), next))
	if got := raw("main"); !strings.Contains(got, "\n\nDelete "+second+"\n\n") || strings.Contains(repo.Git("ls-tree", "-r", "main"), second) {
		t.Errorf("the last commit is\n%s", got)
	}
	must(t, s.Unlock(t.Context(), "<1>"))
	repo.Git("fsck", "--strict")
}
