package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// The variables that make a process of TestKilled one that reads and is killed.
const (
	victimURL = "STATECRYPT_TEST_VICTIM_URL"
	victimDir = "STATECRYPT_TEST_VICTIM_DIR"
)

// TestKilled kills a process that reads. What it started must end, and the next
// one removes what it left, but nothing else.
//
// Promise: Nothing left on disk
func TestKilled(t *testing.T) {
	t.Parallel()
	if address := os.Getenv(victimURL); address != "" {
		r := newTestRun(t, nil)
		r.tempDir = os.Getenv(victimDir)
		_, err := read(t, r, place{repository: address, path: "s"})
		t.Fatalf("nobody killed it: %v", err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the environments of processes")
	}
	g := newGate()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Before: g.before})
	next := newTestRun(t, nil)
	dir := next.tempDir
	victim := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	victim.Env = append(os.Environ(), victimURL+"="+server.URL, victimDir+"="+dir)
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	<-g.reached
	if environments(dir) == "" || len(namesIn(t, dir)) != 1 {
		t.Error("git or its directory was never seen: this test shows nothing")
	}
	if err := victim.Process.Kill(); err != nil { // with SIGKILL
		t.Fatal(err)
	}
	_ = victim.Wait()
	for try := 0; environments(dir) != ""; try++ { // killed is not yet gone
		if try == 6000 {
			t.Fatalf("still there:\n%s", processesWith(server.Origin))
		}
		time.Sleep(10 * time.Millisecond)
	}
	left := namesIn(t, dir)
	if len(left) != 1 {
		t.Fatalf("%q is left, want one directory", left)
	}
	precious := t.TempDir()
	if err := os.WriteFile(filepath.Join(precious, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link, other := "statecrypt-git-1.held", "statecrypt-git-2"
	if err := os.Symlink(precious, filepath.Join(dir, link)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, other), 0o700); err != nil {
		t.Fatal(err)
	}
	close(g.open)
	src, err := next.open(place{repository: server.URL, path: "s"}.request(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := namesIn(t, dir); !slices.Equal(got, []string{link, other}) {
		t.Errorf("%q is left, want %s and %s", got, link, other)
	}
	if got := namesIn(t, precious); len(got) != 1 {
		t.Error("a link was followed")
	}
	for _, name := range []string{link, other} {
		_ = os.Remove(filepath.Join(dir, name))
	}
}

// TestLivingAreSpared has one run read while another one looks for what is left.
//
// Promise: Nothing left on disk
func TestLivingAreSpared(t *testing.T) {
	t.Parallel()
	repo, g := stateRepo(t), newGate()
	living, other := newTestRun(t, nil), newTestRun(t, nil)
	other.tempDir = living.tempDir
	slow := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: g.before})
	done := fetchIn(t.Context(), t, living, place{repository: slow.URL, path: "s"})
	<-g.reached
	src, err := other.open(place{repository: repo.FileURL(), path: "s"}.request(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := namesIn(t, living.tempDir); len(left) != 1 || !strings.HasSuffix(left[0], ".held") {
		t.Errorf("%q is left, want what the living process uses", left)
	}
	close(g.open)
	if a := <-done; a.err != nil || string(a.snapshot.Data) != "state" {
		t.Errorf("%v", a.err)
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
