package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/careful"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/digest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

const (
	secret    = "canary-secret"
	bucketOf  = "states"
	tableName = "locks"
)

func TestMain(m *testing.M) {
	nettest.ForgetMachine("AWS_")
	os.Exit(m.Run())
}

type attrs = objecttest.Attrs

// service is S3, or what stands for it, with a table.
type service struct {
	*objecttest.Server
	table *objecttest.Table
	block attrs                                                         // that leads there
	mayBe atomic.Pointer[func(http.ResponseWriter, *http.Request) bool] // it may be exchanged at any time
}

func newStore(conditions objecttest.Conditions) *objecttest.Server {
	s := objecttest.New(bucketOf)
	s.Region, s.Conditions = "eu-west-1", conditions
	s.Keys = []aws.Credentials{{AccessKeyID: "AKIATEST", SecretAccessKey: secret}}
	s.Writable.Store(true)
	return s
}

// serve starts a store that is not AWS.
func serve(t *testing.T, conditions objecttest.Conditions) *service {
	t.Helper()
	s := &service{Server: newStore(conditions), table: &objecttest.Table{Name: tableName}}
	address := nettest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mayBe := s.mayBe.Load(); mayBe == nil || !(*mayBe)(w, r) {
			s.ServeHTTP(w, r)
		}
	}))
	s.block = block().With("use_path_style", true).With("endpoints", objecttest.Strings("s3", address, "dynamodb", s.table.Serve(t)))
	return s
}

// lie has the store say yes to one kind of request about a state, and do nothing.
func (s *service) lie(what storetest.Lie, name string) {
	yes := func(w http.ResponseWriter, r *http.Request) bool {
		key, method := name, http.MethodPut
		switch what {
		case storetest.LieOfLock:
			key += objects.LockSuffix
		case storetest.LieOfRemove:
			method = http.MethodDelete
		case storetest.LieOfWrite:
		}
		if r.Method != method || r.URL.Path != "/"+key {
			return false
		}
		w.Header().Set("ETag", `"0123456789abcdef0123456789abcdef"`)
		return true
	}
	s.mayBe.Store(&yes)
}

// weaken has the ETags of what is read from a bucket be those of a proxy that compresses answers. Those of
// writes stay as they are, because their answers have nothing to compress.
func (s *service) weaken(bucket string) {
	through := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/"+bucket+"/") {
			return false
		}
		s.ServeHTTP(weak{w}, r)
		return true
	}
	s.mayBe.Store(&through)
}

type weak struct{ http.ResponseWriter }

func (w weak) WriteHeader(status int) {
	if etag := w.Header().Get("ETag"); strings.HasPrefix(etag, `"`) {
		w.Header().Set("ETag", "W/"+etag)
	}
	w.ResponseWriter.WriteHeader(status)
}

// atAWS is a store at AWS's own addresses.
func atAWS(t *testing.T) *service {
	t.Helper()
	s := &service{Server: newStore(objecttest.Kept), table: &objecttest.Table{Name: tableName}}
	s.Hosts = []string{"s3.eu-west-1.amazonaws.com"}
	internet := cloudtest.New(t, map[string]http.Handler{
		"*.s3.eu-west-1.amazonaws.com": s.Server, "s3.eu-west-1.amazonaws.com": s.Server, "dynamodb.eu-west-1.amazonaws.com": s.table,
	})
	s.block = block().With("https_proxy", internet.Proxy).With("custom_ca_bundle", internet.CAFile)
	return s
}

func block() attrs {
	return objecttest.Strings("bucket", bucketOf, "key", "net/prod", "region", "eu-west-1", "access_key", "AKIATEST", "secret_key", secret).
		With("max_retries", 3)
}

func openAt(t *testing.T, b attrs) (store.State, error) {
	t.Helper()
	s, err := openStore(t, b)
	if err != nil {
		return nil, err
	}
	return s.State(b["key"].AsString())
}

func openStore(t *testing.T, b attrs) (store.Store, error) {
	t.Helper()
	kind := KindOver(objecttest.Hurried())
	v, err := unstable.NewEntry("backend.s3", kind.Table, b).Decode(kind.Table, nil)
	if err != nil {
		return nil, err
	}
	return kind.Open(store.Settings{Values: v, Limit: 1 << 30})
}

func at(t *testing.T, b attrs) store.State {
	t.Helper()
	s, err := openAt(t, b)
	must(t, err)
	return s
}

// carefully is a state as wrap uses it.
func carefully(s store.State) store.State {
	_, digested := s.(*digest.State)
	return careful.New(s, store.Properties{HasLocks: true, Verifies: digested})
}

