package wrap

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// A plan that unpacks to much more than any plan is refused before that, and so is
// one that is in its archive many times.
//
// Promise: Cost
func TestHugePlans(t *testing.T) {
	archive := func(plan io.Reader, size, members int) []byte {
		var content bytes.Buffer
		w := zip.NewWriter(&content)
		for range members {
			member, err := w.Create("tfplan")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(member, plan, int64(size/members)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return content.Bytes()
	}
	backend := func(config []byte) []byte {
		b := protowire.AppendString(protowire.AppendTag(nil, fieldType, protowire.BytesType), "http")
		value := protowire.AppendBytes(protowire.AppendTag(nil, fieldMsgpack, protowire.BytesType), config)
		return protowire.AppendBytes(protowire.AppendTag(b, fieldConfig, protowire.BytesType), value)
	}
	ours := protowire.AppendBytes(protowire.AppendTag(nil, fieldBackend, protowire.BytesType), backend([]byte{0x80}))
	mistakes := OpenMistakes(t, "huge plan")
	for name, plan := range map[string][]byte{
		"once":  archive(bytes.NewReader(ours), len(ours), 1),
		"twice": archive(bytes.NewReader(append(ours, ours...)), 2*len(ours), 2),
	} {
		mistakes.Failed(t, name, "", checkPlan(plan))
	}
	if checkPlan(archive(zeros{}, 64<<20, 1)) == nil {
		t.Error("what unpacks to 64 MiB is a plan")
	}
}

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
	p := betweenWith(t, Options{Stderr: &said, Environ: []string{"STATECRYPT_HTTP_ADDRESS=" + server.URL}})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/state", nil)
	r.SetBasicAuth(username, p.password)
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, r)
	OpenMistakes(t, "huge answer").Said(t, "packed", said.String())
	if answer.Code != ours || asked != 1 {
		t.Errorf("got %d after %d requests", answer.Code, asked)
	}
}
