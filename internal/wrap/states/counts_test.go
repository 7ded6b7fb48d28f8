package states

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/httpstore/giteatest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// moveIn encrypts a state in its backend.
func moveIn(t *testing.T, g *giteatest.Server, told *wraptest.Said, remembered *Memory, pins Pins) error {
	t.Helper()
	environ := wraptest.EnvironOfGitea(t, g, nil)
	b, err := Where{}.Open(wraptest.Target(t, wraptest.Migrating), environ, &module.Module{}, false, Notes(told, ""))
	if err != nil {
		t.Fatal(err)
	}
	m := &Existing{Unused: &Unused{Module: &module.Module{}, Backend: b, Say: Notes(told, "")}}
	m.Backend = b
	m.Guard = &Guard{Target: wraptest.Target(t, wraptest.Migrating), Backend: b, Memory: remembered, Pins: pins, Say: Notes(told, "")}
	return m.MoveIn(t.Context())
}

// TestMoveInCounts: a state that is encrypted where it is gets the next serial, as OpenTofu does it, and
// is remembered with that: a server may keep one state for each.
func TestMoveInCounts(t *testing.T) {
	t.Parallel()
	g := giteatest.Start(t)
	wraptest.Upload(t, g, wraptest.State)
	told := &wraptest.Said{}
	data := t.TempDir()
	if err := moveIn(t, g, told, &Memory{at: files.Directory{Path: data}, of: "net"}, Pins{}); err != nil {
		t.Fatal(err)
	}
	wraptest.Holds(t, g.Stored("net"), 2)
	var seen map[string]label
	text, err := os.ReadFile(filepath.Join(data, memoryName))
	if err != nil || json.Unmarshal(text, &seen) != nil || seen["net"].Serial == nil || *seen["net"].Serial != 2 {
		t.Errorf("this is remembered: %s, %v", text, err)
	}
	for _, pinned := range []int64{1, 2} { // the state that was there is the pinned one, or not
		g := giteatest.Start(t)
		wraptest.Upload(t, g, wraptest.State)
		if err := moveIn(t, g, told, &Memory{}, Pins{Serial: &pinned}); (err == nil) != (pinned == 1) {
			t.Errorf("pinned to %d: %v", pinned, err)
		}
	}
}

// TestFormIsNoted: that a server may refuse what sops and age make is said before it is asked to take it.
func TestFormIsNoted(t *testing.T) {
	t.Parallel()
	g := giteatest.Start(t)
	wraptest.Upload(t, g, wraptest.State)
	told := &wraptest.Said{}
	refused := false
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "/lock") {
			refused = true
			if text := told.Take(); !strings.Contains(text, "Gitea") {
				t.Errorf("before the write, this was said: %s", text)
			}
		}
		g.ServeHTTP(w, r)
	})
	s, err := openStates(Where{}, "", encryption.Target{}, wraptest.EnvironOfGitea(t, g, front), Notes(told, ""))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Rotate(t.Context(), "", func([]byte) ([]byte, error) { return []byte("age-encryption.org/v1\n"), nil })
	if err == nil || !refused || string(g.Stored("net")) != wraptest.State {
		t.Errorf("%v, and there is %s", err, g.Stored("net"))
	}
}
