package objecttest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Signs reads twice from src and checks that all requests are signed with the access key ID key. If key is
// empty, the read must fail and no request may arrive. Signs returns the error of the last read. err is the
// error from opening src.
func Signs(t *testing.T, server *Server, key string, src source.Source, err error) error {
	t.Helper()
	for range 2 { // keys are requested only once
		if err == nil {
			_, err = src.Fetch(t.Context())
		}
	}
	if (err != nil) != (key == "") {
		t.Errorf("%q signs: got %v", key, err)
	}
	if _, missing := source.IsMissing(err); missing {
		t.Errorf("%v: that is no missing state", err)
	}
	_ = shown(t, err)
	for _, r := range server.Requests() {
		if r.AccessKey != key || key == "" {
			t.Errorf("%q signs, not %q", r.AccessKey, key)
		}
	}
	return err
}

// Cancelled cancels a read that is waiting for keys. open must return a source that gets its keys from the
// given URL.
func Cancelled(t *testing.T, open func(stuck string) (source.Source, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stuck := nettest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	src, err := open(stuck)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err := src.Fetch(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Place is the place where a CLI keeps states.
type Place struct {
	*Server
	Bucket  string
	Backend string            // the backend block for this place
	Env     []string          // environment of the CLI
	Paths   map[string]string // object paths by workspace
}

// Interop makes the CLI write states, and reads back each of them with one signed request.
func (p Place) Interop(t *testing.T, cli clitest.CLI, open func(workspace string) (source.Source, error)) {
	t.Helper()
	p.Writable.Store(true)
	cli.Project(t, p.Backend, p.Env...).RoundTrip(t, func(workspace string) []byte {
		p.Writable.Store(false) // only signed reads are allowed
		defer p.Writable.Store(true)
		p.Requests()
		src, err := open(workspace)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := src.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Requests(); len(got) != 1 || got[0].Method != http.MethodGet || !strings.HasSuffix(got[0].Path, "/"+p.Paths[workspace]) {
			t.Errorf("got requests %+v", got)
		}
		return snap.Data
	}, func(workspace string) []byte { return p.Get(p.Bucket, p.Paths[workspace]) })
}
