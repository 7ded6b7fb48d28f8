package azurerm

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	azuresource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

func TestMain(m *testing.M) {
	nettest.ForgetMachine("ARM_", "AZURE_")
	os.Exit(m.Run())
}

const containerOf = "states"

type attrs map[string]cty.Value

// with returns a copy with more texts; a nil takes away.
func (a attrs) with(kv ...any) attrs {
	out := maps.Clone(a)
	for i := 0; i < len(kv); i += 2 {
		name, _ := kv[i].(string)
		switch v := kv[i+1].(type) {
		case string:
			out[name] = cty.StringVal(v)
		case bool:
			out[name] = cty.BoolVal(v)
		case nil:
			delete(out, name)
		}
	}
	return out
}

// block leads to an account, with its key.
func block() attrs {
	return attrs{}.with("storage_account_name", azuretest.Account, "container_name", containerOf, "key", "net/prod",
		"access_key", azuretest.Key)
}

func openStore(t *testing.T, b attrs, n azuresource.Network) (store.Store, error) {
	t.Helper()
	n.RetryDelay = time.Millisecond
	kind := KindOver(n)
	v, err := unstable.NewEntry("backend.azurerm", kind.Table, b).Decode(kind.Table, nil)
	if err != nil {
		return nil, err
	}
	return kind.Open(store.Settings{Values: v, Limit: 1 << 30})
}

func at(t *testing.T, b attrs, n azuresource.Network) store.State {
	t.Helper()
	s, err := openStore(t, b, n)
	must(t, err)
	state, err := s.State(b["key"].AsString())
	must(t, err)
	return state
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// administer sends a request with the account's key to an emulator.
func administer(t *testing.T, method, address string, body []byte, headers ...string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	must(t, err)
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("x-ms-version", "2023-11-03")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Header.Set("Authorization", "SharedKey "+azuretest.Account+":"+azuretest.Sign(r))
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s\n%s", method, address, answer.Status, text)
	}
}

// places are containers of an emulator at an address, of which there are n.
func places(address string, n *int, with func(attrs) attrs) storetest.Places {
	return func(t *testing.T, name string) storetest.Place {
		t.Helper()
		*n++
		own, key := containerOf+string(rune('a'+*n/26))+string(rune('a'+*n%26)), "net/"+name
		administer(t, http.MethodPut, address+"/"+own+"?restype=container", nil)
		blob, b := address+"/"+own+"/"+url.PathEscape(key), with(block().with("blob_endpoint", address, "container_name", own, "key", key))
		return storetest.Place{
			Open: func(t *testing.T) store.State { t.Helper(); return at(t, b, azuresource.Network{}) },
			Put: func(t *testing.T, data []byte) {
				t.Helper()
				administer(t, http.MethodPut, blob, data, "x-ms-blob-type", "BlockBlob")
			},
			Lose: func(t *testing.T) {
				t.Helper()
				administer(t, http.MethodPut, blob+"?comp=lease", nil, "x-ms-lease-action", "break")
			},
			Secrets: []string{azuretest.Key},
		}
	}
}

// service is an account, or an emulator.
type service struct {
	*azuretest.Server
	network azuresource.Network
	block   attrs
	mayBe   atomic.Pointer[func(http.ResponseWriter, *http.Request) bool] // it may be exchanged at any time
}

func newService() *service {
	s := &service{Server: azuretest.New(containerOf), block: block()}
	s.Writes = true
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		mayBe := s.mayBe.Load()
		return mayBe != nil && (*mayBe)(w, r)
	}
	return s
}

// atAzure is an account at Microsoft's own addresses.
func atAzure(t *testing.T) *service {
	t.Helper()
	s := newService()
	s.network.Transport = s.Client(t)
	return s
}

// emulator is one that may ignore conditions.
func emulator(t *testing.T, ignores ...azuretest.Condition) *service {
	t.Helper()
	s := newService()
	s.Ignores = map[azuretest.Condition]bool{}
	for _, c := range ignores {
		s.Ignores[c] = true
	}
	s.block = s.block.with("blob_endpoint", nettest.Serve(t, s.Server)+"/"+azuretest.Account)
	return s
}

func (s *service) at(t *testing.T, more ...any) store.State {
	t.Helper()
	return at(t, s.block.with(more...), s.network)
}

// on has the service answer some requests otherwise. answers reports whether it has answered.
func (s *service) on(answers func(w http.ResponseWriter, r *http.Request) bool) {
	s.mayBe.Store(&answers)
}

// isPut reports whether a request is a Put Blob, and whether it has a content.
func isPut(r *http.Request) (full, is bool) {
	return r.ContentLength > 0, r.Method == http.MethodPut && !r.URL.Query().Has("comp")
}

// lie has the service say yes to one kind of request about a state, and do nothing.
func (s *service) lie(what storetest.Lie) {
	s.on(func(w http.ResponseWriter, r *http.Request) bool {
		full, puts := isPut(r)
		lies := false
		switch what {
		case storetest.LieOfLock:
			lies = r.Header.Get("x-ms-lease-action") == "acquire"
		case storetest.LieOfWrite:
			lies = puts && full && !strings.HasSuffix(r.URL.Path, objects.ProofSuffix)
		case storetest.LieOfRemove:
			lies = puts && !full && r.Header.Get("If-Match") != ""
		}
		if lies {
			w.Header().Set("ETag", `"0x8DFFFFFFFFFFFFF"`)
			w.WriteHeader(http.StatusCreated)
		}
		return lies
	})
}

// TestStore runs the suite of every store, at Azure's own addresses and at others.
//
// Promise: States in stores (the suite of every store)
func TestStore(t *testing.T) {
	same := func(a attrs) attrs { return a }
	for name, c := range map[string]struct {
		serve func(t *testing.T) *service
		with  func(attrs) attrs
	}{
		"Azure":               {atAzure, same},
		"an emulator":         {func(t *testing.T) *service { t.Helper(); return emulator(t) }, same},
		"snapshots":           {atAzure, func(a attrs) attrs { return a.with("snapshot", true) }},
		"an encryption scope": {atAzure, func(a attrs) attrs { return a.with("encryption_scope", "states") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			places := func(keeps bool) storetest.Places {
				return func(t *testing.T, name string) storetest.Place {
					t.Helper()
					s := c.serve(t)
					s.Versioning = keeps
					n++
					own, key := fmt.Sprint("own", n), "net/"+name
					s.Create(own)
					b := c.with(s.block.with("container_name", own, "key", key))
					return storetest.Place{
						Open: func(t *testing.T) store.State { t.Helper(); return at(t, b, s.network) },
						Put: func(_ *testing.T, data []byte) {
							s.Put(own, key, azuretest.Blob{Data: data, Scope: s.Look(own, key).Scope})
						},
						Lose: func(*testing.T) {
							s.Change(own, key, false, func(b *azuretest.Blob) { b.Lease, b.Broken = "", b.Lease })
						},
						Lie:     func(_ *testing.T, what storetest.Lie) { s.lie(what) },
						Weaken:  func(*testing.T) { s.Weak = true },
						Secrets: []string{azuretest.Key},
					}
				}
			}
			storetest.Run(t, storetest.Harness{
				Properties: store.Properties{HasLocks: true}, Huge: name == "Azure" && testkit.Rounds(10) > 1, Slow: name != "Azure",
				Place: places(false), Versioned: places(name != "snapshots"),
			})
		})
	}
}
