package gcs

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// TestRulesOfBuckets tests that a bucket which lets no lock be deleted is found out: before anything is stored if the
// account may read the rules of the bucket, and else by the answer to the lock.
//
// Promise: States in stores
func TestRulesOfBuckets(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*gcstest.Service){
		"retention": func(s *gcstest.Service) { s.Retention = 3600 }, "hold": func(s *gcstest.Service) { s.DefaultHold = true },
	} {
		for _, reads := range []bool{true, false} {
			s := atGoogle(t)
			set(s.Service)
			if !reads {
				s.Permissions = roleOfDocumentation(t)
			}
			state := s.at(t, s.block)
			ready := state.Ready(t.Context())
			locked := carefully(state).Lock(t.Context(), storetest.Lock("1"))
			if (ready != nil) != reads || locked == nil || !strings.Contains(locked.Error(), name) {
				t.Errorf("%s, reads the rules %t: %v, %v", name, reads, ready, locked)
			}
			if lock := s.Get(bucketOf, "net/default.tflock"); (lock == nil) != reads {
				t.Errorf("%s, reads the rules %t: the lock is %v", name, reads, lock)
			}
		}
	}
	s := atGoogle(t) // someone has put a hold on one object
	s.Put(bucketOf, "net/default.tfstate", gcstest.Object{Data: storetest.State(1), Held: true})
	state := s.at(t, s.block)
	_, read, err := state.Read(t.Context())
	must(t, err)
	if _, err := state.Write(t.Context(), storetest.State(2), read); err == nil || !strings.Contains(err.Error(), "hold") {
		t.Errorf("got %v", err)
	}
}

// roleOfDocumentation returns the permissions of the role in the documentation.
func roleOfDocumentation(t *testing.T) (permissions []string) {
	t.Helper()
	role, err := os.ReadFile("../../../examples/stores/gcs/role.yaml")
	must(t, err)
	for line := range strings.Lines(string(role)) {
		if permission, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			permissions = append(permissions, permission)
		}
	}
	return permissions
}

// TestRole tests that the role of the documentation is enough, and that the error names each right that is missing.
//
// Promise: States in stores
func TestRole(t *testing.T) {
	t.Parallel()
	role := roleOfDocumentation(t)
	for where, serve := range map[string]func(*testing.T) *service{"Google": atGoogle, "another": serve} {
		s := serve(t)
		s.Permissions = role
		state := s.at(t, s.block)
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		_, version, err := state.Read(t.Context())
		must(t, err)
		version, err = state.Write(t.Context(), storetest.State(1), version)
		must(t, err)
		_, err = state.Write(t.Context(), storetest.State(2), version)
		must(t, err)
		must(t, state.Unlock(t.Context(), "1"))
		opened, err := s.open(t, s.block)
		must(t, err)
		_, err = opened.List(t.Context(), "net/")
		must(t, err)
		if kept, _, err := state.Versions(t.Context(), 10); err != nil || len(kept) != 2 {
			t.Errorf("%s: the versions are %v, %v", where, kept, err)
		}
		for right, do := range map[string]func() error{
			"storage.objects.get":    func() error { _, _, err := state.Read(t.Context()); return err },
			"storage.objects.create": func() error { return s.at(t, s.block).Lock(t.Context(), storetest.Lock("2")) },
			"storage.objects.delete": func() error {
				s.Change(func(*gcstest.Service) { s.Permissions = role })
				must(t, state.Lock(t.Context(), storetest.Lock("3")))
				s.Change(func(*gcstest.Service) { s.Permissions = without(role, "storage.objects.delete") })
				err := state.Unlock(t.Context(), "3")
				s.Delete(bucketOf, "net/default.tflock")
				return err
			},
			"storage.objects.list": func() error { _, err := opened.List(t.Context(), "net/"); return err },
		} {
			s.Change(func(*gcstest.Service) { s.Permissions = without(role, right) })
			if err := do(); !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), right) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s, %s: %v", where, right, err)
			}
		}
	}
}

func without(all []string, one string) (rest []string) {
	for _, name := range all {
		if name != one {
			rest = append(rest, name)
		}
	}
	return rest
}

