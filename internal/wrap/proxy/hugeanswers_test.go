package proxy

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// An answer that unpacks to much more than any state is refused early, and with a
// status after which the child does not try again.
func TestHugeAnswers(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.CopyN(w, zeros{}, 64<<20)
	_ = w.Close()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}))
	defer server.Close()
	var said bytes.Buffer
	p := betweenWith(t, states.Keys{}, states.Where{}, []string{"STATECRYPT_HTTP_ADDRESS=" + server.URL}, &said)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/state", nil)
	r.SetBasicAuth(module.Username, p.password)
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, r)
	wraptest.OpenMistakes(t, "huge answer").Said(t, "packed", said.String())
	if answer.Code != ours || asked != 1 {
		t.Errorf("got %d after %d requests", answer.Code, asked)
	}
}
