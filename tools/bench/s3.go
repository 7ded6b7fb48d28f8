package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// bucketRow counts the requests that an apply without changes sends to a bucket outside AWS, under wrap and with
// Terraform's own backend. The lock is in the bucket. On AWS, wrap needs three requests fewer.
func (b *bench) bucketRow() ([]line, error) {
	objects := &objects{kept: map[string][]byte{}}
	server := httptest.NewServer(objects)
	defer server.Close()
	block := func(key, more string) string { return bucketBlock(server.URL, key, more) }
	const own = "  skip_credentials_validation = true\n  skip_requesting_account_id = true\n  skip_metadata_api_check = true\n"
	here, err := b.applyOf("wrapped", `backend "http" {}`, block("wrapped", ""))
	if err != nil {
		return nil, err
	}
	peer, err := b.applyOf("own", block("own", own), "")
	if err != nil {
		return nil, err
	}
	var asked [2]int
	for i, c := range []command{here, peer} {
		objects.count()
		if _, err := b.run(c); err != nil {
			return nil, err
		}
		asked[i] = objects.count()
	}
	const proof = 6 // more requests than the peer
	return []line{{
		name: "apply without changes, a state of 1 MiB encrypted in a bucket outside of AWS, under wrap: " +
			"beside Terraform's own backend, requests",
		here: fmt.Sprint(asked[0]), peer: fmt.Sprint(asked[1]), ratio: float64(asked[0]) / float64(asked[1]),
		most: float64(asked[1]+proof) / float64(asked[1]),
	}}, nil
}

// bucketBlock returns a block for a state in a bucket of [objects], with more arguments.
func bucketBlock(url, key, more string) string {
	return `backend "s3" {
  bucket         = "states"
  key            = "` + key + `"
  region         = "eu-west-1"
  access_key     = "AKIABENCH"
  secret_key     = "bench"
  use_path_style = true
  use_lockfile   = true
  endpoints      = { s3 = "` + url + `" }
` + more + "}"
}

// objects is a store that implements the part of S3 that backends use, and accepts all credentials.
type objects struct {
	mu    sync.Mutex
	kept  map[string][]byte
	asked int
}

// count returns the number of requests since the last call.
func (o *objects) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.asked = 0 }()
	return o.asked
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	there, found := o.kept[r.URL.Path]
	etag := func(data []byte) string { return fmt.Sprintf(`"%x"`, sha256.Sum256(data)) }
	match := r.Header.Get("If-Match")
	switch {
	case r.Method == http.MethodPut && (found && r.Header.Get("If-None-Match") != "" || match != "" && (!found || match != etag(there))):
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		o.kept[r.URL.Path] = body
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodDelete:
		delete(o.kept, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case filepath.Dir(r.URL.Path) == "/": // lists the bucket
		w.Header().Set("Content-Type", "application/xml")
		_, _ = io.WriteString(w, "<ListBucketResult><IsTruncated>false</IsTruncated>")
		for _, path := range slices.Sorted(maps.Keys(o.kept)) {
			if key := strings.TrimPrefix(path, "/states/"); strings.HasPrefix(key, r.URL.Query().Get("prefix")) {
				_, _ = fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size></Contents>", key, len(o.kept[path]))
			}
		}
		_, _ = io.WriteString(w, "</ListBucketResult>")
	case !found:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", etag(there))
		w.Header().Set("Content-Length", fmt.Sprint(len(there)))
		_, _ = w.Write(there)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
}
