package consul

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul/consultest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
)

// States that a real CLI writes through its consul backend are read back: of
// workspaces, compressed or not, encrypted or not, and large ones, which the
// backend divides.
func TestWrittenByCLIs(t *testing.T) {
	every := 2 / testkit.Rounds(2) // each CLI with gzip or without, and with both in "make soak"
	for i, cli := range clitest.All(t) {
		for j, gzip := range []bool{false, true} {
			if (i+j)%every != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s, gzip %t", cli.Name, gzip), func(t *testing.T) {
				t.Parallel()
				testRealBackend(t, cli, gzip)
			})
		}
	}
}

func testRealBackend(t *testing.T, cli clitest.CLI, gzip bool) {
	s := consultest.New(t)
	s.Writable = true
	s.Tokens = map[string]consultest.Policy{"writer": consultest.Everything, "reader": reader(t)}
	p := cli.Project(t, backend(fmt.Sprintf("address = %q\naccess_token = \"writer\"", s.URL), gzip))

	// check reads as one who may do nothing else, and looks whether that is
	// what was written.
	check := func(workspace string, parts bool) {
		t.Helper()
		s.Requests()
		s.Change(func() { s.Writable = false })
		defer s.Change(func() { s.Writable = true })
		r := request(t, attrs{"path": text("network")}, nil)
		r.Workspace, r.MaxSize = workspace, 64<<20
		snap := sourcetest.Fetch(t, opened(t, settingsOf(attrs{"address": text(s.URL), "access_token": text("reader")}), r))
		key := keyOf(workspace)
		head := s.Entry(key)
		if fmt.Sprint(head.ModifyIndex) != snap.Revision {
			t.Errorf("got the revision %s, want %d", snap.Revision, head.ModifyIndex)
		}
		requests := s.Requests()
		if slices.ContainsFunc(requests, func(r string) bool { return !strings.HasPrefix(r, "GET /v1/kv/"+key) }) || !parts &&
			len(requests) != 1 {
			t.Errorf("asked for %q", requests)
		}
		if parts != (len(requests) > 1) {
			t.Errorf("the state is not stored as it should be for this test: %q", requests)
		}
		checkStored(t, p, workspace, snap.Data, head.Value, parts, gzip)
	}
	p.Apply(t, "default")
	check("default", false)
	p.Apply(t, "staging-1")
	check("staging-1", false)
	p.Enlarge(t, 800<<10)
	p.Apply(t, "staging-1")
	check("staging-1", true)
	p.Apply(t, "default")
	check("default", true)
}

// backend is a consul backend.
func backend(access string, gzip bool) string {
	return fmt.Sprintf("backend \"consul\" {\n%s\npath = \"network\"\ngzip = %t\n}", access, gzip)
}

func keyOf(workspace string) string {
	if workspace == "default" {
		return "network"
	}
	return "network-env:" + workspace
}

// checkStored looks whether what was read is what was written, and what the key
// of the workspace holds, which may be an index of parts.
func checkStored(t *testing.T, p *clitest.Project, workspace string, read, head []byte, parts, gzip bool) {
	t.Helper()
	if parts != bytes.Contains(head, []byte("current-hash")) || !parts && !gzip && !bytes.Equal(head, read) {
		t.Errorf("%s: got %d bytes, and the key has %d", workspace, len(read), len(head))
	}
	p.Check(t, workspace, read)
	p.CheckShown(t, workspace, read)
}