// ready proves what locks and writes rely on.
func ready(ctx context.Context, s store.State) error {
	prover, ok := store.As[store.Prover](s)
	if !ok {
		return errors.New("the state cannot prove anything")
	}
	return prover.Ready(ctx)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStore: what every store must pass, on AWS and on stores that have less, with each lock.
//
// Promise: States in stores (the suite of every store)
func TestStore(t *testing.T) {
	lockfile := func(b attrs) attrs { return b }
	inTable := func(b attrs) attrs { return b.With("dynamodb_table", tableName) }
	both := func(b attrs) attrs { return inTable(b).With("use_lockfile", true) }
	other := func(c objecttest.Conditions) func(*testing.T) *service {
		return func(t *testing.T) *service { t.Helper(); return serve(t, c) }
	}
	weak := func(c objecttest.Conditions) func(*testing.T) *service {
		return func(t *testing.T) *service {
			t.Helper()
			s := serve(t, c)
			s.WeakTags = true
			return s
		}
	}
	for name, c := range map[string]struct {
		serve func(*testing.T) *service
		with  func(attrs) attrs
	}{
		"AWS":                         {atAWS, lockfile},
		"AWS, table":                  {atAWS, inTable},
		"AWS, both":                   {atAWS, both},
		"another":                     {other(objecttest.Kept), lockfile},
		"another, both":               {other(objecttest.Kept), both},
		"If-Match is ignored":         {other(objecttest.IgnoredIfs), lockfile},
		"If-Match is 501":             {other(objecttest.UnknownMatch), lockfile},
		"If-Match is 501, for DELETE": {other(objecttest.UnknownDelete), lockfile},
		"DELETE ignores If-Match":     {other(objecttest.IgnoredDelete), lockfile},
		"If-Match without quotes":     {other(objecttest.OnlyBare), lockfile},
		"the same, both":              {other(objecttest.OnlyBare), both},
		"If-Match is never met":       {other(objecttest.NeverMet), lockfile},
		"weak ETags":                  {weak(objecttest.Kept), lockfile},
		"weak ETags, never met":       {weak(objecttest.NeverMet), lockfile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			places := func(s *service, keeps bool) storetest.Places {
				return func(t *testing.T, name string) storetest.Place {
					t.Helper()
					n++
					own, key := fmt.Sprint("b", n), "net/"+name
					s.Create(own)
					if keeps {
						s.Keep(own)
					}
					b := c.with(s.block.With("bucket", own).With("key", key))
					p := storetest.Place{
						Open:    func(t *testing.T) store.State { t.Helper(); return at(t, b) },
						Put:     func(_ *testing.T, data []byte) { s.Put(own, key, data) },
						Lose:    func(*testing.T) { s.Delete(own, key+objects.LockSuffix); s.table.Delete(own + "/" + key) },
						Secrets: []string{secret},
					}
					if len(s.Hosts) == 0 { // others are not what AWS is
						p.Lie = func(_ *testing.T, what storetest.Lie) { s.lie(what, own+"/"+key) }
						p.Weaken = func(*testing.T) { s.weaken(own) }
					}
					return p
				}
			}
			_, tabled := c.with(block())["dynamodb_table"]
			storetest.Run(t, storetest.Harness{
				Properties: store.Properties{HasLocks: true, Verifies: tabled}, Place: places(c.serve(t), false),
				Versioned: places(c.serve(t), true),
				Huge:      name == "AWS" && testkit.Rounds(10) > 1, Slow: name != "AWS" && name != "another",
				RightRefused: places(serve(t, objecttest.OnlyBare), false),
			})
		})
	}
}

// said collects what a user is told.
func said(t *testing.T) (context.Context, *[]string) {
	t.Helper()
	var texts []string
	return notice.With(t.Context(), func(text string) { texts = append(texts, text) }), &texts
}

func tell(ctx context.Context, s store.State) error {
	return errors.Join(s.Lock(ctx, storetest.Lock("1")), s.Unlock(ctx, "1"))
}

// TestIgnored: a store that ignores conditions is found out before anything depends on it, and a
// foreign lock stays there.
//
// Promise: States in stores
func TestIgnored(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "a store that ignores conditions", secret, objecttest.Canary)
	s := serve(t, objecttest.Ignored)
	free, held := at(t, s.block), at(t, s.block.With("key", "net/dev"))
	foreign := storetest.Lock("4711").JSON()
	s.Put(bucketOf, "net/dev.tflock", foreign)
	err := held.Lock(t.Context(), storetest.Lock("1"))
	if !isHeldBy(err, "4711") || string(s.Get(bucketOf, "net/dev.tflock")) != string(foreign) {
		t.Errorf("held: %v", err)
	}
	for name, err := range map[string]error{
		"a lock":  free.Lock(t.Context(), storetest.Lock("1")),
		"a write": func() error { _, err := free.Write(t.Context(), storetest.State(1), ""); return err }(),
	} {
		says.Error(t, name, err)
	}
	if s.Get(bucketOf, "net/prod.tflock") != nil || s.Get(bucketOf, "net/prod") != nil {
		t.Error("something was written")
	}

	inTable := at(t, s.block.With("dynamodb_table", tableName).With("key", "net/table")) // which has the lock
	must(t, inTable.Lock(t.Context(), storetest.Lock("1")))
	_, err = inTable.Write(t.Context(), storetest.State(1), "")
	must(t, err)
	if _, err := inTable.Write(t.Context(), storetest.State(2), "other"); !errors.Is(err, store.ErrChanged) {
		t.Errorf("in a table: %v", err)
	}
	must(t, inTable.Unlock(t.Context(), "1"))

}

