package azurerm

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/careful"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

const (
	name  = "net/prod"
	ofCLI = "0b1e2f3a-4c5d-4e6f-8a7b-9c0d1e2f3a4b" // the ID of a lock as the CLIs make it
	other = "11111111-2222-4333-8444-555555555555"
)

func encoded(lock store.Lock) string { return base64.StdEncoding.EncodeToString(lock.JSON()) }

// left is a blob that a lock of a CLI keeps.
func left(lease string, lock store.Lock) azuretest.Blob {
	return azuretest.Blob{Data: storetest.State(1), Lease: lease, Metadata: map[string]string{lockMetadata: encoded(lock)}}
}

func isHeldBy(err error, id string) bool {
	held, ok := errors.AsType[*store.HeldError](err)
	return ok && held.By != nil && held.By.ID == id
}

// TestAsTheCLIs: a lock is the one that both CLIs make, and theirs is seen and released.
func TestAsTheCLIs(t *testing.T) {
	t.Parallel()
	s := atAzure(t)
	state := s.at(t)
	must(t, state.Lock(t.Context(), storetest.Lock(ofCLI)))
	b := s.Look(containerOf, name)
	text, err := base64.StdEncoding.DecodeString(b.Metadata[lockMetadata])
	must(t, err)
	lock, _ := store.ParseLock(text)
	if b.Lease != ofCLI || lock.ID != ofCLI || lock.Path != containerOf+"/"+name || len(b.Data) > 0 {
		t.Errorf("the blob is %+v, and the lock %s", b, text)
	}
	must(t, state.Unlock(t.Context(), ofCLI))
	if b := s.Look(containerOf, name); b.Lease != "" || len(b.Metadata) > 0 {
		t.Errorf("given back: %+v", b)
	}
	s.Put(containerOf, name, left(ofCLI, storetest.Lock(ofCLI)))
	if err := state.Lock(t.Context(), storetest.Lock(other)); !isHeldBy(err, ofCLI) {
		t.Errorf("a lock of a CLI: %v", err)
	}
	if err := state.Unlock(t.Context(), other); !isHeldBy(err, ofCLI) {
		t.Errorf("another ID: %v", err)
	}
	must(t, state.Unlock(t.Context(), ofCLI))
	s.Put(containerOf, name, left("", storetest.Lock(ofCLI))) // a description without a lease
	if by, err := state.Holder(t.Context()); by != nil || err != nil {
		t.Errorf("without a lease: %v, %v", by, err)
	}
	must(t, state.Lock(t.Context(), storetest.Lock(other)))
	must(t, state.Unlock(t.Context(), other))
}

// TestNamelessLock: a lock without an ID is not taken, because two of them would have the same lease.
func TestNamelessLock(t *testing.T) {
	t.Parallel()
	s := atAzure(t)
	testkit.OpenGolden(t, "testdata/mistakes.txt", "a lock").Error(t, "without an ID", s.at(t).Lock(t.Context(), storetest.Lock("")))
	if b := s.Look(containerOf, name); b.Lease != "" {
		t.Errorf("there is %+v", b)
	}
}

// TestUndescribed: a lease without a description, or with that of another lock, can be named and released. Neither CLI
// can do that.
func TestUndescribed(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "a lease without a description")
	for what, blob := range map[string]azuretest.Blob{
		"no description":            {Data: storetest.State(1), Lease: other},
		"no description, in base64": {Data: storetest.State(1), Lease: other, Metadata: map[string]string{lockMetadata: "!"}},
		"another description":       left(other, storetest.Lock(ofCLI)),
	} {
		s := atAzure(t)
		s.Put(containerOf, name, blob)
		state := s.at(t)
		err := state.Lock(t.Context(), storetest.Lock("1"))
		held, ok := errors.AsType[*store.HeldError](err)
		if !ok || held.By == nil || held.By.ID == "" {
			t.Fatalf("%s: %v", what, err)
		}
		says.Error(t, what, errors.New(strings.ReplaceAll(err.Error(), strings.TrimPrefix(held.By.ID, undescribed), "ETAG")))
		if err := state.Unlock(t.Context(), held.By.ID+"0"); !isHeldBy(err, held.By.ID) {
			t.Errorf("%s, another ID: %v", what, err)
		}
		s.Change(containerOf, name, true, func(*azuretest.Blob) {}) // someone works with the lease
		if by, err := state.Holder(t.Context()); err != nil || strings.HasPrefix(by.ID, undescribed) == (by.ID == held.By.ID) {
			t.Errorf("%s, changed: %v, %v", what, by, err)
		}
		by, err := state.Holder(t.Context())
		must(t, err)
		must(t, state.Unlock(t.Context(), by.ID))
		must(t, state.Lock(t.Context(), storetest.Lock("2")))
		must(t, state.Unlock(t.Context(), "2"))
		if b := s.Look(containerOf, name); b.Lease != "" || string(b.Data) != string(storetest.State(1)) {
			t.Errorf("%s: there is %+v", what, b)
		}
	}
}

// TestSlowDescription: a run waits for another one that has the lease, and is about to describe itself.
func TestSlowDescription(t *testing.T) {
	t.Parallel()
	s := atAzure(t)
	s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1), Lease: other})
	asked := 0
	s.on(func(_ http.ResponseWriter, r *http.Request) bool {
		if asked++; asked == 4 {
			s.Change(containerOf, name, true, func(b *azuretest.Blob) {
				b.Metadata = map[string]string{lockMetadata: encoded(storetest.Lock(other))}
			})
		}
		return false
	})
	if err := s.at(t).Lock(t.Context(), storetest.Lock("1")); !isHeldBy(err, other) {
		t.Errorf("got %v", err)
	}
}

