package git

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// TestOthersStates: three write to states of their own at once, five times each, and no
// commit is lost.
//
// Promise: States in stores
func TestOthersStates(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	var wg sync.WaitGroup
	for writer := range 3 {
		wg.Go(func() {
			s := carefully(at(t, texts{"repository": server.URL, "path": fmt.Sprintf("writer/%d", writer)}))
			err := s.Lock(t.Context(), storetest.Lock(fmt.Sprint(writer)))
			version := store.Version("")
			for i := range 5 {
				if err == nil {
					version, err = s.Write(t.Context(), storetest.State(i), version)
				}
			}
			if err == nil {
				err = s.Unlock(t.Context(), fmt.Sprint(writer))
			}
			if err != nil {
				t.Errorf("writer %d: %v", writer, err)
			}
		})
	}
	wg.Wait()
	if n := len(strings.Split(repo.Git("log", "--format=%s", "main"), "\n")); n != 16 {
		t.Errorf("there are %d commits, want 15 and the first", n)
	}
	if files := repo.Git("ls-tree", "-r", "--name-only", "main"); files != "README\nwriter/0\nwriter/1\nwriter/2" {
		t.Errorf("there are %q", files)
	}
}

// TestOneLocks: three ask for a lock at once, over http.
//
// Promise: States in stores
func TestOneLocks(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	for round := range testkit.Rounds(40) {
		var wg sync.WaitGroup
		won := make(chan store.State, 3)
		for locker := range 3 {
			wg.Go(func() {
				s := carefully(at(t, texts{"repository": server.URL, "path": "net"}))
				err := s.Lock(t.Context(), storetest.Lock(fmt.Sprintf("%d.%d", round, locker)))
				if _, held := errors.AsType[*store.HeldError](err); err == nil {
					won <- s
				} else if !held {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("round %d: %d have the lock", round, len(won))
		}
		s := <-won
		by, err := s.Holder(t.Context())
		must(t, err)
		must(t, s.Unlock(t.Context(), by.ID))
	}
}
