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
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	gcssource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/careful"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

const bucketOf = "states"

func TestMain(m *testing.M) {
	nettest.ForgetMachine("GOOGLE_", "CLOUDSDK_", "GCE_", "STORAGE_")
	os.Exit(m.Run())
}

type attrs map[string]cty.Value

// with returns a copy with another argument.
func (a attrs) with(name, value string) attrs {
	more := attrs{name: cty.StringVal(value)}
	for name, value := range a {
		if _, there := more[name]; !there {
			more[name] = value
		}
	}
	return more
}

// service is Cloud Storage, and the block that leads there.
type service struct {
	*gcstest.Service
	block   attrs
	environ map[string]string
	network gcssource.Network
	mayBe   atomic.Pointer[func(http.ResponseWriter, *http.Request) bool] // it may be exchanged at any time
}

// before has a function see each request first. If it returns true, it has answered.
func (s *service) before(answers func(http.ResponseWriter, *http.Request) bool) {
	s.mayBe.Store(&answers)
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if mayBe := s.mayBe.Load(); mayBe == nil || !(*mayBe)(w, r) {
		s.Service.ServeHTTP(w, r)
	}
}

func newService() *service {
	return &service{
		Service: gcstest.New(bucketOf), environ: map[string]string{},
		block: attrs{}.with("bucket", bucketOf).with("prefix", "net").with("access_token", gcstest.Token),
		network: gcssource.Network{Patience: web.Patience{
			Timeout: time.Minute, Tries: 3, WaitMin: time.Millisecond, WaitMax: 10 * time.Millisecond,
		}},
	}
}

// serve starts a service that is not Google's.
func serve(t *testing.T) *service {
	t.Helper()
	s := newService()
	s.block = s.block.with("storage_custom_endpoint", nettest.Serve(t, s)+"/storage/v1/")
	return s
}

// atGoogle starts a service at Google's own address.
func atGoogle(t *testing.T) *service {
	t.Helper()
	s := newService()
	internet := cloudtest.New(t, map[string]http.Handler{"storage.googleapis.com": s})
	s.environ["HTTPS_PROXY"], s.network.Roots = internet.Proxy, web.Authorities([]byte(internet.CA))
	return s
}

func (s *service) open(t *testing.T, b attrs) (*bucket, error) {
	t.Helper()
	kind := KindOver(s.network)
	v, err := unstable.NewEntry("backend.gcs", kind.Table, b).Decode(kind.Table, func(name string) (string, bool) {
		value, ok := s.environ[name]
		return value, ok
	})
	if err != nil {
		return nil, err
	}
	opened, err := kind.Open(store.Settings{Values: v, Limit: 1 << 30})
	if err != nil {
		return nil, err
	}
	own, ok := opened.(*bucket)
	if !ok {
		t.Fatalf("the store is a %T", opened)
	}
	return own, nil
}

func (s *service) at(t *testing.T, b attrs) *state {
	t.Helper()
	opened, err := s.open(t, b)
	must(t, err)
	opened.part = 1 << 20
	named, err := opened.State(opened.String("prefix"))
	must(t, err)
	own, ok := named.(*state)
	if !ok {
		t.Fatalf("the state is a %T", named)
	}
	return own
}

