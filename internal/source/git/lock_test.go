package git

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

const lockJSON = `{"ID":"aaaaaaaa-1111","Operation":"OperationTypeApply","Info":"","Who":"tester@example.test","Version":"1.11.4",` +
	`"Created":"2024-05-06T07:08:09.1Z","Path":""}`

// lockState makes the branch as terraform-backend-git does: what the state's
// branch holds, here an older copy, and the description.
func lockState(repo *gittest.Repo, path, description string) {
	repo.Commit(remoteLocks+path, gittest.File{Path: path, Data: "an old copy"}, gittest.File{Path: path + ".lock", Data: description})
}

func lockedRepo(t *testing.T) *gittest.Repo {
	t.Helper()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "envs/prod.tfstate", Data: "the state"}, gittest.File{Path: "free", Data: "free"})
	lockState(repo, "envs/prod.tfstate", lockJSON)
	return repo
}

func TestLock(t *testing.T) {
	t.Parallel()
	want := source.Lock{ID: "aaaaaaaa-1111", Who: "tester@example.test", Operation: "OperationTypeApply", Created: "2024-05-06T07:08:09.1Z"}
	const told = `(who: "tester@example.test", operation: "OperationTypeApply", created: "2024-05-06T07:08:09.1Z", id: "aaaaaaaa-1111")`
	repo := lockedRepo(t)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	at := place{repository: server.URL, ref: "main", path: "envs/prod.tfstate"}

	for _, onLocked := range []string{"", "ignore"} {
		server.Reset()
		at.onLocked = onLocked
		s := mustRead(t, newTestRun(t, nil), at, "the state")
		if s.Lock == nil || *s.Lock != want || len(s.Warnings) > 0 {
			t.Errorf("%q: lock %+v, warnings %q", onLocked, s.Lock, s.Warnings)
		}
		if n := len(server.Requests()); n != 5 {
			t.Errorf("%d requests; a lock must cost none", n)
		}
	}
	at.onLocked = "warn"
	s := mustRead(t, newTestRun(t, nil), at, "the state")
	if s.Lock == nil || *s.Lock != want || len(s.Warnings) != 1 ||
		s.Warnings[0].Title != "Locked state" || !strings.Contains(s.Warnings[0].Text, told) {
		t.Errorf("lock %+v, warnings %q", s.Lock, s.Warnings)
	}
	at.onLocked = "error"
	_, err := read(t, newTestRun(t, nil), at)
	says := openMistakes(t, "a locked state")
	says.Error(t, "error", err)
	mustNotBeMissing(t, err)

	// Another state of the repository is free.
	at.path = "free"
	if s := mustRead(t, newTestRun(t, nil), at, "free"); s.Lock != nil {
		t.Errorf("lock %+v of another path", s.Lock)
	}
	_, err = block("data.git", map[string]cty.Value{"repository": cty.StringVal(at.repository), "path": cty.StringVal("free"),
		"on_locked": cty.StringVal("sometimes")}).Decode(table(), nil)
	says.Error(t, "another word", err)
}

// Without locks, the first fetch must not grow: it is the same three requests.
func TestNoLockCostsNothing(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	id := repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "state"})
	for ref, requests := range map[string]int{"main": 5, "": 5, id: 4} {
		server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
		s := mustRead(t, newTestRun(t, nil), place{repository: server.URL, ref: ref, path: "a", onLocked: "error"}, "state")
		if n := len(server.Requests()); n != requests || s.Lock != nil {
			t.Errorf("ref %q: %d requests, want %d; lock %v", ref, n, requests, s.Lock)
		}
	}
}

// A commit id names what no lock can change.
func TestCommitHasNoLock(t *testing.T) {
	t.Parallel()
	repo := lockedRepo(t)
	at := place{repository: repo.FileURL(), ref: repo.Git("rev-parse", "main"), path: "envs/prod.tfstate", onLocked: "error"}
	if s := mustRead(t, newTestRun(t, nil), at, "the state"); s.Lock != nil {
		t.Errorf("lock %+v", s.Lock)
	}
}

func TestLockOnEveryServer(t *testing.T) {
	t.Parallel()
	for name, c := range testkit.Some(map[string]struct {
		repo gittest.RepoOptions
		http gittest.HTTPOptions
	}{
		"v0":                {http: gittest.HTTPOptions{ProtocolV0: true}},
		"filter off":        {repo: gittest.RepoOptions{NoFilter: true}},
		"no object ids, v0": {repo: gittest.RepoOptions{NoObjectID: true}, http: gittest.HTTPOptions{ProtocolV0: true}},
		"SHA-256":           {repo: gittest.RepoOptions{SHA256: true}},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, c.repo)
			repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "state"})
			lockState(repo, "a", lockJSON)
			server := gittest.HTTP(t, repo, c.http)
			s := mustRead(t, newTestRun(t, nil), place{repository: server.URL, path: "a"}, "state")
			if s.Lock == nil || s.Lock.Who != "tester@example.test" {
				t.Errorf("lock %+v", s.Lock)
			}
		})
	}
}

