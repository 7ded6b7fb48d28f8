package git

import (
	"fmt"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// TestRequests counts what each step asks of a server.
func TestRequests(t *testing.T) {
	t.Parallel()
	long(t)
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	files := []gittest.File{{Path: "net/prod", Data: "old"}}
	for i := range 1000 {
		files = append(files, gittest.File{Path: fmt.Sprintf("team%d/state%d", i%50, i), Data: fmt.Sprint(i)})
	}
	repo.Commit("refs/heads/main", files...)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "alice", Password: canary})
	s := at(t, texts{"repository": server.URL, "path": "net/prod", "username": "alice", "password": canary})
	var version store.Version
	for _, step := range []struct {
		name string
		do   func() error
		want int
	}{
		{"lock", func() error { return s.Lock(t.Context(), storetest.Lock("1")) }, 3},
		{"read", func() (err error) { _, version, err = s.Read(t.Context()); return err }, 5},
		{"write", func() (err error) { _, err = s.Write(t.Context(), storetest.State(1), version); return err }, 6},
		{"unlock", func() error { return s.Unlock(t.Context(), "1") }, 2},
	} {
		server.Reset()
		must(t, step.do())
		requests := server.Requests()
		t.Logf("%s: %d requests, %d bytes", step.name, len(requests), server.BytesDown())
		if len(requests) != step.want || server.BytesDown() > 100_000 {
			t.Errorf("%s: %d requests, want %d; %d bytes", step.name, len(requests), step.want, server.BytesDown())
		}
		for _, r := range requests {
			if r.Authorization == "" {
				t.Errorf("%s: without credentials: %s %s", step.name, r.Method, r.Path)
			}
		}
	}
}

// TestLarge: of a repository with many folders, those on the way to the state are fetched,
// once that is known.
func TestLarge(t *testing.T) {
	t.Parallel()
	long(t)
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	files := []gittest.File{{Path: "net/prod", Data: "old"}}
	for i := range 8000 {
		files = append(files, gittest.File{Path: fmt.Sprintf("d%d/e%d/s", i%80, i), Data: fmt.Sprint(i)})
	}
	repo.Commit("refs/heads/main", files...)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	s := at(t, texts{"repository": server.URL, "path": "net/prod"})
	must(t, takeLock(t, s))
	_, version, err := s.Read(t.Context())
	must(t, err)
	server.Reset()
	_, err = s.Write(t.Context(), storetest.State(1), version)
	must(t, err)
	if n := len(server.Requests()); n != 8 || server.BytesDown() > 20_000 {
		t.Errorf("a write takes %d requests and %d bytes", n, server.BytesDown())
	}
	must(t, s.Unlock(t.Context(), "1"))
	if n := len(repo.Git("ls-tree", "-r", "--name-only", "main")); n < 8000*8 {
		t.Errorf("files are lost: %d bytes of names are left", n)
	}
	repo.Git("fsck", "--strict")
}
