//go:build unix

package wrap_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	stores "github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/gcs"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/s3"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// halfway is a server that stops at one request of a run until the client is gone.
type halfway struct {
	http.Handler

	mu    sync.Mutex
	seen  int  // requests of this run
	stop  int  // the request at which it stops, from 1 on; 0 for none
	acts  bool // before it stops
	plain bool // a request had the secret in it

	here chan string // gets the request at which it stops
}

// ServeHTTP implements [http.Handler].
func (h *halfway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.mu.Lock()
	h.seen++
	stops, acts := h.seen == h.stop, h.acts
	h.plain = h.plain || bytes.Contains(body, []byte(secret))
	h.mu.Unlock()
	if !stops {
		h.Handler.ServeHTTP(w, r)
		return
	}
	if acts {
		h.Handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	h.here <- r.Method + " " + r.URL.Path
	<-r.Context().Done()
}

// begins prepares for a run, and returns the number of requests of the run before.
func (h *halfway) begins(stop int, acts bool) (seen int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen, h.seen, h.stop, h.acts = h.seen, 0, stop, acts
	return seen
}

// inCloud is a state in a cloud whose server stops halfway.
type inCloud struct {
	*halfway
	kind     stores.Kind
	variable string // by which a run as a program gets address
	address  string
	block    func(address string) *unstable.Entry
	own      string   // the backend block of OpenTofu
	environ  []string // for OpenTofu
	get      func() []byte
	put      func(data []byte)
	beside   string // an address that does not count
}

// stopping returns the clouds of tests.
func stopping() map[string]func(t *testing.T) *inCloud {
	return map[string]func(t *testing.T) *inCloud{
		"s3": func(t *testing.T) *inCloud {
			b := newBucket(t)
			h := &halfway{Handler: b.Server, here: make(chan string)}
			return &inCloud{
				halfway: h, kind: s3.Kind(), variable: "WRAP_TEST_S3", address: nettest.Serve(t, h), beside: b.url,
				block: func(address string) *unstable.Entry { return s3Block(inStore(address)) }, own: b.backend("use_lockfile = true"),
				get: func() []byte { return b.Get(stateBucket, stateKey) }, put: func(data []byte) { b.Put(stateBucket, stateKey, data) },
			}
		},
		"gcs": func(t *testing.T) *inCloud {
			s := gcstest.New(stateBucket)
			h := &halfway{Handler: s, here: make(chan string)}
			beside := s.Start(t)
			return &inCloud{
				halfway: h, kind: gcs.Kind(), variable: "WRAP_TEST_GCS", address: nettest.Serve(t, h) + "/storage/v1/", beside: beside,
				block: gcsBlock, own: ownGCS(beside),
				get: func() []byte { return s.Get(stateBucket, gcsState).Data },
				put: func(data []byte) { s.Put(stateBucket, gcsState, gcstest.Object{Data: data}) },
			}
		},
		"azurerm": func(t *testing.T) *inCloud {
			a := newAccount(t)
			h := &halfway{Handler: a.Server, here: make(chan string)}
			internet := cloudtest.New(t, map[string]http.Handler{azuretest.Account + ".blob.core.windows.net": a.Server})
			return &inCloud{
				halfway: h, kind: azurerm.Kind(), variable: "WRAP_TEST_AZURE", address: nettest.Serve(t, h) + "/" + azuretest.Account,
				beside: a.address, block: azureBlock, own: ownAzureBackend,
				environ: append(internet.Environ(nil), "ARM_ACCESS_KEY="+azuretest.Key),
				get:     func() []byte { return a.Get("tfstate", blobOf) },
				put:     func(data []byte) { a.Put("tfstate", blobOf, azuretest.Blob{Data: data}) },
			}
		},
	}
}

// TestKilledRunsInClouds kills wrap while one of its requests is on its way, before the server acts on it or after
// that. There is the old state or the new one, encrypted; the lock has its ID, and after its release the next run finds
// the state. OpenTofu, which waited meanwhile with its own backend, finds it as well.
//
// Promise: States in stores
func TestKilledRunsInClouds(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes are killed")
	}
	for name, start := range stopping() {
		t.Run(name, func(t *testing.T) { killInCloud(t, start(t)) })
	}
}

