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
const noAccess = "unable to access 'https://127.0.0.1:"

// explained is what git's messages of faults are explained by.
type explained struct {
	unreachable, notAccepted, unavailable, brokeOff, stopped, redirects, nothing, otherTransport, outOfMemory string
}

func newExplained(t *testing.T) explained {
	t.Helper()
	of := func(message string) string {
		for _, a := range advice {
			if a.when.MatchString(message) {
				return a.then(&repository{access: &access{caFile: "ca.pem"}, others: []string{}}, ref{name: "main"}).Error()
			}
		}
		t.Fatalf("nothing explains %q", message)
		return ""
	}
	return explained{
		unreachable:    of("failed to connect"),
		notAccepted:    of("server certificate verification failed"),
		unavailable:    of("returned error: 503"),
		brokeOff:       of("early EOF"),
		stopped:        of("Operation too slow"),
		redirects:      of("requested URL returned error: 301"),
		nothing:        of("couldn't find remote ref"),
		otherTransport: of("transport 'http' not allowed"),
		outOfMemory:    of("fatal: Out of memory"),
	}
}

// TestFaultsOfRefs has the answers go wrong that say what there is.
//
// Promise: Cost
func TestFaultsOfRefs(t *testing.T) {
	long(t)
	t.Parallel()
	h, is := faultHarness(t), newExplained(t)
	h.At = func(r *http.Request, _ []byte) bool { return strings.HasSuffix(r.URL.Path, "/info/refs") }
	maps.Copy(h.Sees, map[string]string{
		"nobody listens":              is.unreachable,
		"reset at once":               is.unreachable + " | " + is.brokeOff,
		"Content-Length too large":    is.brokeOff,
		"Content-Length too small":    "expected flush after capabilities",
		"endless header":              noAccess,
		"endless gzip of nothing":     noAccess,
		"nested a million deep":       "bad line length character",
		"301 that names another host": is.redirects,
		"gzip bomb":                   noAccess,
		"another service":             is.nothing, // what git's protocol without a service comes to
		"redirect loop":               "redirects followed",
		"redirect to another origin":  errRejected.Error(),
		"redirect to plain http":      is.otherTransport,

		"certificate expired":                 is.notAccepted,
		"certificate of another host":         is.notAccepted,
		"certificate of an unknown authority": is.notAccepted,
		"TLS 1.0":                             noAccess,
		"no TLS":                              noAccess,
		"handshake breaks off":                noAccess,
	})
	if runtime.GOOS == "linux" {
		h.Sees["endless body"] = is.outOfMemory
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
	h, is := faultHarness(t), newExplained(t)
	h.Few = true
	h.At = func(_ *http.Request, body []byte) bool {
		return bytes.Contains(unpacked(body), []byte("command=fetch"))
	}
	maps.Copy(h.Sees, map[string]string{
		"Content-Length too large":    faults.Works, // a pack has an end of its own
		"Content-Length too small":    is.brokeOff,
		"endless body":                is.brokeOff,
		"endless header":              "git failed",
		"endless gzip of nothing":     "git failed",
		"nested a million deep":       is.brokeOff,
		"301 that names another host": is.redirects,
		"gzip bomb":                   is.brokeOff,
		"another service":             is.brokeOff,
		"redirect loop":               is.redirects,
		"redirect to another origin":  is.redirects,
		"redirect to plain http":      is.redirects,
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
	repo, commit, is := gittest.NewRepo(t, gittest.RepoOptions{}), new(sync.Once), newExplained(t)
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
			"reset in the body":        is.brokeOff,
			"reset in the body, once":  is.brokeOff,
			"closed without an answer": is.brokeOff,
			"short body":               is.brokeOff,
			"not HTTP":                 "HTTP/0.9",
			"malformed status line":    "git failed. git said: ",
			"malformed header":         "git failed. git said: ",

			"stall":             is.stopped,
			"stall in the body": is.stopped,
			"slow drip":         is.stopped,

			"401 that names another host":    errRejected.Error(),
			"403":                            errRejected.Error(),
			"500, once":                      is.unavailable,
			"500":                            is.unavailable,
			"503, once":                      is.unavailable,
			"503 with Retry-After, once":     is.unavailable,
			"429 with Retry-After, once":     is.unavailable,
			"429 with Retry-After":           is.unavailable,
			"429 with Retry-After of a year": is.unavailable,
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
