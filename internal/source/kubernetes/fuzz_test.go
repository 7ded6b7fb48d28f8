package kubernetes

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// FuzzPacked unpacks what is in a secret of the kubernetes backend.
func FuzzPacked(f *testing.F) {
	const limit = 4 << 10
	whole := gzipped(f, []byte(`{"version":4}`))
	for _, seed := range [][]byte{
		nil, whole, whole[:len(whole)-1], append(bytes.Clone(whole), whole...), append(bytes.Clone(whole), 1), []byte("\x1f\x8b"),
		gzipped(f, make([]byte, limit)), gzipped(f, make([]byte, 4<<20)),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		start := time.Now()
		data, err := unpack(packed, limit)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		switch {
		case err != nil && len(data) > 0:
			t.Errorf("there are %d bytes and an error", len(data))
		case err != nil:
		case len(data) > limit:
			t.Errorf("%d bytes are read", len(data))
		default:
			z, err := gzip.NewReader(bytes.NewReader(packed))
			if err != nil {
				t.Fatalf("%q is no gzip, and opened: %v", packed, err)
			}
			if want, err := io.ReadAll(z); err != nil || !bytes.Equal(data, want) {
				t.Errorf("%q came out of %q: %v", data, packed, err)
			}
		}
	})
}

// FuzzSecret has the server answer with any text for the secret of the backend.
// What comes out is what its tfstate holds.
func FuzzSecret(f *testing.F) {
	server := kubetest.New(f)
	var answer []byte
	server.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
		return true
	}
	state := base64.StdEncoding.EncodeToString(gzipped(f, []byte(`{"version":4}`)))
	for _, seed := range []string{
		`{"kind":"Secret","apiVersion":"v1","metadata":{"resourceVersion":"7"},"data":{"tfstate":"` + state + `"}}`,
		`{"data":{"tfstate":"` + state + `","tfstate":"AA=="}}`, `{"DATA":{"tfstate":"` + state + `"}}`, `{"data":{"tfstate":""}}`,
		`{"data":{"tfstate":1}}`,
		`{"data":{"tfstate":null}}`, `{"data":{"TFSTATE":"` + state + `"}}`, `{"data":{}}`,
		`{"kind":"Status","status":"Failure","reason":"c4n4ry"}`, "", "[]", "null",
		`{"metadata":{"resourceVersion":1},"data":{"tfstate":"` + state + `"}}`,
	} {
		f.Add([]byte(seed))
	}
	var src source.Source // with its connection, for all texts
	f.Fuzz(func(t *testing.T, text []byte) {
		if src == nil {
			src = open(t, settingsOf(access(server)))
		}
		server.Change(func() { answer = text })
		snap, err := src.Fetch(t.Context())
		var secret struct {
			Data map[string]json.RawMessage
		}
		var packed []byte
		switch {
		case err != nil:
			if len(err.Error()) > 1000 || strings.Contains(err.Error(), "c4n4ry") {
				t.Errorf("the error says %q", err)
			}
		case json.Unmarshal(text, &secret) != nil || json.Unmarshal(secret.Data["tfstate"], &packed) != nil:
			t.Errorf("%q came out of %q", snap.Data, text)
		default:
			want, err := unpack(packed, 1<<20)
			if err != nil || !bytes.Equal(want, snap.Data) {
				t.Errorf("%q came out of %q: %v", snap.Data, text, err)
			}
		}
	})
}

func gzipped(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// TestWellPacked: an honest state may unpack to far more than a hundred times its size.
func TestWellPacked(t *testing.T) {
	state := make([]byte, 8<<20)
	if got, err := unpack(nettest.Gzip(state), 16<<20); err != nil || !bytes.Equal(got, state) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}