// TestConflictOfUnlock: a lock is given back if another request was in the way for a moment.
func TestConflictOfUnlock(t *testing.T) {
	t.Parallel()
	s := serve(t, objecttest.Kept)
	state := at(t, s.block)
	must(t, state.Lock(t.Context(), storetest.Lock("1")))
	var once atomic.Bool
	s.mayBe.Store(new(func(w http.ResponseWriter, r *http.Request) bool {
		conflicts := r.Method == http.MethodDelete && once.CompareAndSwap(false, true)
		if conflicts {
			w.WriteHeader(http.StatusConflict)
		}
		return conflicts
	}))
	must(t, state.Unlock(t.Context(), "1"))
	if lock := s.Get(bucketOf, "net/prod.tflock"); lock != nil || !once.Load() {
		t.Errorf("there is %s", lock)
	}
}

// TestReady: what a write needs is found out before anything depends on it, and named.
func TestReady(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "before a run", secret, objecttest.Canary)
	noKeys := func(w http.ResponseWriter, r *http.Request) bool { // as MinIO without a key service
		if r.Header.Get("X-Amz-Server-Side-Encryption") == "" {
			return false
		}
		w.WriteHeader(http.StatusNotImplemented)
		return true
	}
	for name, c := range map[string]struct {
		conditions objecttest.Conditions
		with       attrs
		answer     func(http.ResponseWriter, *http.Request) bool
		allows     func(action, resource string) bool
		fails      bool
	}{
		"as S3":               {},
		"ignored":             {conditions: objecttest.Ignored, fails: true},
		"ignored, in a table": {conditions: objecttest.Ignored, with: attrs{"dynamodb_table": cty.StringVal(tableName)}},
		"501":                 {conditions: objecttest.Unknown, fails: true},
		"501, in a table":     {conditions: objecttest.Unknown, with: attrs{"dynamodb_table": cty.StringVal(tableName)}},
		"501, without a lock": {conditions: objecttest.Unknown, with: attrs{"use_lockfile": cty.False}},
		"encrypt":             {with: attrs{"encrypt": cty.True}, answer: noKeys, fails: true},
		"encrypt, in a table": {with: attrs{"encrypt": cty.True, "dynamodb_table": cty.StringVal(tableName)}, answer: noKeys, fails: true},
		"no right": {with: attrs{"use_lockfile": cty.False}, fails: true, allows: func(_, resource string) bool {
			return !strings.HasSuffix(resource, "-proof")
		}},
	} {
		s := serve(t, c.conditions)
		s.Allows = c.allows
		if c.answer != nil {
			s.mayBe.Store(&c.answer)
		}
		block := s.block
		for name, value := range c.with {
			block = block.With(name, value)
		}
		state := at(t, block)
		err := ready(t.Context(), state)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			says.Error(t, name, err)
			continue
		}
		read, err := state.Write(t.Context(), storetest.State(1), "")
		if err == nil {
			_, err = state.Write(t.Context(), storetest.State(2), read)
		}
		if there := s.Get(bucketOf, "net/prod"); err != nil || string(there) != string(storetest.State(2)) {
			t.Errorf("%s: %v, there is %q", name, err, there)
		}
	}
}

// TestUnproven: on a store that ignores conditions, or answers 501 to them, what is there is looked at
// first, and written whole.
func TestUnproven(t *testing.T) {
	t.Parallel()
	for name, conditions := range map[string]objecttest.Conditions{"ignored": objecttest.Ignored, "501": objecttest.Unknown} {
		s := serve(t, conditions)
		block := s.block.With("locks", "unproven").With("skip_s3_checksum", true)
		s.Put(bucketOf, "net/dev.tflock", storetest.Lock("4711").JSON())
		state := at(t, block)
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		if by, err := state.Holder(t.Context()); err != nil || by == nil || by.ID != "1" {
			t.Errorf("%s: the lock is %v, %v", name, by, err)
		}
		next, err := state.Write(t.Context(), storetest.State(1), "")
		must(t, err)
		if there := s.Get(bucketOf, "net/prod"); string(there) != string(storetest.State(1)) {
			t.Errorf("%s: %q was written", name, there)
		}
		s.Put(bucketOf, "net/prod", storetest.State(2))
		if _, err := state.Write(t.Context(), storetest.State(3), next); !errors.Is(err, store.ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, state.Unlock(t.Context(), "1"))
		if err := at(t, block.With("key", "net/dev")).Lock(t.Context(), storetest.Lock("1")); !isHeldBy(err, "4711") {
			t.Errorf("%s, held: %v", name, err)
		}
	}
}