func killInCloud(t *testing.T, c *inCloud) {
	t.Helper()
	text := func(serial int) string {
		return strings.Replace(numbered(serial), `"outputs":{}`, `"outputs":{"text":{"value":"`+secret+`","type":"string"}}`, 1)
	}
	c.put(seal(t, tofuKeys, text(1)))
	o, _, out := scripted(t, newStore(t), "", "apply")
	o.Environ = withoutAzure(withoutGoogle(o.Environ))
	o.Where.Backend = c.block(c.address)
	o.Keys.State = target(t, tofuKeys) // which OpenTofu opens
	o.Environ = append(o.Environ, c.variable+"="+c.address, "WRAP_TEST_KEYS="+tofuKeys)
	another := func(script string, args ...string) (int, error, string) { //nolint:staticcheck // in the order of Run
		more := o
		more.Command = append(slices.Clone(o.Command[:2]), args...)
		more.Environ = append(slices.Clone(o.Environ), "WRAP_TEST_SCRIPT="+script)
		return run(t, more)
	}
	next := func(what string) {
		t.Helper()
		if code, err, told := another("LOCK="+ofTheCLI+" GET UNLOCK="+ofTheCLI, "apply"); code != 0 || err != nil {
			t.Fatalf("%s: the next run: %d, %v\n%s%s", what, code, err, told, out)
		}
	}
	tofu := c.waiting(t)
	holder := stateOf(t, c.kind, c.block(c.beside))
	serial, total := 1, 0
	writes := func() string {
		return "LOCK=" + ofTheCLI + " GET POST:" + leaseOfCLI + "=" + text(serial+1) + " UNLOCK=" + ofTheCLI
	}
	for range 2 { // the first run tests the server
		c.begins(0, false)
		if code, err, told := another(writes(), "apply"); code != 0 || err != nil {
			t.Fatalf("%d, %v\n%s%s", code, err, told, out)
		}
		serial, total = serial+1, c.begins(0, false)
	}
	began := serial
	points, killed := 2*total, testkit.Rounds(200)
	for round := range killed {
		point := round % points
		if killed < points {
			point = round * points / killed
		}
		stop, acts := 1+point/2, point%2 == 1
		c.begins(stop, acts)
		p := begin(t, o, writes())
		what := ""
		select {
		case what = <-c.here:
		case <-t.Context().Done():
			t.Fatalf("request %d does not come", stop)
		}
		what = fmt.Sprintf("round %d, %s, acts %t", round, what, acts)
		by, err := holder.Holder(t.Context())
		must(t, err)
		waited := func() string { return "" }
		if round%10 == 5 {
			waited = tofu()
		}
		_ = p.Process.Kill()
		_ = p.Wait()
		p.until("") // which the child ends
		c.begins(0, false)
		if by != nil {
			if code, err, told := another("UNLOCK", "force-unlock", by.ID); code != 0 || err != nil {
				t.Fatalf("%s: the lock %q: %d, %v\n%s%s", what, by.ID, code, err, told, out)
			}
		}
		if said := waited(); said != "" {
			t.Fatalf("%s: OpenTofu says\n%s", what, said)
		}
		next(what)
		opened, err := target(t, tofuKeys).Decrypt(t.Context(), c.get())
		if err != nil || !opened.Encrypted {
			t.Fatalf("%s: %v", what, err)
		}
		written := string(opened.Data) == text(serial+1)
		if !written && (string(opened.Data) != text(serial) || strings.Contains(strings.Join(p.said, "\n"), "POST 200")) {
			t.Fatalf("%s: there is %s", what, opened.Data)
		}
		if written {
			serial++
		}
	}
	if serial == began || serial-began == killed || c.plain {
		t.Errorf("%d of %d killed runs have written their state; plaintext was sent: %t", serial-began, killed, c.plain)
	}
	t.Logf("%d requests in a run, %d of %d killed runs have written their state", total, serial-began, killed)
}

// waiting prepares OpenTofu with its own backend, if it is here. The result has it plan, once it has the lock; it
// returns what OpenTofu says if that finds another state.
func (c *inCloud) waiting(t *testing.T) func() func() string {
	t.Helper()
	program := os.Getenv("STATECRYPT_TOFU")
	if program == "" {
		return func() func() string { return func() string { return "" } }
	}
	p := &project{dir: t.TempDir()}
	p.env = append(cloudtest.Isolated(os.Environ()), "HOME="+t.TempDir(), "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_IN_AUTOMATION=1",
		"TF_INPUT=0", "CHECKPOINT_DISABLE=1", "TF_CLI_ARGS=-no-color", "TF_ENCRYPTION="+tofuKeys)
	p.env = append(p.env, c.environ...)
	write(t, filepath.Join(p.dir, "main.tf"), inside(c.own)+`output "text" { value = "`+secret+`" }`)
	if code, out := p.bare(t, program, nil, "init"); code != 0 {
		t.Fatalf("%d\n%s", code, out)
	}
	return func() func() string {
		said := make(chan string)
		go func() {
			code, out := p.bare(t, program, nil, "plan", "-lock-timeout=5m", "-detailed-exitcode")
			if code == 0 {
				out = ""
			}
			said <- out
		}()
		return func() string { return <-said }
	}
}

// stateOf opens the state that a block names.
func stateOf(t *testing.T, kind stores.Kind, block *unstable.Entry) stores.State {
	t.Helper()
	values, err := block.Decode(kind.Table, nil)
	must(t, err)
	s, err := kind.Open(stores.Settings{Values: values, Limit: 1 << 20})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	state, err := s.State(values.String(kind.Named))
	must(t, err)
	return state
}