// The lock is that of the moment at which the run has seen the commit, also
// for a file that is asked for later.
func TestLockIsPinned(t *testing.T) {
	long(t)
	t.Parallel()
	repo := lockedRepo(t)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	r := newTestRun(t, nil)
	mustRead(t, r, place{repository: server.URL, ref: "main", path: "free"}, "free")
	repo.Git("update-ref", "-d", remoteLocks+"envs/prod.tfstate")
	server.Reset()
	s := mustRead(t, r, place{repository: server.URL, ref: "main", path: "envs/prod.tfstate"}, "the state")
	if s.Lock == nil || s.Lock.ID != "aaaaaaaa-1111" {
		t.Errorf("lock %+v", s.Lock)
	}
	if n := len(server.Requests()); n != 2 {
		t.Errorf("%d requests for the second file, want 2", n)
	}
	if s := mustRead(t, newTestRun(t, nil), place{repository: server.URL, ref: "main", path: "envs/prod.tfstate"},
		"the state"); s.Lock != nil {
		t.Errorf("lock %+v after it was released", s.Lock)
	}
}

// The lock is released, and its commit collected, after its folder was seen.
func TestLockVanishesBetweenTheFetches(t *testing.T) {
	t.Parallel()
	repo := lockedRepo(t)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: onSecondVisit(func() {
		repo.Git("update-ref", "-d", remoteLocks+"envs/prod.tfstate")
		repo.Git("gc", "-q", "--prune=now")
	})})
	s := mustRead(t, newTestRun(t, nil), place{repository: server.URL, ref: "main", path: "envs/prod.tfstate", onLocked: "error"}, "the state")
	if s.Lock != nil || len(s.Warnings) > 0 {
		t.Errorf("lock %+v, warnings %q", s.Lock, s.Warnings)
	}
}

func TestLockOfMissingState(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "x"})
	repo.Commit(remoteLocks+"new/a.tfstate", gittest.File{Path: "README", Data: "x"}, gittest.File{Path: "new/a.tfstate.lock", Data: lockJSON})
	at := place{repository: repo.FileURL(), path: "new/a.tfstate"}
	says := openMistakes(t, "the lock of a missing state")
	for _, onLocked := range []string{"ignore", "warn"} {
		at.onLocked = onLocked
		_, err := read(t, newTestRun(t, nil), at)
		m, ok := source.IsMissing(err)
		if !ok || m.Lock == nil || m.Lock.ID != "aaaaaaaa-1111" {
			t.Errorf("%s: %v", onLocked, err)
		}
		says.Error(t, onLocked, err)
	}
	at.onLocked = "error"
	_, err := read(t, newTestRun(t, nil), at)
	says.Error(t, "error", err)
	mustNotBeMissing(t, err)
}

// The lock's branch holds a copy of the state that may be an old one.
func TestLockBranchIsNotTheState(t *testing.T) {
	t.Parallel()
	repo := lockedRepo(t)
	says := openMistakes(t, "the branch of a lock")
	for _, ref := range []string{"locks/envs/prod.tfstate", "refs/heads/locks/envs/prod.tfstate"} {
		_, err := read(t, newTestRun(t, nil), place{repository: repo.FileURL(), ref: ref, path: "envs//prod.tfstate"})
		says.Error(t, ref, err)
	}
	// The state is gone from its own branch: the copy does not stand in.
	repo.Commit("refs/heads/main", gittest.File{Path: "other", Data: "x"})
	_, err := read(t, newTestRun(t, nil), place{repository: repo.FileURL(), path: "envs/prod.tfstate"})
	if _, ok := source.IsMissing(err); !ok {
		t.Errorf("%v, want a MissingError", err)
	}
}

