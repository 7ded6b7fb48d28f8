package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Signs reads twice with what was opened, and looks at who signed: nobody but
// the one with the access key, and nobody where that is "". Want is a part of
// the error, "" for none.
func Signs(t *testing.T, server *Server, key, want string, src source.Source, err error) {
	t.Helper()
	for range 2 { // keys are asked for once
		if err == nil {
			_, err = src.Fetch(t.Context())
		}
	}
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got %v, want %q", err, want)
	}
	if _, missing := source.IsMissing(err); missing {
		t.Errorf("%v: that is no missing state", err)
	}
	if strings.Contains(fmt.Sprint(err), Canary) {
		t.Errorf("it shows a secret: %v", err)
	}
	for _, r := range server.Requests() {
		if r.AccessKey != key || key == "" {
			t.Errorf("%q signs, not %q", r.AccessKey, key)
		}
	}
}

// Cancelled cancels a read that waits for keys. Open is to have them come from
// the given URL.
func Cancelled(t *testing.T, open func(stuck string) (source.Source, error)) {
	t.Helper()
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(stuck.Close)
	t.Cleanup(stuck.CloseClientConnections)
	src, err := open(stuck.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := src.Fetch(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
}