func isHeldBy(err error, id string) bool {
	held, ok := errors.AsType[*store.HeldError](err)
	return ok && held.By != nil && held.By.ID == id
}

// TestProof: the proof is asked for once, costs one request more if it is there, is none of AWS, and
// names the right that it needs.
//
// Promise: States in stores
func TestProof(t *testing.T) {
	t.Parallel()
	s := serve(t, objecttest.Kept)
	for run, want := range []int{6 + 3, 4 + 3} { // look, proof (and a list), lock; look, unlock, look
		state := at(t, s.block)
		must(t, tell(t.Context(), state))
		if n := len(s.Requests()); n != want {
			t.Errorf("run %d: %d requests", run, n)
		}
		must(t, tell(t.Context(), state))
		if n := len(s.Requests()); n != 5 {
			t.Errorf("run %d, again: %d requests", run, n)
		}
	}
	s.Allows = func(action, resource string) bool {
		return action != "s3:PutObject" || !strings.HasSuffix(resource, objects.ProofSuffix)
	}
	err := tell(t.Context(), at(t, s.block))
	if !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "s3:PutObject") ||
		!strings.Contains(err.Error(), objects.ProofSuffix) {
		t.Errorf("denied: %v", err)
	}

	aws := atAWS(t)
	must(t, tell(t.Context(), at(t, aws.block)))
	if n := len(aws.Requests()); n != 3 {
		t.Errorf("AWS: %d requests", n)
	}
}

// TestRightRefused tests stores that refuse a condition although it is met: they are found out at the first such
// answer, on an object that nobody depends on, and what someone else has written stays there.
func TestRightRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conditions   objecttest.Conditions
		weak         bool
		table        bool   // is the lock
		match        string // what the last write sends, "" for nothing
		told         bool   // that there is none
		first, later int    // requests of a write; with a table, the first one is looked at
	}{
		"kept":               {match: "quoted", first: 2, later: 2},
		"kept, weak":         {weak: true, match: "quoted", first: 2, later: 2},
		"without quotes":     {conditions: objecttest.OnlyBare, match: "bare", first: 2 + 2 + 4, later: 2},
		"without, in tables": {conditions: objecttest.OnlyBare, table: true, match: "bare", first: 1 + 2 + 4 + 1, later: 1},
		"never met":          {conditions: objecttest.NeverMet, told: true, first: 2 + 1 + 3 + 2, later: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.conditions)
			s.WeakTags = c.weak
			b := s.block
			if c.table {
				b = b.With("dynamodb_table", tableName)
			}
			s.Put(bucketOf, "net/prod", storetest.State(1))
			ctx, texts := said(t)
			state := at(t, b)
			must(t, ready(ctx, state))
			must(t, state.Lock(ctx, storetest.Lock("1")))
			_, read, err := state.Read(ctx)
			must(t, err)
			var sent string
			for serial, want := range []int{c.first, c.later, c.later} {
				s.Requests()
				next, err := state.Write(ctx, storetest.State(2+serial), read)
				must(t, err)
				requests := s.Requests()
				if len(requests) != want {
					t.Errorf("write %d: %d requests, want %d", serial, len(requests), want)
				}
				sent, read = requests[len(requests)-1].Header.Get("If-Match"), next
			}
			form := ""
			switch {
			case strings.HasPrefix(sent, `"`):
				form = "quoted"
			case sent != "":
				form = "bare"
			}
			if form != c.match {
				t.Errorf("the last write sends %q", sent)
			}
			s.Put(bucketOf, "net/prod", storetest.State(9))
			s.Requests()
			if _, err := state.Write(ctx, storetest.State(10), read); !errors.Is(err, store.ErrChanged) {
				t.Errorf("over what someone else has written: %v", err)
			}
			for _, r := range s.Requests() {
				if strings.HasSuffix(r.Path, objects.ProofSuffix) {
					t.Errorf("a refusal that is right is looked into: %s %s", r.Method, r.Path)
				}
			}
			if got := s.Get(bucketOf, "net/prod"); !bytes.Equal(got, storetest.State(9)) {
				t.Errorf("there is %s", got)
			}
			_, read, err = state.Read(ctx)
			must(t, err)
			must(t, state.Remove(ctx, read))
			must(t, state.Unlock(ctx, "1"))
			if told := strings.Join(*texts, "\n"); strings.Contains(told, "If-Match") != c.told {
				t.Errorf("this is said: %q", told)
			}
			must(t, tell(ctx, at(t, b))) // a lock alone
		})
	}
}

