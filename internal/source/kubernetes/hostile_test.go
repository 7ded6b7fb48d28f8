package kubernetes

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
)

// A server decides how many parts there are, and each of them comes in time.
//
// Promise: Cost
func TestManySlowParts(t *testing.T) {
	s := kubetest.New(t)
	part := strings.Repeat("AAAA", chunk/3+1)
	s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		time.Sleep(50 * time.Millisecond)
		_, _ = fmt.Fprintf(w, `{"kind":"Secret","metadata":{"name":%q},"data":{"tfstate":%q}}`, path.Base(r.URL.Path), part)
		return true
	}
	kind := Kind()
	kind.Patience = 200 * time.Millisecond
	request := request(t, attrs{"secret_suffix": text("prod")}, nil)
	request.MaxSize = 30 * chunk
	src, err := kind.Start(settingsOf(access(s)))(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), " 200ms") {
		t.Errorf("got %v", err)
	}
}
