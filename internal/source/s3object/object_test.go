package s3object

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

var words = Words{
	Store: "S3", Block: "the s3 block of credentials, in the provider block",
	Read: "s3:GetObject", ReadVersion: "s3:GetObjectVersion", List: "s3:ListBucket", Decrypt: "kms:Decrypt",
	Region: "region", CustomerKey: "sse_customer_key", CA: "custom_ca_bundle",
}

func storeAt(t *testing.T, url string) Store {
	t.Helper()
	client, err := NewClient(Options{
		Endpoint: url, Region: "eu-west-1", PathStyle: true, AccessKey: "AKIA", SecretKey: "canary-secret", Token: "canary-token",
		Insecure: true, Attempts: 2, MaxWait: time.Millisecond, Timeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return Store{Client: client, Words: words}
}

func TestRead(t *testing.T) {
	backend := s3mem.New()
	if err := backend.CreateBucket("states"); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("x"), 100_000)
	if _, err := backend.PutObject("states", "a/b c.tfstate", nil, bytes.NewReader(want), int64(len(want)), nil); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	defer server.Close()
	store := storeAt(t, server.URL)
	snap, err := store.Read(t.Context(), Object{Bucket: "states", Key: "a/b c.tfstate"}, 100_000)
	if err != nil || !bytes.Equal(snap.Data, want) || snap.Revision == "" || strings.Contains(snap.Revision, `"`) {
		t.Fatalf("got %+v, %v", snap, err)
	}
	if _, err := store.Read(t.Context(), Object{Bucket: "states", Key: "a/b c.tfstate"}, 99_999); err == nil || err.Error() != source.TooLarge(99_999).Error() {
		t.Errorf("too large: %v", err)
	}
	_, err = store.Read(t.Context(), Object{Bucket: "states", Key: "none"}, 1)
	if m, ok := source.IsMissing(err); !ok || !m.CredentialsSent {
		t.Errorf("no object: %v", err)
	}
	_, err = store.Read(t.Context(), Object{Bucket: "none", Key: "none"}, 1)
	if _, ok := source.IsMissing(err); ok || err == nil || !strings.Contains(err.Error(), `there is no bucket "none"`) {
		t.Errorf("no bucket: %v", err)
	}
}