// carefully returns a state as wrap uses it.
func carefully(s *state) store.State { return careful.New(s, s.Properties()) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lie has the service say yes to one kind of request about a state, and do nothing.
func (s *service) lie(what storetest.Lie, bucket, object string) {
	s.before(func(w http.ResponseWriter, r *http.Request) bool {
		name, method := object, http.MethodPost
		switch what {
		case storetest.LieOfLock:
			name = strings.TrimSuffix(object, stateSuffix) + objects.LockSuffix
		case storetest.LieOfRemove:
			method = http.MethodDelete
		case storetest.LieOfWrite:
		}
		isThis := r.FormValue("name") == name && strings.HasPrefix(r.URL.Path, "/upload/storage/v1/b/"+bucket+"/") ||
			strings.HasSuffix(r.URL.Path, "/b/"+bucket+"/o/"+name)
		if r.Method != method || !isThis {
			return false
		}
		nettest.Reply(w, http.StatusOK, map[string]any{"generation": "1234567890"})
		return true
	})
}

// TestStore runs the suite of every store, on Google's own servers and on others.
//
// Promise: States in stores (the suite of every store)
func TestStore(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(*testing.T) *service
		set   func(*gcstest.Service)
	}{
		"Google": {serve: atGoogle},
		"Google, who may only use objects": {serve: atGoogle, set: func(s *gcstest.Service) {
			s.Permissions = []string{"storage.objects.get", "storage.objects.list", "storage.objects.create", "storage.objects.delete"}
		}},
		"another":                      {serve: serve},
		"another that tells little":    {serve: serve, set: func(s *gcstest.Service) { s.Vague = true }},
		"DELETE ignores the condition": {serve: serve, set: func(s *gcstest.Service) { s.Ignores = gcstest.OnDelete }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, n := c.serve(t), 0
			if c.set != nil {
				c.set(s.Service)
			}
			isGoogle := s.network.Roots != nil
			storetest.Run(t, storetest.Harness{
				Properties: store.Properties{HasLocks: true}, Renames: true, Huge: name == "Google" && testkit.Rounds(10) > 1,
				Place: func(t *testing.T, name string) storetest.Place {
					t.Helper()
					n++
					own, prefix := fmt.Sprint("bucket", n), "net/"+name
					object := prefix + "/default.tfstate"
					s.Create(own)
					b := s.block.with("bucket", own).with("prefix", prefix)
					p := storetest.Place{
						Open:    func(t *testing.T) store.State { t.Helper(); return s.at(t, b) },
						Put:     func(_ *testing.T, data []byte) { s.Put(own, object, gcstest.Object{Data: data}) },
						Lose:    func(*testing.T) { s.Delete(own, prefix+"/default.tflock") },
						Secrets: []string{gcstest.Token},
					}
					if !isGoogle { // others may not do what they say
						p.Lie = func(_ *testing.T, what storetest.Lie) { s.lie(what, own, object) }
					}
					return p
				},
			})
		})
	}
}

// said returns a context that collects what a user is told.
func said(t *testing.T) (context.Context, *[]string) {
	t.Helper()
	var texts []string
	return notice.With(t.Context(), func(text string) { texts = append(texts, text) }), &texts
}

// TestForm tests that the objects, their names and their properties are those of both CLIs.
func TestForm(t *testing.T) {
	t.Parallel()
	s := serve(t)
	key := bytes.Repeat([]byte{7}, 32)
	for name, b := range map[string]attrs{
		"KMS":           s.block.with("kms_encryption_key", "projects/p/k"),
		"a key of ours": s.block.with("encryption_key", base64.StdEncoding.EncodeToString(key)).with("prefix", "/net/"),
	} {
		state := s.at(t, b)
		must(t, state.Lock(t.Context(), storetest.Lock("<1>")))
		const want = `{"ID":"\u003c1\u003e","Operation":"OperationTypeApply","Info":"","Who":"\u003c1\u003e@host","Version":"1.12.6",` +
			`"Created":"2026-11-27T00:00:00Z","Path":"gs://states/net/default.tflock"}`
		lock := s.Get(bucketOf, "net/default.tflock")
		if string(lock.Data) != want || lock.KMS != "" || lock.Key != nil {
			t.Errorf("%s: the lock is %s, with the keys %q and %q", name, lock.Data, lock.KMS, lock.Key)
		}
		for _, size := range []int{100, 3<<20 + 1} { // in one request, and in parts
			data := bytes.Repeat([]byte("x"), size)
			_, read, err := state.Read(t.Context())
			must(t, err)
			_, err = state.Write(t.Context(), data, read)
			must(t, err)
			there := s.Get(bucketOf, "net/default.tfstate")
			if !bytes.Equal(there.Data, data) || (name == "KMS") != (there.KMS == "projects/p/k") || (name == "KMS") != (there.Key == nil) {
				t.Errorf("%s: %d bytes are there, with the keys %q and %q", name, len(there.Data), there.KMS, there.Key)
			}
			if got, _, err := state.Read(t.Context()); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: read %d bytes, %v", name, len(got), err)
			}
		}
		must(t, state.Unlock(t.Context(), "<1>"))
		_, read, err := state.Read(t.Context())
		must(t, err)
		must(t, state.Remove(t.Context(), read))
	}
}