// TestStale tests that a look which sees an old state does not make a refusal one that is looked over.
func TestStale(t *testing.T) {
	t.Parallel()
	for name, conditions := range map[string]objecttest.Conditions{"quoted": objecttest.Kept, "bare": objecttest.OnlyBare} {
		s := serve(t, conditions)
		s.Put(bucketOf, "net/prod", storetest.State(1))
		state := at(t, s.block)
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		_, read, err := state.Read(t.Context())
		must(t, err)
		old := serve(t, conditions)
		old.Put(bucketOf, "net/prod", storetest.State(1))
		s.mayBe.Store(new(func(w http.ResponseWriter, r *http.Request) bool {
			stale := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/net/prod")
			if stale {
				old.ServeHTTP(w, r)
			}
			return stale
		}))
		s.Put(bucketOf, "net/prod", storetest.State(2))
		if _, err := state.Write(t.Context(), storetest.State(3), read); !errors.Is(err, store.ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.Get(bucketOf, "net/prod"); !bytes.Equal(got, storetest.State(2)) {
			t.Errorf("%s: there is %s", name, got)
		}
	}
}

// TestKeepsVersions tests a store that ignores conditions in buckets that keep versions, and only there: nothing
// is locked.
func TestKeepsVersions(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{false, true} {
		s := serve(t, objecttest.RadosGW)
		if keeps {
			s.Keep(bucketOf)
		}
		err := tell(t.Context(), at(t, s.block))
		if (err == nil) == keeps {
			t.Errorf("versions %t: %v", keeps, err)
		}
		if keeps {
			testkit.OpenGolden(t, "testdata/mistakes.txt", "a bucket that keeps versions").Error(t, "a lock", err)
		}
	}
}

// TestUnlockIsLookedAt tests stores that may not do what they say of a removal.
func TestUnlockIsLookedAt(t *testing.T) {
	t.Parallel()
	s := serve(t, objecttest.Deaf)
	state := at(t, s.block)
	must(t, state.Lock(t.Context(), storetest.Lock("1")))
	if err := state.Unlock(t.Context(), "1"); err == nil {
		t.Error("the lock is there, and was given back")
	}
	s = serve(t, objecttest.IgnoredDelete)
	state = at(t, s.block)
	must(t, state.Lock(t.Context(), storetest.Lock("1")))
	s.mayBe.Store(new(func(w http.ResponseWriter, r *http.Request) bool { // someone takes it at once
		if r.Method == http.MethodDelete {
			s.ServeHTTP(w, r)
			s.Put(bucketOf, "net/prod.tflock", storetest.Lock("4711").JSON())
		}
		return r.Method == http.MethodDelete
	}))
	must(t, state.Unlock(t.Context(), "1"))
	if by, err := state.Holder(t.Context()); err != nil || by == nil || by.ID != "4711" {
		t.Errorf("the holder is %v, %v", by, err)
	}
}

// TestUnknownMatch: what a store does not do is said, once.
//
// Promise: States in stores
func TestUnknownMatch(t *testing.T) {
	t.Parallel()
	for name, conditions := range map[string]objecttest.Conditions{"501": objecttest.UnknownMatch, "ignored": objecttest.IgnoredIfs} {
		s := serve(t, conditions)
		ctx, texts := said(t)
		state := at(t, s.block)
		must(t, state.Lock(ctx, storetest.Lock("1")))
		read, err := state.Write(ctx, storetest.State(1), "")
		must(t, err)
		_, err = state.Write(ctx, storetest.State(2), read)
		must(t, err)
		must(t, state.Unlock(ctx, "1"))
		told := strings.Join(*texts, "\n")
		if strings.Count(told, "If-Match") != 1 {
			t.Errorf("%s: %q", name, told)
		}
	}
}

// loses has the answer to some request be lost after the store has done what was asked.
func (s *service) loses(is func(r *http.Request) bool, every bool) *atomic.Int32 {
	lost := new(atomic.Int32)
	s.mayBe.Store(new(func(w http.ResponseWriter, r *http.Request) bool {
		if !is(r) || !every && lost.Load() > 0 {
			return false
		}
		lost.Add(1)
		s.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}))
	return lost
}

// TestAmbiguous: a request that was done, and whose answer was lost, is a success, whether the client
// repeats it or gives up.
//
// Promise: States in stores
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, ends string
		every        bool
	}{
		"lock": {"PUT", "net/prod.tflock", false}, "lock, all": {"PUT", "net/prod.tflock", true},
		"write": {"PUT", "net/prod", false}, "write, all": {"PUT", "net/prod", true},
		"unlock": {"DELETE", "net/prod.tflock", false}, "unlock, all": {"DELETE", "net/prod.tflock", true},
	} {
		for _, with := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, table %t", name, with), func(t *testing.T) {
				t.Parallel()
				s := serve(t, objecttest.Kept)
				b := s.block
				if with {
					b = b.With("dynamodb_table", tableName).With("use_lockfile", true)
				}
				lost := s.loses(func(r *http.Request) bool {
					return r.Method == c.method && strings.HasSuffix(r.URL.Path, c.ends)
				}, c.every)
				state := carefully(at(t, b))
				must(t, state.Lock(t.Context(), storetest.Lock("1")))
				_, err := state.Write(t.Context(), storetest.State(1), "")
				must(t, err)
				must(t, state.Unlock(t.Context(), "1"))
				there := string(s.Get(bucketOf, "net/prod"))
				if lost.Load() == 0 || s.Get(bucketOf, "net/prod.tflock") != nil || there != string(storetest.State(1)) {
					t.Errorf("lost %d answers; the lock is %q", lost.Load(), s.Get(bucketOf, "net/prod.tflock"))
				}
				if want := fmt.Sprintf("%x", md5.Sum(storetest.State(1))); with && s.table.Text(bucketOf+"/net/prod-md5", "Digest") != want {
					t.Error("the digest is not there")
				}
			})
		}
	}
}