// TestLeaseIsLost: without its lease, a run writes nothing, whoever has the lease.
//
// Promise: States in stores
func TestLeaseIsLost(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(b *azuretest.Blob){
		"broken":                          func(b *azuretest.Blob) { b.Lease, b.Broken = "", b.Lease },
		"of someone else, described":      func(b *azuretest.Blob) { b.Lease, b.Metadata = other, left(other, storetest.Lock(other)).Metadata },
		"of someone else, undescribed":    func(b *azuretest.Blob) { b.Lease = other },
		"of someone else, no metadata":    func(b *azuretest.Blob) { b.Lease, b.Metadata = other, nil },
		"of nobody, without a broken one": func(b *azuretest.Blob) { b.Lease = "" },
		"deleted":                         func(b *azuretest.Blob) { *b = azuretest.Blob{Deleted: true} },
	} {
		s := atAzure(t)
		s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1)})
		state := s.at(t)
		must(t, state.Lock(t.Context(), storetest.Lock(ofCLI)))
		_, version, err := state.Read(t.Context())
		must(t, err)
		s.Change(containerOf, name, false, lose)
		there := s.Look(containerOf, name)
		if _, err := state.Write(t.Context(), storetest.State(2), version); !errors.Is(err, store.ErrLost) {
			t.Errorf("%s: %v", what, err)
		}
		if err := state.Unlock(t.Context(), ofCLI); err == nil {
			t.Errorf("%s: it is given back", what)
		}
		if now := s.Look(containerOf, name); string(now.Data) != string(there.Data) || now.Lease != there.Lease {
			t.Errorf("%s: there is %+v", what, now)
		}
	}
}

// TestIgnoredRelease: a server that ignores whose lease it ends costs a lock, and never a state.
//
// Promise: States in stores
func TestIgnoredRelease(t *testing.T) {
	t.Parallel()
	s := emulator(t, azuretest.Releases)
	s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1)})
	first, second, third := s.at(t), s.at(t), s.at(t)
	must(t, first.Lock(t.Context(), storetest.Lock("1")))
	s.on(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("x-ms-lease-action") == "release" { // meanwhile, the lease became that of the second
			s.mayBe.Store(nil)
			s.Change(containerOf, name, true, func(b *azuretest.Blob) { b.Lease, b.Metadata = "", nil })
			must(t, second.Lock(t.Context(), storetest.Lock("2")))
		}
		return false
	})
	must(t, first.Unlock(t.Context(), "1"))
	_, version, err := second.Read(t.Context())
	must(t, err)
	if b := s.Look(containerOf, name); b.Lease != "" {
		t.Fatalf("the lease of the second is there: %+v", b)
	}
	must(t, third.Lock(t.Context(), storetest.Lock("3")))
	if _, err := third.Write(t.Context(), storetest.State(2), version); err != nil {
		t.Error(err)
	}
	must(t, third.Unlock(t.Context(), "3"))
	if _, err := second.Write(t.Context(), storetest.State(3), version); !errors.Is(err, store.ErrLost) {
		t.Errorf("the second, without its lock: %v", err)
	}
	if got := s.Get(containerOf, name); string(got) != string(storetest.State(2)) {
		t.Errorf("there is %s", got)
	}
}

// TestLostAnswers: each request may succeed although its answer is lost, and is repeated. The lock is ours, the state
// is written, and the lock is released.
//
// Promise: States in stores
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for what, is := range map[string]func(r *http.Request) bool{
		"the empty blob": func(r *http.Request) bool { full, puts := isPut(r); return puts && !full },
		"the lease":      func(r *http.Request) bool { return r.Header.Get("x-ms-lease-action") == "acquire" },
		"the description": func(r *http.Request) bool {
			return r.URL.Query().Get("comp") == "metadata" && describes(r)
		},
		"the state":                  func(r *http.Request) bool { full, puts := isPut(r); return puts && full },
		"the release":                func(r *http.Request) bool { return r.Header.Get("x-ms-lease-action") == "release" },
		"the end of the description": func(r *http.Request) bool { return r.URL.Query().Get("comp") == "metadata" && !describes(r) },
	} {
		for _, times := range []int{1, 4, 5} { // the SDK sends a request four times
			s, lost := atAzure(t), 0
			s.network.Transport = losing{s.network.Transport, func(r *http.Request) bool {
				loses := lost < times && is(r)
				if loses {
					lost++
				}
				return loses
			}}
			state := careful.New(s.at(t), store.Properties{HasLocks: true})
			must(t, state.Lock(t.Context(), storetest.Lock("1")))
			_, err := state.Write(t.Context(), storetest.State(1), "")
			must(t, err)
			must(t, state.Unlock(t.Context(), "1"))
			if b := s.Look(containerOf, name); string(b.Data) != string(storetest.State(1)) || b.Lease != "" || lost == 0 {
				t.Errorf("%s, %d times: %d lost, and the lease is %q, the state %.60s", what, times, lost, b.Lease, b.Data)
			}
		}
	}
}

// describes reports whether a request that is not sent yet has the description of a lock.
func describes(r *http.Request) bool {
	for name := range r.Header {
		if strings.EqualFold(name, "x-ms-meta-"+lockMetadata) {
			return true
		}
	}
	return false
}

// losing loses answers to requests that arrive.
type losing struct {
	policy.Transporter
	is func(r *http.Request) bool
}

// Do implements [policy.Transporter].
func (l losing) Do(r *http.Request) (*http.Response, error) {
	answer, err := l.Transporter.Do(r)
	if err == nil && l.is(r) {
		_ = answer.Body.Close()
		return nil, errors.New("the answer is lost")
	}
	return answer, err
}