// TestNames tests that people name a lock by its generation, as both CLIs do.
func TestNames(t *testing.T) {
	t.Parallel()
	s := serve(t)
	state, other := s.at(t, s.block), s.at(t, s.block)
	must(t, state.Lock(t.Context(), storetest.Lock("uuid")))
	generation := fmt.Sprint(s.Get(bucketOf, "net/default.tflock").Generation)
	held, ok := errors.AsType[*store.HeldError](other.Lock(t.Context(), storetest.Lock("2")))
	if !ok || held.By.ID != generation || !strings.Contains(string(held.By.JSON()), generation) {
		t.Errorf("someone else sees %v", held)
	}
	if by, err := state.Holder(t.Context()); err != nil || by.ID != generation {
		t.Errorf("the holder is %v, %v", by, err)
	}
	if got := state.NameOf("uuid"); got != generation {
		t.Errorf("our lock is called %s", got)
	}
	if got := other.NameOf("uuid"); got != "uuid" {
		t.Errorf("a lock of others is called %s", got)
	}
	must(t, other.Unlock(t.Context(), generation))
	if err := state.Unlock(t.Context(), "uuid"); !errors.Is(err, store.ErrMissing) {
		t.Errorf("got %v", err)
	}
}

// TestConditions tests that a service which ignores conditions is found out before anything depends on it, and that
// the lock of someone else stays.
//
// Promise: States in stores
func TestConditions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ignores gcstest.Condition
		works   bool
	}{
		"kept": {works: true}, "create": {ignores: gcstest.OnCreate}, "replace": {ignores: gcstest.OnReplace},
		"delete": {ignores: gcstest.OnDelete, works: true}, "never met": {ignores: gcstest.NeverMet},
	} {
		s := serve(t)
		s.Ignores = c.ignores
		free, held := s.at(t, s.block), s.at(t, s.block.with("prefix", "held"))
		foreign := storetest.Lock("4711").JSON()
		s.Put(bucketOf, "held/default.tflock", gcstest.Object{Data: foreign})
		err := held.Lock(t.Context(), storetest.Lock("1"))
		if by, ok := errors.AsType[*store.HeldError](err); !ok || by.By.Who != "4711@host" {
			t.Errorf("%s, held: %v", name, err)
		}
		if got := s.Get(bucketOf, "held/default.tflock"); got == nil || !bytes.Equal(got.Data, foreign) {
			t.Errorf("%s: the lock of someone else is %v", name, got)
		}
		err = errors.Join(free.Ready(t.Context()), free.Lock(t.Context(), storetest.Lock("1")))
		_, errWrite := free.Write(t.Context(), storetest.State(1), "")
		if (err == nil) != c.works || (errWrite == nil) != c.works {
			t.Errorf("%s: %v, %v", name, err, errWrite)
		}
		if !c.works && (s.Get(bucketOf, "net/default.tflock") != nil || s.Get(bucketOf, "net/default.tfstate") != nil) {
			t.Errorf("%s: something was written", name)
		}
	}
}