// TestUnlockIsNotRepeated: on a store that ignores conditions, the lock of someone who takes it
// between a request and its repetition would go.
func TestUnlockIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := serve(t, objecttest.Ignored)
	state := at(t, s.block.With("locks", "unproven"))
	must(t, state.Lock(t.Context(), storetest.Lock("1")))
	foreign := storetest.Lock("foreign").JSON()
	var asked atomic.Int32
	s.mayBe.Store(new(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete {
			return false
		}
		if asked.Add(1) > 1 {
			return false
		}
		s.ServeHTTP(httptest.NewRecorder(), r)
		s.Put(bucketOf, "net/prod.tflock", foreign)
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}))
	must(t, state.Unlock(t.Context(), "1"))
	if got := s.Get(bucketOf, "net/prod.tflock"); !bytes.Equal(got, foreign) || asked.Load() != 1 {
		t.Errorf("%d requests; the lock of someone else is %q", asked.Load(), got)
	}
}

// TestAmbiguousTable is the same for the table; a digest that cannot be written is no success.
//
// Promise: States in stores
func TestAmbiguousTable(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"PutItem", "DeleteItem"} {
		s := serve(t, objecttest.Kept)
		b := s.block.With("dynamodb_table", tableName)
		var lost atomic.Bool
		s.table.Before.Store(new(func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), operation) && lost.CompareAndSwap(false, true) {
				panic(http.ErrAbortHandler)
			}
			return false
		}))
		state := carefully(at(t, b))
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		_, err := state.Write(t.Context(), storetest.State(1), "")
		must(t, err)
		must(t, state.Unlock(t.Context(), "1"))
		if !lost.Load() || s.table.Text(bucketOf+"/net/prod", "Info") != "" {
			t.Errorf("%s: the lock is there", operation)
		}
		s.table.Before.Store(new(func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusBadRequest)
			return strings.HasSuffix(r.Header.Get("X-Amz-Target"), "PutItem") && lost.Load()
		}))
	}
	s := serve(t, objecttest.Kept)
	state := carefully(at(t, s.block.With("dynamodb_table", tableName)))
	must(t, state.Lock(t.Context(), storetest.Lock("1")))
	s.table.Allows.Store(new(func(operation string) bool { return operation != "PutItem" }))
	_, err := state.Write(t.Context(), storetest.State(1), "")
	if !errors.Is(err, store.ErrUnfinished) || !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "dynamodb:PutItem") {
		t.Errorf("the digest: %v", err)
	}
	s.table.Allows.Store(nil)
	_, version, err := state.Read(t.Context())
	must(t, err)
	_, err = state.Write(t.Context(), storetest.State(2), version)
	must(t, err)
	must(t, state.Unlock(t.Context(), "1"))
}

// TestTableWithoutEncryption: plain http to another machine is warned of, once.
func TestTableWithoutEncryption(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]int{"http://dynamodb.example.com": 1, "": 0} {
		s := serve(t, objecttest.Kept)
		endpoints := s.block["endpoints"].AsValueMap()
		b := s.block.With("dynamodb_table", tableName).With("http_proxy", endpoints["dynamodb"].AsString())
		if address != "" {
			b = b.With("endpoints", objecttest.Strings("s3", endpoints["s3"].AsString(), "dynamodb", address))
		}
		var said []string
		ctx := notice.With(t.Context(), func(text string) { said = append(said, text) })
		state := at(t, b)
		must(t, state.Lock(ctx, storetest.Lock("1")))
		must(t, state.Unlock(ctx, "1"))
		if len(said) != want || want > 0 && said[0] != "warning: The lock and the digest of the state were sent without encryption, because "+
			"the endpoint of DynamoDB begins with http. Anyone on the network path can read and replace them." {
			t.Errorf("got %q", said)
		}
	}
}

