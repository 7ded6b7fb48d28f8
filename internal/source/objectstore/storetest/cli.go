package storetest

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Store is where a CLI keeps states.
type Store struct {
	*Server
	Bucket  string
	Backend string            // block that leads there
	Env     []string          // of the CLI
	Paths   map[string]string // of the objects, by workspace
}

// Interop has the CLI write states, and reads each of them back, by one signed
// request.
func (s Store) Interop(t *testing.T, cli clitest.CLI, open func(workspace string) (source.Source, error)) {
	t.Helper()
	s.Writable = true
	p := cli.Project(t, s.Backend, s.Env...)
	for _, workspace := range clitest.Workspaces {
		p.Apply(t, workspace)
	}
	s.Writable = false // from here on, only signed reads are allowed
	s.Requests()
	for _, workspace := range clitest.Workspaces {
		src, err := open(workspace)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := src.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.Compare(t, workspace, snap.Data, s.Objects(t, s.Bucket)[s.Paths[workspace]])
		if got := s.Requests(); len(got) != 1 || got[0].Method != "GET" {
			t.Errorf("got requests %+v", got)
		}
	}
}
