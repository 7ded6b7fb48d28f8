package git

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

// What git says differs with its version and that of its TLS library; what is
// here does not.
const (
	unreachable = "the server cannot be reached"
	notAccepted = "the server's certificate was not accepted"
	unavailable = "the server is busy or unavailable; try again"
	brokeOff    = "the connection broke off, or the data was damaged; try again"
	stopped     = "the server stopped sending; try again"
	noAccess    = "unable to access 'https://127.0.0.1:"
)

// TestFaultsOfRefs has the answers go wrong that say what there is.
//
// Promise: Cost
func TestFaultsOfRefs(t *testing.T) {
	long(t)
	t.Parallel()
	h := faultHarness(t)
	h.At = func(r *http.Request, _ []byte) bool { return strings.HasSuffix(r.URL.Path, "/info/refs") }
	maps.Copy(h.Sees, map[string]string{
		"nobody listens":              unreachable,
		"reset at once":               unreachable + " | " + brokeOff,
		"Content-Length too large":    brokeOff,
		"Content-Length too small":    "expected flush after capabilities",
		"endless header":              noAccess,
		"endless gzip of nothing":     noAccess,
		"nested a million deep":       "bad line length character",
		"301 that names another host": "the server redirects, and credentials are not sent along",
		"gzip bomb":                   noAccess,
		"another service":             "has neither branches nor tags: it is empty, or", // what git's protocol without a service comes to
		"redirect loop":               "redirects followed",
		"redirect to another origin":  rejected,
		"redirect to plain http":      "the address leads to another kind of transport",

		"certificate expired":                 notAccepted,
		"certificate of another host":         notAccepted,
		"certificate of an unknown authority": notAccepted,
		"TLS 1.0":                             noAccess,
		"no TLS":                              noAccess,
		"handshake breaks off":                noAccess,
	})
	if runtime.GOOS == "linux" {
		h.Sees["endless body"] = "git needs more memory than it may have"
	} else {
		h.Cannot["endless body"] = "git reads the list of refs as a whole, however long it is, until the read is cancelled; only Linux " +
			"limits its memory"
	}
	sourcetest.Faults(t, h)
}

// TestFaultsOfPacks has servers die in the middle of a pack, and the like.
//
// Promise: Whole answers
func TestFaultsOfPacks(t *testing.T) {
	long(t)
	t.Parallel()
	h := faultHarness(t)
	h.Few = true
	h.At = func(_ *http.Request, body []byte) bool {
		return bytes.Contains(unpacked(body), []byte("command=fetch"))
	}
	const redirects = "the server redirects, and credentials are not sent along"
	maps.Copy(h.Sees, map[string]string{
		"Content-Length too large":    faults.Works, // a pack has an end of its own
		"Content-Length too small":    brokeOff,
		"endless body":                brokeOff,
		"endless header":              "git failed",
		"endless gzip of nothing":     "git failed",
		"nested a million deep":       brokeOff,
		"301 that names another host": redirects,
		"gzip bomb":                   brokeOff,
		"another service":             brokeOff,
		"redirect loop":               redirects,
		"redirect to another origin":  redirects,
		"redirect to plain http":      redirects,
	})
	for _, connection := range []string{
		"nobody listens", "reset at once", "stall in the handshake, cancelled", "certificate expired", "certificate of another host",
		"certificate of an unknown authority", "TLS 1.0", "no TLS", "handshake breaks off",
	} {
		h.Cannot[connection] = "no answer comes before the fault, that of the refs neither; see TestFaultsOfRefs"
	}
	sourcetest.Faults(t, h)
}

func faultHarness(t *testing.T) sourcetest.FaultHarness {
	t.Helper()
	repo, commit := gittest.NewRepo(t, gittest.RepoOptions{}), new(sync.Once)
	to, err := url.Parse(gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "alice", Password: canary}).Origin)
	if err != nil {
		t.Fatal(err)
	}
	var patience time.Duration
	kind := Kind()
	kind.Begin = func(s source.Settings) source.Open {
		r := newReader(s)
		r.maxMemory = 100 << 20 // so that it is soon full
		r.maxStall = max(time.Second, patience)
		return r.open
	}
	return sourcetest.FaultHarness{
		Kind: kind,
		Server: func(_ *testing.T, data []byte) http.Handler {
			commit.Do(func() { repo.Commit("refs/heads/main", gittest.File{Path: "envs/prod.tfstate", Data: string(data)}) })
			return httputil.NewSingleHostReverseProxy(to)
		},
		Place: func(t *testing.T, f *faults.Front) sourcetest.Place {
			patience = f.Patience
			ca := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(ca, []byte(f.CA), 0o600); err != nil {
				t.Fatal(err)
			}
			var blocks []*unstable.Entry
			for _, b := range []map[string]cty.Value{
				{"url": cty.StringVal(f.URL), "username": cty.StringVal("alice"), "password": cty.StringVal(canary)},
				{"url": cty.StringVal(f.Other)},
			} {
				b["ca_file"] = cty.StringVal(ca)
				blocks = append(blocks, block("credentials.git", b))
			}
			return sourcetest.Place{
				Attrs:    attrs(f.URL + "/acme/infra.git"),
				Settings: source.Settings{Credentials: source.Credentials{Entries: blocks}},
				Secrets:  []string{canary, basicAuth("alice", canary)},
			}
		},
		Reads: func(r *http.Request, _ []byte) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-upload-pack")
		},
		Sees: map[string]string{
			"reset in the body":        brokeOff,
			"reset in the body, once":  brokeOff,
			"closed without an answer": brokeOff,
			"short body":               brokeOff,
			"not HTTP":                 "HTTP/0.9",
			"malformed status line":    "git failed. git said: ",
			"malformed header":         "git failed. git said: ",

			"stall":             stopped,
			"stall in the body": stopped,
			"slow drip":         stopped,

			"401 that names another host":    rejected,
			"403":                            rejected,
			"500, once":                      unavailable,
			"500":                            unavailable,
			"503, once":                      unavailable,
			"503 with Retry-After, once":     unavailable,
			"429 with Retry-After, once":     unavailable,
			"429 with Retry-After":           unavailable,
			"429 with Retry-After of a year": unavailable,
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "git does not wait as it is asked to",
		},
	}
}

// unpacked is a request's body: git packs long ones.
func unpacked(body []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return body
	}
	return data
}