// TestTableMeanwhile: what others do between two requests to the table.
func TestTableMeanwhile(t *testing.T) {
	t.Parallel()
	const item, digestItem = bucketOf + "/net/prod", bucketOf + "/net/prod-md5"
	s := serve(t, objecttest.Kept)
	state := at(t, s.block.With("dynamodb_table", tableName))
	at := func(operation string, n int, change func()) { // before the nth such request from now on is answered
		s.table.Before.Store(new(func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), operation) {
				if n--; n == 0 {
					change()
				}
			}
			return false
		}))
	}

	s.table.Put(item, "Info", string(storetest.Lock("other").JSON()))
	at("GetItem", 1, func() { s.table.Delete(item) })
	must(t, state.Lock(t.Context(), storetest.Lock("1")))

	foreign := string(storetest.Lock("foreign").JSON())
	at("DeleteItem", 1, func() { s.table.Put(item, "Info", foreign) })
	_ = state.Unlock(t.Context(), "1")
	if got := s.table.Text(item, "Info"); got != foreign {
		t.Errorf("the lock of someone else is %q", got)
	}

	s.table.Delete(item)
	s.table.Before.Store(new(func(w http.ResponseWriter, r *http.Request) bool { // no digest can be written
		fails := strings.HasSuffix(r.Header.Get("X-Amz-Target"), "PutItem")
		if fails {
			w.WriteHeader(http.StatusBadRequest)
		}
		return fails
	}))
	if _, err := state.Write(t.Context(), []byte("new"), ""); !errors.Is(err, store.ErrUnfinished) {
		t.Errorf("a digest that could not be written: %v", err)
	}
	s.table.Before.Store(nil)
	digested, ok := store.As[store.Digested](state)
	if !ok {
		t.Fatal("the state has no digest")
	}
	if settled, err := digested.IsSettled(t.Context(), []byte("new")); err != nil || settled {
		t.Errorf("got %t, %v", settled, err)
	}
	must(t, digested.Settle(t.Context(), []byte("new")))
	if settled, err := digested.IsSettled(t.Context(), []byte("new")); err != nil || !settled {
		t.Errorf("got %t, %v", settled, err)
	}
	_, version, err := state.Read(t.Context())
	must(t, err)
	must(t, state.Remove(t.Context(), version))
	if _, err := state.Write(t.Context(), []byte("newer"), version); !errors.Is(err, store.ErrChanged) {
		t.Errorf("over what is gone: %v", err)
	}

	s.table.Put(digestItem, "Digest", "0123456789abcdef0123456789abcdef")
	if _, _, err := state.Read(t.Context()); err == nil || !strings.Contains(err.Error(), digestItem) {
		t.Errorf("a digest without an object: %v", err)
	}
	s.table.Delete(digestItem)
	if data, _, err := state.Read(t.Context()); err != nil || data != nil {
		t.Errorf("neither: %q, %v", data, err)
	}
}

// TestTableOfAProfile: a profile that leads S3 elsewhere leads to the table there as well, and not to AWS,
// where nobody else would lock.
func TestTableOfAProfile(t *testing.T) {
	t.Parallel()
	s := serve(t, objecttest.Kept)
	at3, atTable := s.block["endpoints"].GetAttr("s3").AsString(), s.block["endpoints"].GetAttr("dynamodb").AsString()
	config := filepath.Join(t.TempDir(), "config")
	const profile = "[profile here]\nregion = eu-west-1\naws_access_key_id = AKIATEST\naws_secret_access_key = " + secret +
		"\nservices = here\n\n[services here]\ns3 =\n  endpoint_url = %s\ndynamodb =\n  endpoint_url = %s\n"
	must(t, os.WriteFile(config, fmt.Appendf(nil, profile, at3, atTable), 0o600))
	b := s.block.With("endpoints", nil).With("access_key", nil).With("secret_key", nil).With("profile", "here").
		With("shared_config_files", []string{config}).With("dynamodb_table", tableName)
	state := at(t, b)
	must(t, state.Lock(t.Context(), storetest.Lock("1")))
	if s.table.Text(bucketOf+"/net/prod", "Info") == "" {
		t.Error("the lock is elsewhere")
	}
	must(t, state.Unlock(t.Context(), "1"))
}

// TestForm: what is written is what both CLIs write.
func TestForm(t *testing.T) {
	t.Parallel()
	front := atAWS(t)
	b := front.block.With("dynamodb_table", tableName).With("use_lockfile", true).With("encrypt", true).With("kms_key_id", "k").
		With("acl", "private").With("state_tags", attrs{"team": cty.StringVal("a b")}).With("lock_tags", attrs{"lock": cty.StringVal("1")})
	state := at(t, b)
	must(t, state.Lock(t.Context(), storetest.Lock("<1>")))
	const want = `{"ID":"\u003c1\u003e","Operation":"OperationTypeApply","Info":"","Who":"\u003c1\u003e@host","Version":"1.12.6",` +
		`"Created":"2026-11-27T00:00:00Z","Path":"states/net/prod"}`
	if got := string(front.Get(bucketOf, "net/prod.tflock")); got != want {
		t.Errorf("the lock is %s", got)
	}
	if got := front.table.Text("states/net/prod", "Info"); got != want {
		t.Errorf("the lock in the table is %s", got)
	}
	_, err := state.Write(t.Context(), storetest.State(1), "")
	must(t, err)
	must(t, state.Unlock(t.Context(), "<1>"))
	tags := map[string]string{"/net/prod": "team=a+b", "/net/prod.tflock": "lock=1"}
	for _, r := range front.Requests() {
		if r.Method != http.MethodPut {
			continue
		}
		for name, want := range map[string]string{
			"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "k", "X-Amz-Acl": "private",
			"Content-Type": "application/json", "X-Amz-Tagging": tags[r.Path],
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", r.Path, name, got, want)
			}
		}
		if r.Header.Get("X-Amz-Checksum-Sha256") == "" || r.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", r.Path, r.Header)
		}
	}
}

