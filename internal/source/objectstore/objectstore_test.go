package objectstore

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object"
)

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"store.example.com":             "https://store.example.com",
		"store.example.com:9000":        "https://store.example.com:9000",
		"https://store.example.com/":    "https://store.example.com",
		"http://127.0.0.1:9000":         "http://127.0.0.1:9000",
		"":                              "",
		"ftp://store.example.com":       "",
		"https://u:p@store.example.com": "",
		"u@store.example.com":           "",
		"store.example.com/path":        "",
		"store.example.com?x":           "",
		"store.example.com#x":           "",
		"https://":                      "",
		"https://[::1":                  "",
		"a b":                           "",
	} {
		u, err := ParseEndpoint(text)
		if (err == nil) != (want != "") || err == nil && u.String() != want {
			t.Errorf("%q: got %v, %v", text, u, err)
		}
	}
}

func TestIsLabel(t *testing.T) {
	for text, want := range map[string]bool{
		"a": true, "eu-central-1": true, "0": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "a-": false, "A": false, "a.b": false, "a/b": false, "a:1": false, "a@b": false, "a%2e": false, "a\n": false, "é": false,
		strings.Repeat("a", 64): false,
	} {
		if IsLabel(text) != want {
			t.Errorf("%q: not %t", text, want)
		}
	}
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
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	keys := aws.CredentialsProvider(aws.AnonymousCredentials{})
	store, err := NewStore(Place{Endpoint: u, Region: "x", Keys: keys, PathStyle: true, Prefix: "X-Oss-", Words: s3object.Words{Store: "OSS"}}, Connection{})
	if err != nil {
		t.Fatal(err)
	}
	if snap, err := store.object.Read(t.Context(), s3object.Object{Bucket: "b", Key: "k", Version: "v1"}, 10); err != nil || snap.Revision != "v1" {
		t.Errorf("got %+v, %v", snap, err)
	}
	_, err = store.object.Read(t.Context(), s3object.Object{Bucket: "b", Key: "k", Version: "mark"}, 10)
	if _, missing := source.IsMissing(err); !missing {
		t.Errorf("a mark: %v", err)
	}
}