// Anyone who may push a branch may write anything here.
//
// Promise: Text from outside
func TestHostileLocks(t *testing.T) {
	t.Parallel()
	says := openMistakes(t, "hostile locks")
	for name, c := range testkit.Some(map[string]struct {
		file gittest.File
		want source.Lock
	}{
		"strings": {
			file: gittest.File{Data: "{\"ID\":\"\\u001b[2Jx\\r\\n::error::y\",\"Who\":\"##vso[task] \u202Eevil :::: " +
				"###\",\"Operation\":\"quo\\\"te\",\"Created\":\"\xff\"}"},
			want: source.Lock{ID: `\u001b[2Jx\u000d\n:\u003aerror:\u003ay`, Who: `#\u0023vso[task] \u202eevil :\u003a:\u003a #\u0023\u0023`,
				Operation: `quo"te`, Created: "\uFFFD"},
		},
		"long": {file: gittest.File{Data: `{"Who":"` + strings.Repeat("é", 5000) + `"}`},
			want: source.Lock{Who: strings.Repeat("é", 100) + "…"}},
		"empty object":    {file: gittest.File{Data: `{}`}},
		"empty":           {file: gittest.File{}},
		"no JSON":         {file: gittest.File{Data: "<xml/>"}},
		"an array":        {file: gittest.File{Data: `[{"ID":"x"}]`}},
		"a number as id":  {file: gittest.File{Data: `{"ID":1}`}},
		"deep":            {file: gittest.File{Data: strings.Repeat("[", 60_000)}},
		"two documents":   {file: gittest.File{Data: lockJSON + lockJSON}},
		"large":           {file: gittest.File{Data: `{"ID":"` + strings.Repeat("x", source.MaxLock) + `"}`}},
		"a link":          {file: gittest.File{Data: "s", Mode: "120000"}},
		"another name":    {file: gittest.File{Path: "envs/other.lock", Data: lockJSON}},
		"a folder":        {file: gittest.File{Path: "envs/s.lock/x", Data: lockJSON}},
		"file for folder": {file: gittest.File{Path: "envs", Data: lockJSON}},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, gittest.RepoOptions{})
			repo.Commit("refs/heads/main", gittest.File{Path: "envs/s", Data: "state"}, gittest.File{Path: "link", Data: "s", Mode: "120000"})
			if c.file.Path == "" {
				c.file.Path = "envs/s.lock"
			}
			repo.Commit(remoteLocks+"envs/s", c.file)
			server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
			at := place{repository: server.URL, path: "envs/s", onLocked: "warn"}
			s := mustRead(t, newTestRun(t, nil), at, "state")
			if s.Lock == nil || *s.Lock != c.want {
				t.Errorf("lock %+v, want %+v", s.Lock, c.want)
			}
			if len(s.Warnings) != 1 {
				t.Fatalf("warnings %q", s.Warnings)
			}
			says.Check(t, name+", a warning", s.Warnings[0].Text)
			if n := len(server.Requests()); n != 5 {
				t.Errorf("%d requests, want 5", n)
			}
			at.onLocked = "error"
			_, err := read(t, newTestRun(t, nil), at)
			says.Error(t, name, err)
			at.onLocked = "ignore"
			if s := mustRead(t, newTestRun(t, nil), at, "state"); len(s.Warnings) > 0 {
				t.Errorf("warnings %q", s.Warnings)
			}
		})
	}
}

// A tree under the name of a file spoils nothing but itself.
func TestLockThatIsNoBlob(t *testing.T) {
	t.Parallel()
	blobs := map[string]blob{}
	state, lock := strings.Repeat("a", 40), strings.Repeat("b", 40)
	err := readObjects(strings.NewReader(lock+" tree 3\nxyz\n"+state+" blob 2\nok\n"), map[string]int64{state: 10, lock: source.MaxLock},
		blobs)
	if err != nil || string(blobs[state].data) != "ok" || len(blobs) != 1 {
		t.Errorf("%v, %v", blobs, err)
	}
	list := &tree{locks: map[string]string{"s": lock}}
	if l, err := list.lock("s", blobs); err == nil || l == nil || *l != (source.Lock{}) {
		t.Errorf("%v, %v; want an empty lock and an error", l, err)
	}
}

func TestManyLocks(t *testing.T) {
	long(t)
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	var files []gittest.File
	for i := range 50 {
		files = append(files, gittest.File{Path: bigPath(i), Data: fmt.Sprint("state ", i)})
	}
	repo.Commit("refs/heads/main", files...)
	for i := range 20 {
		repo.Commit(remoteLocks+bigPath(i), append(files, gittest.File{Path: bigPath(i) + ".lock", Data: fmt.Sprintf(`{"ID":"lock %d"}`, i)})...)
	}
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	r := newTestRun(t, nil)
	for _, i := range []int{7, 19, 20} {
		s := mustRead(t, r, place{repository: server.URL, path: bigPath(i)}, fmt.Sprint("state ", i))
		if locked := i < 20; locked != (s.Lock != nil) || locked && s.Lock.ID != fmt.Sprint("lock ", i) {
			t.Errorf("state %d: lock %+v", i, s.Lock)
		}
	}
	if n := len(server.Requests()); n != 5+2+2 {
		t.Errorf("%d requests, want one fetch of trees and one of files for each read", n)
	}
}