// TestList tests that List names all states in a bucket, and nothing else, over several pages.
func TestList(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.PageSize = 2
	for _, name := range []string{"a/default.tfstate", "a/default.tflock", "a/default.tflock-proof", "a/dev.tfstate", "a/README",
		"a/b/default.tfstate", "c/default.tfstate", "a/gone.tfstate", "net.tfstate"} {
		s.Put(bucketOf, name, gcstest.Object{Data: storetest.State(1)})
	}
	s.Delete(bucketOf, "a/gone.tfstate")
	opened, err := s.open(t, s.block)
	must(t, err)
	names, err := opened.List(t.Context(), "a/")
	if got := strings.Join(names, " "); err != nil || got != "a/b/default.tfstate a/default.tfstate a/dev.tfstate" {
		t.Errorf("got %q, %v", got, err)
	}
	named, err := opened.State("a/dev.tfstate")
	must(t, err)
	if got := named.String(); !strings.HasPrefix(got, "gs://states/a/dev.tfstate at http://127.0.0.1:") {
		t.Errorf("it is called %s", got)
	}
	must(t, named.Lock(t.Context(), storetest.Lock("1")))
	if s.Get(bucketOf, "a/dev.tflock") == nil {
		t.Error("the lock is elsewhere")
	}
	opened, err = s.open(t, s.block.with("prefix", "net.tfstate")) // which is the name of a state as well
	must(t, err)
	if named, err := opened.State("net.tfstate"); err != nil || !strings.HasPrefix(named.String(), "gs://states/net.tfstate/default.tfstate") {
		t.Errorf("got %v, %v", named, err)
	}
	if _, err := opened.List(t.Context(), ""); err == nil {
		t.Error("one name stands for two states")
	}
}

// TestBlocks tests that arguments that cannot be meant are refused before anything is sent.
func TestBlocks(t *testing.T) {
	t.Parallel()
	s := newService()
	const secret = "canary"
	for name, b := range map[string]attrs{
		"both keys":        s.block.with("kms_encryption_key", "k").with("encryption_key", strings.Repeat("A", 43)+"="),
		"no key":           s.block.with("encryption_key", "AAAA"),
		"a URL of buckets": s.block.with("bucket", "gs://states"),
		"a long prefix":    s.block.with("prefix", strings.Repeat("p", 1010)),
		"a control code":   s.block.with("prefix", "a\x1bb"),
		"an endpoint":      s.block.with("storage_custom_endpoint", "ftp://u:"+secret+"@x"),
		"no bucket":        {"prefix": cty.StringVal("a")},
	} {
		opened, err := s.open(t, b)
		if err == nil {
			_, err = opened.State(opened.String("prefix"))
		}
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	const own = "gs://states/net/default.tfstate"
	for name, c := range map[string]struct{ argument, value, want string }{
		"Google":             {"bucket", bucketOf, own},
		"no prefix":          {"prefix", "/", "gs://states/default.tfstate"},
		"a private endpoint": {"storage_custom_endpoint", "https://storage-x.p.googleapis.com/storage/v1/b", own},
		"another cloud":      {"universe_domain", "example.cloud", own},
		"a server":           {"storage_custom_endpoint", "https://gcs.example.com", own + " at https://gcs.example.com"},
		"almost Google":      {"storage_custom_endpoint", "https://evilgoogleapis.com", own + " at https://evilgoogleapis.com"},
		"without TLS":        {"storage_custom_endpoint", "http://storage.googleapis.com", own + " at http://storage.googleapis.com"},
	} {
		if got := s.at(t, s.block.with(c.argument, c.value)).String(); got != c.want {
			t.Errorf("%s: it is called %s", name, got)
		}
	}
}

// TestVariables tests that no variable leads the token of a block elsewhere.
//
// Promise: Where secrets go (STORAGE_EMULATOR_HOST)
func TestVariables(t *testing.T) {
	var arrived nettest.Log[string]
	thief := nettest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived.Note(r.RequestURI) }))
	for _, name := range []string{"STORAGE_EMULATOR_HOST", "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_STORAGE_CUSTOM_ENDPOINT"} {
		s := atGoogle(t)
		s.environ[name] = thief
		t.Setenv(name, thief)
		opened, err := s.open(t, s.block)
		if (err == nil) != (name == "STORAGE_EMULATOR_HOST") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			named, err := opened.State("net")
			must(t, err)
			must(t, named.Lock(t.Context(), storetest.Lock("1")))
		}
	}
	if got := arrived.All(); len(got) > 0 {
		t.Errorf("another server got %q", got)
	}
}

// TestSession tests that a service which leads an upload to another server gets nobody's state there.
//
// Promise: Where secrets go
func TestSession(t *testing.T) {
	t.Parallel()
	var arrived nettest.Log[string]
	thief := nettest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived.Note(r.RequestURI) }))
	for _, location := range []string{thief + "/upload", "", "//" + strings.TrimPrefix(thief, "http://"), "\x7f"} {
		s := serve(t)
		state := s.at(t, s.block)
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		s.before(func(w http.ResponseWriter, r *http.Request) bool {
			if r.FormValue("uploadType") != "resumable" {
				return false
			}
			w.Header().Set("Location", location)
			return true
		})
		if _, err := state.Write(t.Context(), make([]byte, 2<<20), ""); err == nil {
			t.Errorf("%q: the state was sent", location)
		}
	}
	if got := arrived.All(); len(got) > 0 {
		t.Errorf("another server got %q", got)
	}
}