// TestIgnoredDelete tests that an ignored condition of a DELETE costs a lock at most, and never a state.
//
// Promise: States in stores
func TestIgnoredDelete(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.Ignores = gcstest.OnDelete
	state := s.at(t, s.block)
	must(t, state.Lock(t.Context(), storetest.Lock("1")))
	read, err := state.Write(t.Context(), storetest.State(1), "")
	must(t, err)
	s.Put(bucketOf, "net/default.tfstate", gcstest.Object{Data: storetest.State(2)})
	if err := state.Remove(t.Context(), read); !errors.Is(err, store.ErrChanged) {
		t.Errorf("the state of someone else: %v", err)
	}
	if got := s.Get(bucketOf, "net/default.tfstate"); got == nil || !bytes.Equal(got.Data, storetest.State(2)) {
		t.Errorf("there is %v", got)
	}
	var asked atomic.Int32
	s.before(func(w http.ResponseWriter, r *http.Request) bool { // an answer is lost, and someone takes the lock at once
		if r.Method != http.MethodDelete || asked.Add(1) > 1 {
			return false
		}
		s.Service.ServeHTTP(httptest.NewRecorder(), r)
		s.Put(bucketOf, "net/default.tflock", gcstest.Object{Data: storetest.Lock("foreign").JSON()})
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	must(t, state.Unlock(t.Context(), "1"))
	if got := s.Get(bucketOf, "net/default.tflock"); got == nil || asked.Load() != 1 {
		t.Errorf("after %d requests, the lock of someone else is %v", asked.Load(), got)
	}
}

// loses has answers to some requests be lost after the service has done what was asked.
func (s *service) loses(is func(r *http.Request) bool, every bool) *atomic.Int32 {
	lost := new(atomic.Int32)
	s.before(func(_ http.ResponseWriter, r *http.Request) bool {
		if !is(r) || !every && lost.Load() > 0 {
			return false
		}
		lost.Add(1)
		s.Service.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	return lost
}

// TestAmbiguous tests that a request which was done, and whose answer was lost, is a success, whether the client
// repeats it or gives up.
//
// Promise: States in stores
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	upload := func(object string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.Method == http.MethodPost && r.FormValue("name") == object }
	}
	part := func(position string) func(*http.Request) bool {
		return func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.HasPrefix(r.Header.Get("Content-Range"), position)
		}
	}
	large := bytes.Repeat(storetest.State(1), 3<<20/len(storetest.State(1)))
	for name, c := range map[string]struct {
		is   func(*http.Request) bool
		data []byte
	}{
		"lock": {is: upload("net/default.tflock")}, "write": {is: upload("net/default.tfstate")},
		"unlock":         {is: func(r *http.Request) bool { return r.Method == http.MethodDelete }},
		"first part":     {is: part("bytes 0-"), data: large},
		"last part":      {is: part("bytes 2097152-"), data: large},
		"look at a part": {is: func(r *http.Request) bool { return part("bytes 1048576-")(r) || part("bytes *")(r) }, data: large},
		"begin of parts": {is: upload("net/default.tfstate"), data: large},
	} {
		for _, every := range []bool{false, true} {
			for where, serve := range map[string]func(*testing.T) *service{"Google": atGoogle, "another": serve} {
				t.Run(fmt.Sprintf("%s, all %t, %s", name, every, where), func(t *testing.T) {
					t.Parallel()
					s := serve(t)
					data := c.data
					if data == nil {
						data = storetest.State(1)
					}
					fails := every && data != nil && c.data != nil && name != "last part" && name != "first part"
					lost := s.loses(c.is, every)
					state := carefully(s.at(t, s.block))
					must(t, state.Lock(t.Context(), storetest.Lock("1")))
					_, err := state.Write(t.Context(), data, "")
					if (err != nil) != fails {
						t.Errorf("written: %v", err)
					}
					must(t, state.Unlock(t.Context(), "1"))
					there := s.Get(bucketOf, "net/default.tfstate")
					if lost.Load() == 0 || s.Get(bucketOf, "net/default.tflock") != nil || (there == nil) != fails ||
						there != nil && !bytes.Equal(there.Data, data) {
						t.Errorf("lost %d answers", lost.Load())
					}
				})
			}
		}
	}
}