// A name that this system cannot store must not keep anyone from the state.
func TestLockThatCannotBeStored(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	commit := repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "state"})
	packed := "# pack-refs with: peeled fully-peeled sorted \n" + commit + " " + remoteLocks + strings.Repeat("x", 253) + "\n"
	if err := os.WriteFile(filepath.Join(repo.Dir, "packed-refs"), []byte(packed), 0o600); err != nil {
		t.Fatal(err)
	}
	at := place{repository: repo.FileURL(), path: "s"}
	for _, onLocked := range []string{"ignore", "warn"} {
		at.onLocked = onLocked
		s := mustRead(t, newTestRun(t, nil), at, "state")
		if warned := len(s.Warnings) == 1 && s.Warnings[0].Title == "Unknown lock"; warned != (onLocked == "warn") {
			t.Errorf("%s: %q", onLocked, s.Warnings)
		}
		if s.Lock != nil {
			t.Errorf("lock %+v", s.Lock)
		}
	}
	at.onLocked = "error"
	_, err := read(t, newTestRun(t, nil), at)
	says := openMistakes(t, "an unknown lock")
	says.Error(t, "error", err)
}

func TestLockSpelledDifferently(t *testing.T) {
	list := &tree{locks: map[string]string{composed: "1", "plain": "2"}}
	decomposedName := "cafe\u0301/u\u0308.tfstate"
	for name, want := range map[string]string{composed: "1", decomposedName: "1", "plain": "2", "Plain": "", decomposed: ""} {
		if id, locked := list.lockOf(name); id != want || locked != (want != "") {
			t.Errorf("%q: %q, %v", name, id, locked)
		}
	}
}

// findInFolder returns the id of a file in a folder, "" if it is not there.
func findInFolder(folder []byte, name string) string {
	for e := range entries(folder, 20) {
		if string(e.name) == name {
			return entry{mode: string(e.mode), id: hex.EncodeToString(e.id)}.idOfFile()
		}
	}
	return ""
}

func TestEntries(t *testing.T) {
	id := strings.Repeat("\x01", 20)
	good := "100644 a\x00" + id + "40000 b\x00" + id + "100755 c\x00" + id
	one := strings.Repeat("01", 20)
	for folder, want := range map[string][]string{
		good:                     {one, "", one, ""},
		good[:len(good)-1]:       {one, "", "", ""},
		"100644":                 {"", "", "", ""},
		"100644 a":               {"", "", "", ""},
		"100644 a\x00" + id[:19]: {"", "", "", ""},
		"a\x00" + id:             {"", "", "", ""},
		"":                       {"", "", "", ""},
		"\x00\x00\x00" + strings.Repeat("\x00", 50): {"", "", "", ""},
	} {
		var got []string
		for _, name := range []string{"a", "b", "c", "d"} {
			got = append(got, findInFolder([]byte(folder), name))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", folder, got, want)
		}
	}
}

// onFetch calls do when the n-th request for objects or refs arrives.
func onPost(n int64, do func()) func(http.ResponseWriter, *http.Request) bool {
	var posts atomic.Int64
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && posts.Add(1) == n {
			do()
		}
		return false
	}
}

// In amend mode, terraform-backend-git replaces the branch's only commit at
// each write. It may do so after the server told which commit the branch has,
// and before that is fetched.
func TestForcedPushWithinTheFirstFetch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v0   bool
		post int64 // the one that asks for the commit
	}{"v2": {post: 2}, "v0": {v0: true, post: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, gittest.RepoOptions{})
			repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "one"})
			server := gittest.HTTP(t, repo, gittest.HTTPOptions{ProtocolV0: c.v0, Before: onPost(c.post, func() {
				rewrite(repo, gittest.File{Path: "a", Data: "two"})
			})})
			s := mustRead(t, newTestRun(t, nil), place{repository: server.URL, ref: "main", path: "a"}, "two")
			if tip := repo.Git("rev-parse", "main"); s.Revision != tip || len(s.Warnings) != 0 {
				t.Errorf("revision %s, want %s; warnings %q, want none", s.Revision, tip, s.Warnings)
			}
		})
	}
}

// A branch that is never the same twice ends in an error, not in a loop.
func TestForcedPushesWithoutEnd(t *testing.T) {
	long(t)
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "0"})
	var posts atomic.Int64
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: func(_ http.ResponseWriter, r *http.Request) bool {
		if n := posts.Add(1); r.Method == http.MethodPost && n%3 == 0 {
			rewrite(repo, gittest.File{Path: "a", Data: fmt.Sprint(n)})
		}
		return false
	}})
	_, err := read(t, newTestRun(t, nil), place{repository: server.URL, ref: "main", path: "a"})
	openMistakes(t, "a rewritten branch").Error(t, "twice", err)
	mustNotBeMissing(t, err)
	if n := len(server.Requests()); n != 9 {
		t.Errorf("%d requests, want three fetches", n)
	}
}