// TestScope tests that a token of the store may also write.
func TestScope(t *testing.T) {
	t.Parallel()
	var sent atomic.Value
	server := nettest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
	}))
	s := newService()
	b := s.block.with("credentials", cloudtest.NewServiceAccount(t).JSON).with("storage_custom_endpoint", server)
	delete(b, "access_token")
	if _, _, err := s.at(t, b).Read(t.Context()); err == nil {
		t.Fatal("the state was read")
	}
	token, _ := sent.Load().(string)
	parts := strings.Split(strings.TrimPrefix(token, "Bearer "), ".")
	if len(parts) != 3 {
		t.Fatalf("sent %.30q", token)
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || !strings.Contains(string(claims), writeScope) {
		t.Errorf("claims: %s, %v", claims, err)
	}
}

// TestBusy tests services that answer later, or not at all.
func TestBusy(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusRequestTimeout} {
		for _, serve := range []func(*testing.T) *service{atGoogle, serve} {
			s := serve(t)
			asked := map[string]int{}
			s.before(func(w http.ResponseWriter, r *http.Request) bool {
				asked[r.Method+r.RequestURI]++
				busy := asked[r.Method+r.RequestURI] == 1 && r.Method != http.MethodGet
				if busy {
					w.WriteHeader(status)
				}
				return busy
			})
			state := s.at(t, s.block)
			must(t, state.Lock(t.Context(), storetest.Lock("1")))
			_, err := state.Write(t.Context(), storetest.State(1), "")
			must(t, err)
			must(t, state.Unlock(t.Context(), "1"))
			if s.Get(bucketOf, "net/default.tflock") != nil {
				t.Errorf("%d: the lock is there", status)
			}
		}
	}
	s := serve(t)
	state := s.at(t, s.block)
	s.before(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	for name, err := range map[string]error{
		"read": func() error { _, _, err := state.Read(t.Context()); return err }(), "lock": state.Lock(t.Context(), storetest.Lock("1")),
	} {
		if _, ok := errors.AsType[*store.UnansweredError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.before(func(_ http.ResponseWriter, r *http.Request) bool { // the lock is there, and its requester has gone
		if r.FormValue("name") == "net/default.tflock" {
			s.Service.ServeHTTP(httptest.NewRecorder(), r)
			cancel()
			panic(http.ErrAbortHandler)
		}
		return false
	})
	if err := state.Lock(ctx, storetest.Lock("1")); !errors.Is(err, context.Canceled) || s.Get(bucketOf, "net/default.tflock") != nil {
		t.Errorf("gone: %v; the lock is %v", err, s.Get(bucketOf, "net/default.tflock"))
	}
}

// TestParts tests uploads in parts that do not go on as they should.
func TestParts(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("0123456789abcdef"), 3<<16)
	for name, c := range map[string]struct {
		answer func(n int, w http.ResponseWriter, r *http.Request) bool
		works  bool
	}{
		"a part is taken in halves": {works: true, answer: func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.Header.Get("Content-Range"), "bytes 0-1048575/") {
				r.Header.Set("Content-Range", "bytes 0-524287/3145728")
				r.Body = http.MaxBytesReader(nil, r.Body, 512<<10)
			}
			return false
		}},
		"nothing ever arrives": {answer: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusPermanentRedirect)
			return true
		}},
		"more than all has arrived": {answer: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Range", "bytes=0-99999999")
			w.WriteHeader(http.StatusPermanentRedirect)
			return true
		}},
		"the session is lost": {answer: func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n > 1 {
				w.WriteHeader(http.StatusGone)
			}
			return n > 1
		}},
		"the object is another one in the end": {answer: func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n > 2 {
				w.WriteHeader(http.StatusPreconditionFailed)
			}
			return n > 2
		}},
		"no generation": {answer: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(w, "{}")
			return true
		}},
		"no JSON": {answer: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(w, "<html>")
			return true
		}},
	} {
		s, n := serve(t), 0
		state := s.at(t, s.block)
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		s.before(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut {
				return false
			}
			n++
			return c.answer(n, w, r)
		})
		_, err := state.Write(t.Context(), data, "")
		there := s.Get(bucketOf, "net/default.tfstate")
		if (err == nil) != c.works || c.works != (there != nil) || there != nil && !bytes.Equal(there.Data, data) {
			t.Errorf("%s: %v after %d requests", name, err, n)
		}
	}
}

