package wrap

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// TestRecordIsNoLink: a link that a module brings along in place of the record leads to no
// file of the user.
//
// Promise: Only encrypted states
// Promise: Links in modules
func TestRecordIsNoLink(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	file := filepath.Join(t.TempDir(), "precious")
	if err := errors.Join(os.WriteFile(file, []byte("mine"), 0o600), os.Symlink(file, filepath.Join(data, recordName))); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writeRecord(t.Context(), directory{path: data}), checkRecord(directory{path: data})); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadFile(file); err != nil || string(left) != "mine" {
		t.Errorf("it holds %q, %v", left, err)
	}
}

// TestCheckRecord: what the child may have written down in place of our record.
func TestCheckRecord(t *testing.T) {
	t.Parallel()
	mistakes := OpenMistakes(t, "record")
	for name, record := range map[string]string{
		"ours":          record,
		"another":       `{"backend":{"type":"s3","config":{}}}`,
		"with settings": `{"backend":{"type":"http","config":{"address":"x"}}}`,
		"none":          `{}`,
		"a state store": strings.Replace(record, `{`, `{"state_store":{"type":"x"},`, 1),
	} {
		data := t.TempDir()
		if err := os.WriteFile(filepath.Join(data, recordName), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		mistakes.Failed(t, name, "", checkRecord(directory{path: data}))
	}
}

// unfaithful is a method that gives back something else than it got.
type unfaithful struct{}

func (unfaithful) Encrypt(context.Context, driver.Keys, []byte) ([]byte, error) {
	return []byte("x"), nil
}

func (unfaithful) Decrypt(context.Context, driver.Keys, []byte) ([]byte, error) {
	return []byte(state), nil
}

// TestSealedAnother: what would be opened as another state is not stored.
func TestSealedAnother(t *testing.T) {
	t.Parallel()
	registry := encryption.Registry{Methods: []driver.Block[driver.Method]{{
		Table: attr.Table{Name: "unfaithful"}, Build: func(attr.Values) (driver.Method, error) { return unfaithful{}, nil },
	}}}
	enc, err := encryption.Load(registry, encryption.Code(`method "unfaithful" "m" {}
		state { method = method.unfaithful.m }`, "test.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Seal(t.Context(), enc.State(), []byte(state)); err != nil {
		t.Error(err)
	}
	changed := strings.Replace(state, `"outputs":{}`, `"outputs":{"a":1}`, 1)
	_, _, err = Seal(t.Context(), enc.State(), []byte(changed))
	OpenMistakes(t, "sealed").Failed(t, "another state", "", err)
}

// TestLockOfNobody: a lock that is not given before its child has gone is not waited for,
// since nobody would give it back. What was to be written is.
func TestLockOfNobody(t *testing.T) {
	t.Parallel()
	for method, ends := range map[string]bool{"LOCK": true, "UNLOCK": false, "DELETE": false} {
		ctx, leave := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // or nobody notices that the connection ends
			leave()
			if ends {
				<-r.Context().Done() // of the connection, which only the proxy closes
			}
		}))
		defer server.Close()
		p, _ := between(t, server.URL, sealing)
		r := httptest.NewRequestWithContext(ctx, method, map[bool]string{true: "/state", false: "/lock"}[method == "DELETE"], strings.NewReader(`{"ID":"1"}`))
		r.SetBasicAuth(username, p.password)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if gone := w.Code == http.StatusBadGateway; gone != ends || !ends && w.Code != http.StatusOK {
			t.Errorf("%s: got %d", method, w.Code)
		}
	}
}
