package git

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	gitsource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// commits are commands for git fast-import: they make commits of the branch, of which every tenth changes the state.
func commits(path string, n int, other func(i int) string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "commit refs/heads/main\ncommitter Ann <ann@example.com> %d +0000\ndata 12\nChange %05d\n", 1700000000+i, i)
		if i == 0 {
			b.WriteString("from refs/heads/main^0\n")
		}
		if i%10 == 0 {
			text := fmt.Sprintf(`{"serial":%d}`, i)
			fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", path, len(text), text)
		}
		text := fmt.Sprint(i)
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n\n", other(i), len(text), text)
	}
	return b.String()
}

// TestVersionsCost: a long history is fetched as far back as it is needed, and only the folders above the state.
func TestVersionsCost(t *testing.T) {
	t.Parallel()
	long(t)
	for name, c := range map[string]struct {
		folders  int
		requests int
		bytes    int64
		all      int // requests for all versions
	}{
		"few folders":  {10, 8, 50_000, 14},
		"many folders": {8000, 16, 300_000, 22},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
			var files []gittest.File
			for i := range c.folders {
				files = append(files, gittest.File{Path: fmt.Sprintf("d%d/e%d/x", i%80, i), Data: "x"})
			}
			repo.Commit("refs/heads/main", files...)
			repo.Import(commits("net/prod", 3000, func(i int) string { return fmt.Sprintf("d%d/e%d/x", i%c.folders%80, i%c.folders) }))
			server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "alice", Password: canary})
			s := at(t, texts{"repository": server.URL, "path": "net/prod", "username": "alice", "password": canary})
			h := storetest.Historian(t, s)
			kept, more, err := h.Versions(t.Context(), 5)
			must(t, err)
			t.Logf("%d requests, %d bytes", len(server.Requests()), server.BytesDown())
			if len(kept) != 5 || !more || kept[0].Subject != "Change 02990" || kept[0].Author != "Ann <ann@example.com>" ||
				kept[4].Subject != "Change 02950" || kept[0].Status != store.KeptCurrent || kept[4].Size != 15 {
				t.Errorf("the versions are %+v, %t", kept, more)
			}
			if len(server.Requests()) > c.requests || server.BytesDown() > c.bytes {
				t.Errorf("%d requests, %d bytes", len(server.Requests()), server.BytesDown())
			}
			server.Reset()
			for _, k := range kept {
				if got, err := h.ReadVersion(t.Context(), k.ID[:7], 0, 10); err != nil || string(got) != `{"serial":` {
					t.Errorf("%+v: %s, %v", k, got, err)
				}
			}
			if n := len(server.Requests()); n > 0 {
				t.Errorf("the versions are fetched again, with %d requests", n)
			}
			kept, more, err = h.Versions(t.Context(), 1000)
			if err != nil || more || len(kept) != 300 || kept[299].Subject != "Change 00000" {
				t.Errorf("there are %d versions, %t, %v", len(kept), more, err)
			}
			t.Logf("all: %d requests, %d bytes", len(server.Requests()), server.BytesDown())
			if n := len(server.Requests()); n > c.all {
				t.Errorf("all: %d requests", n)
			}
		})
	}
}