// TestBlocks: what cannot be meant is refused before anything is asked.
func TestBlocks(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]attrs{
		"locks":         block().With("locks", "none"),
		"a KMS key":     block().With("kms_key_id", "k"),
		"a key":         block().With("sse_customer_key", strings.Repeat("A", 43)+"="),
		"both keys":     block().With("encrypt", true).With("kms_key_id", "k").With("sse_customer_key", strings.Repeat("A", 43)+"="),
		"no bucket":     block().With("bucket", nil),
		"a key of URLs": block().With("key", "s3://states/a"),
		"a long key":    block().With("key", strings.Repeat("k", 1020)),
		"DynamoDB":      block().With("dynamodb_table", "t").With("endpoints", objecttest.Strings("dynamodb", "https://u:p@x")),
		"a zone":        block().With("region", "eu-west-1a"),
	} {
		if s, err := openAt(t, b); err == nil {
			t.Errorf("%s: %s was opened", name, s)
		} else if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := at(t, block().With("endpoints", objecttest.Strings("s3", "https://s3.example.com")))
	if got := s.String(); got != `object "net/prod" in the S3 bucket "states" at https://s3.example.com` {
		t.Errorf("it is called %s", got)
	}
}

// TestDenied: of each right that is missing, the error names it.
//
// Promise: States in stores
func TestDenied(t *testing.T) {
	t.Parallel()
	s := atAWS(t)
	denied := ""
	s.Allows = func(action, _ string) bool { return action != denied }
	state := at(t, s.block)
	must(t, state.Lock(t.Context(), storetest.Lock("1")))
	_, err := state.Write(t.Context(), storetest.State(1), "")
	must(t, err)
	_, version, err := state.Read(t.Context())
	must(t, err)
	for action, do := range map[string]func() error{
		"s3:GetObject":    func() error { _, _, err := state.Read(t.Context()); return err },
		"s3:PutObject":    func() error { _, err := state.Write(t.Context(), storetest.State(2), version); return err },
		"s3:DeleteObject": func() error { return state.Unlock(t.Context(), "1") },
		"s3:ListBucket": func() error {
			opened, err := openStore(t, s.block)
			must(t, err)
			_, err = opened.List(t.Context(), "net/")
			return err
		},
	} {
		denied = action
		err := do()
		if !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), action) || strings.Contains(err.Error(), objecttest.Canary) {
			t.Errorf("%s: %v", action, err)
		}
	}
}

// TestPolicy: the policy of the documentation is enough, on AWS and elsewhere, and for nothing else.
func TestPolicy(t *testing.T) {
	t.Parallel()
	const own, key = "acme-tf-state", "network/terraform.tfstate"
	for name, s := range map[string]*service{"AWS": atAWS(t), "elsewhere": serve(t, objecttest.Kept),
		"without quotes": serve(t, objecttest.OnlyBare)} {
		s.Create(own)
		s.Allows = objecttest.Policy(t, "../../../examples/stores/s3/policy.json")
		state := at(t, s.block.With("bucket", own).With("key", key))
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		_, version, err := state.Read(t.Context())
		must(t, err)
		version, err = state.Write(t.Context(), storetest.State(1), version)
		must(t, err)
		_, err = state.Write(t.Context(), storetest.State(2), version)
		must(t, err)
		must(t, state.Unlock(t.Context(), "1"))
		other := at(t, s.block.With("bucket", own).With("key", "billing"))
		if err := other.Lock(t.Context(), storetest.Lock("1")); !errors.Is(err, store.ErrDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStuck: a store that does not answer is no refusal.
func TestStuck(t *testing.T) {
	t.Parallel()
	s := serve(t, objecttest.Kept)
	state := at(t, s.block)
	s.mayBe.Store(new(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }))
	for name, err := range map[string]error{
		"read": func() error { _, _, err := state.Read(t.Context()); return err }(), "lock": state.Lock(t.Context(), storetest.Lock("1")),
	} {
		if _, ok := errors.AsType[*store.UnansweredError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.mayBe.Store(new(func(w http.ResponseWriter, r *http.Request) bool { // the lock is there, and its asker has gone
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, objects.LockSuffix) {
			s.ServeHTTP(httptest.NewRecorder(), r)
			cancel()
			panic(http.ErrAbortHandler)
		}
		return false
	}))
	if err := state.Lock(ctx, storetest.Lock("1")); !errors.Is(err, context.Canceled) || s.Get(bucketOf, "net/prod.tflock") != nil {
		t.Errorf("gone: %v; the lock is %q", err, s.Get(bucketOf, "net/prod.tflock"))
	}
}
