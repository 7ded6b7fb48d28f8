package object_test

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

var words = object.Words{
	Store: "S3",
	Read:  "s3:GetObject", ReadVersion: "s3:GetObjectVersion", List: "s3:ListBucket", Decrypt: "kms:Decrypt",
	CustomerKey: "sse_customer_key",
}

func storeAt(server *httptest.Server) object.Store {
	endpoint, _ := url.Parse(server.URL)
	network := object.Network{Attempts: 2, MaxWait: time.Millisecond, Timeout: time.Minute}
	if server.Certificate() != nil {
		network.Roots = x509.NewCertPool()
		network.Roots.AddCert(server.Certificate())
	}
	return object.Store{Words: words, Client: object.NewClient(object.Place{
		Endpoint: endpoint, Region: "eu-west-1", PathStyle: true, Prefix: "X-Oss-",
		Keys: credentials.NewStaticCredentialsProvider("AKIA", "canary-secret", "canary-token"),
	}, network)}
}

func TestRead(t *testing.T) {
	want := bytes.Repeat([]byte("x"), 100_000)
	stored := objecttest.New("states")
	stored.Put("states", "a/b c.tfstate", want)
	server := httptest.NewServer(stored)
	defer server.Close()
	store := storeAt(server)
	snap, err := store.Read(t.Context(), object.Object{Bucket: "states", Key: "a/b c.tfstate"}, 100_000)
	if err != nil || !bytes.Equal(snap.Data, want) || snap.Revision == "" || strings.Contains(snap.Revision, `"`) {
		t.Fatalf("got %+v, %v", snap, err)
	}
	_, err = store.Read(t.Context(), object.Object{Bucket: "states", Key: "a/b c.tfstate"}, 99_999)
	if err == nil || err.Error() != meter.TooLarge(99_999).Error() {
		t.Errorf("too large: %v", err)
	}
	_, err = store.Read(t.Context(), object.Object{Bucket: "states", Key: "none"}, 1)
	if m, ok := source.IsMissing(err); !ok || !m.CredentialsSent {
		t.Errorf("no object: %v", err)
	}
	_, err = store.Read(t.Context(), object.Object{Bucket: "none", Key: "none"}, 1)
	if _, ok := source.IsMissing(err); ok {
		t.Errorf("no bucket: %v", err)
	}
	sourcetest.OpenMistakes(t, "S3, library").Error(t, "no bucket", err)
}

// Stores that use their own names for headers are understood, and the marks of
// deletions too.
func TestVendorHeaders(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := r.URL.Query().Get("versionId")
		w.Header().Set("X-Oss-Version-Id", version)
		w.Header().Set("ETag", `"1"`)
		if version == "mark" {
			w.Header().Set("X-Oss-Delete-Marker", "true")
			w.WriteHeader(http.StatusMethodNotAllowed)
			fmt.Fprint(w, "<Error><Code>MethodNotAllowed</Code></Error>")
			return
		}
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(server.Close)
	store := storeAt(server)
	if snap, err := store.Read(t.Context(), object.Object{Bucket: "b", Key: "k", Version: "v1"}, 10); err != nil || snap.Revision != "v1" {
		t.Errorf("got %+v, %v", snap, err)
	}
	_, err := store.Read(t.Context(), object.Object{Bucket: "b", Key: "k", Version: "mark"}, 10)
	if _, missing := source.IsMissing(err); !missing {
		t.Errorf("a mark: %v", err)
	}
}