// TestVersionsOf: what counts as a version, in which order, and under which IDs.
func TestVersionsOf(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	state := func(serial int) gittest.File {
		return gittest.File{Path: "net/prod", Data: string(storetest.State(serial))}
	}
	first := repo.Commit("refs/heads/main", state(1))
	repo.Commit("refs/heads/main", state(1), gittest.File{Path: "net/prod.other", Data: "x"})
	renamed := repo.Commit("refs/heads/main", gittest.File{Path: "net/prod/inner", Data: "a folder"})
	repo.Git("update-ref", "refs/heads/side", first)
	side := repo.Commit("refs/heads/side", state(7))
	again := repo.Commit("refs/heads/main", state(2))
	merged := repo.Git("commit-tree", "-p", again, "-p", side, "-m", "Merge", side+"^{tree}")
	repo.Git("update-ref", "refs/heads/main", merged)
	executable := state(9)
	executable.Mode = "100755"
	odd := repo.Commit("refs/heads/main", executable)
	link := repo.Commit("refs/heads/main", gittest.File{Path: "net/prod", Data: "other", Mode: "120000"})
	above := repo.Commit("refs/heads/main", gittest.File{Path: "net", Data: "other", Mode: "120000"})
	s := at(t, texts{"repository": repo.FileURL(), "path": "net/prod"})
	kept, more, err := storetest.Historian(t, s).Versions(t.Context(), 100)
	must(t, err)
	var ids []string
	for _, k := range kept {
		ids = append(ids, k.ID)
	}
	want := []string{link, odd, merged, again, renamed, first}
	if fmt.Sprint(ids) != fmt.Sprint(want) || more || kept[4].Status != store.KeptDeleted || kept[0].Status != store.KeptCurrent {
		t.Errorf("got %+v, want %q", kept, want)
	}
	for _, id := range []string{link, above} {
		if _, err := storetest.Historian(t, s).ReadVersion(t.Context(), id, 0, 10); !errors.Is(err, errLink) {
			t.Errorf("a link: %v", err)
		}
	}
	for id, serial := range map[string]int{first: 1, strings.ToUpper(first[:20]): 1, again[:7]: 2, merged: 7, odd: 9, renamed: 0, side: 0} {
		got, err := storetest.Historian(t, at(t, texts{"repository": repo.FileURL(), "path": "net/prod"})).ReadVersion(t.Context(), id, 0, -1)
		if serial == 0 {
			if !errors.Is(err, store.ErrNoVersion) {
				t.Errorf("%s: %.100s, %v", id, got, err)
			}
		} else if err != nil || !bytes.Equal(got, storetest.State(serial)) {
			t.Errorf("%s: %.100s, %v", id, got, err)
		}
	}
}

// TestVersionsOfNone: a branch that does not exist has no versions if it may be created; a tag of that name does not
// count.
func TestVersionsOfNone(t *testing.T) {
	t.Parallel()
	empty, other := gittest.NewRepo(t, gittest.RepoOptions{Push: true}), gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	other.Commit("refs/heads/other", gittest.File{Path: "net/prod", Data: "x"})
	for name, c := range map[string]struct {
		repo  *gittest.Repo
		fails bool
	}{"an empty repository": {empty, false}, "another branch": {other, true}} {
		h := storetest.Historian(t, at(t, texts{"repository": c.repo.FileURL(), "path": "net/prod"}))
		kept, more, err := h.Versions(t.Context(), 10)
		if len(kept) > 0 || more || (err != nil) != c.fails {
			t.Errorf("%s: %+v, %t, %v", name, kept, more, err)
		}
		_, err = h.ReadVersion(t.Context(), strings.Repeat("0", 40), 0, -1)
		if errors.Is(err, store.ErrNoVersion) == c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestVersionsOfStrangers: texts of commits are cut off, files are limited, and two commits are not mistaken for each
// other.
func TestVersionsOfStrangers(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	subject := "A\x1b[31m" + strings.Repeat("x", 100_000)
	repo.Import(fmt.Sprintf("commit refs/heads/main\ncommitter \x1b[31m%s <%s> 99999999999999 +0000\ndata %d\n%s\nM 100644 inline net/prod\n"+
		"data 2\n{}\n", strings.Repeat("n", 5000), strings.Repeat("m", 5000), len(subject), subject))
	repo.Commit("refs/heads/main", gittest.File{Path: "net/prod", Object: repo.Zeros(2 << 20)})
	s := at(t, texts{"repository": repo.FileURL(), "path": "net/prod"}).(*state)
	s.branch.Limit = 1 << 20
	h := storetest.Historian(t, s)
	kept, _, err := h.Versions(t.Context(), 10)
	if err != nil || len(kept) != 2 || len(kept[1].Subject) > 1024 || len(kept[1].Author) > 1024 || kept[0].Size != -1 || kept[1].Size != 2 {
		t.Fatalf("got %.3000v, %v", kept, err)
	}
	if got, err := h.ReadVersion(t.Context(), kept[0].ID, 0, 10); err == nil {
		t.Errorf("a file that is too large is read: %q", got)
	}
	s = at(t, texts{"repository": repo.FileURL(), "path": "net/prod"}).(*state)
	s.past = &history{complete: true, commits: []gitsource.Commit{
		{ID: "1234567" + strings.Repeat("0", 33), File: "a"}, {ID: "1234567" + strings.Repeat("1", 33), File: "b"},
	}}
	if _, err := s.ReadVersion(t.Context(), "1234567", 0, -1); !errors.Is(err, errAmbiguous) {
		t.Errorf("an ambiguous ID: %v", err)
	}
	s.past = nil
}