// TestWithoutEncryption tests that a plain http connection to another machine is warned of, once.
func TestWithoutEncryption(t *testing.T) {
	t.Parallel()
	s := newService()
	s.environ["HTTP_PROXY"] = nettest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RequestURI = r.URL.RequestURI()
		s.ServeHTTP(w, r)
	}))
	ctx, texts := said(t)
	state := s.at(t, s.block.with("storage_custom_endpoint", "http://gcs.example.com/storage/v1/"))
	must(t, state.Lock(ctx, storetest.Lock("1")))
	must(t, state.Unlock(ctx, "1"))
	if len(*texts) != 1 || !strings.HasPrefix((*texts)[0], "warning: ") {
		t.Errorf("it says %q", *texts)
	}
}

// TestSoftDeleted tests that objects which were deleted, and which the bucket keeps for a time, are not there.
func TestSoftDeleted(t *testing.T) {
	t.Parallel()
	s := atGoogle(t)
	for range 2 {
		state := s.at(t, s.block)
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		read, err := state.Write(t.Context(), storetest.State(1), "")
		must(t, err)
		must(t, state.Remove(t.Context(), read))
		if data, version, err := state.Read(t.Context()); err != nil || data != nil || version != "" {
			t.Errorf("read %q, %q, %v", data, version, err)
		}
		must(t, state.Unlock(t.Context(), "1"))
	}
}

// TestEmpty tests that an empty object is no state, and is replaced.
func TestEmpty(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.Put(bucketOf, "net/default.tfstate", gcstest.Object{})
	state := s.at(t, s.block)
	data, version, err := state.Read(t.Context())
	if err != nil || data != nil || version == "" {
		t.Fatalf("read %q, %q, %v", data, version, err)
	}
	if _, err := state.Write(t.Context(), storetest.State(1), ""); !errors.Is(err, store.ErrChanged) {
		t.Errorf("got %v", err)
	}
	_, err = state.Write(t.Context(), storetest.State(1), version)
	must(t, err)
}

// TestRequests counts the requests of a run without changes: the rules of the bucket, the lock, the state, and a look
// and a deletion in the end; on another server than Google's, looks and the proof are added.
func TestRequests(t *testing.T) {
	t.Parallel()
	for where, c := range map[string]struct {
		serve func(*testing.T) *service
		want  int
	}{"Google": {atGoogle, 5}, "another": {serve, 5 + 2 + 4}} {
		s := c.serve(t)
		s.Put(bucketOf, "net/default.tfstate", gcstest.Object{Data: storetest.State(1)})
		state := s.at(t, s.block)
		must(t, state.Ready(t.Context()))
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		_, _, err := state.Read(t.Context())
		must(t, err)
		must(t, state.Unlock(t.Context(), "1"))
		if got := s.Requests(); len(got) != c.want {
			t.Errorf("%s: %d requests: %q", where, len(got), got)
		}
	}
}

// TestShared tests which former backends have the same state.
func TestShared(t *testing.T) {
	t.Parallel()
	s := newService()
	s.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"] = "https://gcs.example.com/storage/v1/"
	elsewhere := s.block.with("storage_custom_endpoint", "https://GCS.example.com/storage/v1/b")
	google := newService()
	theirs := func(more ...string) map[string]any {
		arguments := map[string]any{"bucket": bucketOf, "prefix": "net"}
		for i := 0; i < len(more); i += 2 {
			arguments[more[i]] = more[i+1]
		}
		return arguments
	}
	for name, c := range map[string]struct {
		kind      string
		arguments map[string]any
		same      bool
	}{
		"the same":           {"gcs", theirs("prefix", "/net/"), true},
		"a private endpoint": {"gcs", theirs("storage_custom_endpoint", "https://storage-x.p.googleapis.com"), true},
		"another bucket":     {"gcs", theirs("bucket", "other"), false},
		"another prefix":     {"gcs", theirs("prefix", ""), false},
		"another kind":       {"s3", theirs(), false},
		"another server":     {"gcs", theirs("storage_custom_endpoint", "https://gcs.example.com"), false},
		"another cloud":      {"gcs", theirs("universe_domain", "example.cloud"), false},
		"no URL":             {"gcs", theirs("storage_custom_endpoint", "ftp://x"), false},
		"no record":          {"", nil, false},
	} {
		if same, err := google.at(t, google.block).IsStateOf(c.kind, c.arguments); err != nil || same != c.same {
			t.Errorf("%s: %t, %v", name, same, err)
		}
	}
	delete(elsewhere, "access_token") // beside a secret of the block, the variable would be refused
	if same, err := s.at(t, elsewhere).IsStateOf("gcs", theirs()); err != nil || !same {
		t.Errorf("their server by a variable: %t, %v", same, err)
	}
}
