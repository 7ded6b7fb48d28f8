package wrap_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

// watched is an account, at an address of an emulator and at Azure's own, that records requests and their bodies.
type watched struct {
	account http.Handler
	address string   // for wrap
	environ []string // for the CLIs

	mu     sync.Mutex
	count  int
	stored [][]byte
}

// ServeHTTP implements [http.Handler].
func (w *watched) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	w.mu.Lock()
	w.count++
	w.stored = append(w.stored, body)
	w.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.account.ServeHTTP(rw, r)
}

// requests returns the number of requests since the last call.
func (w *watched) requests() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.count
	w.count = 0
	return n
}

func watch(t *testing.T, account http.Handler) *watched {
	t.Helper()
	w := &watched{account: account}
	w.address = nettest.Serve(t, w) + "/" + azuretest.Account
	internet := cloudtest.New(t, map[string]http.Handler{azuretest.Account + ".blob.core.windows.net": w})
	w.environ = append(internet.Environ(nil), "ARM_ACCESS_KEY="+azuretest.Key)
	return w
}

// accounts are those that tests run with: the faithful one, and Azurite if it is installed.
func accounts(t *testing.T, run func(t *testing.T, w *watched)) {
	t.Helper()
	t.Run("azuretest", func(t *testing.T) {
		t.Parallel()
		a := azuretest.New("tfstate")
		a.Writes = true
		run(t, watch(t, a))
	})
	t.Run("Azurite", func(t *testing.T) {
		t.Parallel()
		program, port := testkit.Program(t, "STATECRYPT_AZURITE"), nettest.Port(t)
		address := net.JoinHostPort("127.0.0.1", port)
		args := []string{"--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence", "--blobHost", "127.0.0.1",
			"--blobPort", port}
		servertest.Start(t, program, args, "AZURITE_ACCOUNTS="+azuretest.Account+":"+azuretest.Key).Await(t, func() bool {
			c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		})
		w := watch(t, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", address, r.In.Host
		}})
		w.do(t, http.MethodPut, "/tfstate?restype=container")
		run(t, w)
	})
}

// do sends a request with the key of the account.
func (w *watched) do(t *testing.T, method, path string, headers ...string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.address+path, nil)
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
	if answer.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s", method, path, answer.Status)
	}
}

const inAzure = "/tfstate/net%2Fprod.tfstate"

// abandon leaves a lock, with its description unless that is "".
func (w *watched) abandon(t *testing.T, description string) {
	t.Helper()
	w.do(t, http.MethodPut, inAzure+"?comp=lease", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1",
		"x-ms-proposed-lease-id", otherLease)
	if description != "" {
		w.do(t, http.MethodPut, inAzure+"?comp=metadata", "x-ms-lease-id", otherLease,
			"x-ms-meta-terraformlockid", base64.StdEncoding.EncodeToString([]byte(description)))
	}
}

// block is the block of the settings.
func (w *watched) block() *unstable.Entry {
	return unstable.NewEntry("backend.azurerm", azurerm.Kind().Table, map[string]cty.Value{
		"storage_account_name": cty.StringVal(azuretest.Account), "container_name": cty.StringVal("tfstate"), "key": cty.StringVal(blobOf),
		"access_key": cty.StringVal(azuretest.Key), "blob_endpoint": cty.StringVal(w.address),
	})
}

const ownAzureBackend = `backend "azurerm" {
  storage_account_name = "` + azuretest.Account + `"
  container_name       = "tfstate"
  key                  = "` + blobOf + `"
}`

func (w *watched) project(t *testing.T) *project {
	t.Helper()
	p := newProject(t, nil, empty)
	p.with.Where.Backend = w.block()
	return p
}

func (w *watched) checkSealed(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, data := range w.stored {
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("this was stored: %.300s", data)
		}
	}
	if len(w.stored) == 0 {
		t.Error("nothing was stored: this test shows nothing")
	}
}

// TestAccAzureTurns has Terraform under wrap and OpenTofu with its own backend work on one blob, from one folder: each
// reads what the other wrote, stops at its lock and says who has it, waits for it, and releases one that was left.
//
// Promise: States in stores
func TestAccAzureTurns(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	program := testkit.Program(t, "STATECRYPT_TOFU")
	accounts(t, func(t *testing.T, w *watched) {
		p := w.project(t)
		if strings.Contains(filepath.Base(p.cli), "tofu") {
			t.Skip("the file for Terraform is not read by this CLI")
		}
		write(t, filepath.Join(p.dir, "main.tf"), strings.Replace(module(empty), "terraform {\n"+empty+"\n}\n", "", 1))
		write(t, filepath.Join(p.dir, "backend.tf"), inside(empty))
		write(t, filepath.Join(p.dir, "backend.tofu"), inside(ownAzureBackend))
		tofu := func(args ...string) (int, string) {
			return p.bare(t, program, append([]string{"TF_ENCRYPTION=" + tofuKeys, "TF_DATA_DIR=.tofu"}, w.environ...), args...)
		}
		p.must(t, "init")
		p.must(t, "apply", "-auto-approve")
		text := "-var=text=" + secret + "2"
		for _, args := range [][]string{{"init"}, {"plan", "-detailed-exitcode"}, {"apply", "-auto-approve", text}} {
			if code, out := tofu(args...); code != 0 {
				t.Fatalf("tofu %q: %d\n%s", args, code, out)
			}
		}
		if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode", text); code != 0 || err != nil {
			t.Errorf("after tofu: %d, %v\n%s", code, err, out)
		}
		for name, release := range map[string]func(){
			"wrap": func() { p.must(t, "force-unlock", "-force", otherLease) },
			"tofu": func() {
				if code, out := tofu("force-unlock", "-force", otherLease); code != 0 {
					t.Errorf("tofu, force-unlock: %d\n%s", code, out)
				}
			},
		} {
			w.abandon(t, abandoned)
			code, err, out := p.wrapped(t, "plan")
			if code == 0 || err != nil || !strings.Contains(out, "ann@host") {
				t.Errorf("%s, held: %d, %v\n%s", name, code, err, out)
			}
			if code, out := tofu("plan"); code == 0 || !strings.Contains(out, "ann@host") {
				t.Errorf("%s, tofu, held: %d\n%s", name, code, out)
			}
			release()
			p.must(t, "plan")
		}

		w.abandon(t, "") // which tofu cannot release
		_, _, out := p.wrapped(t, "plan")
		_, after, found := strings.Cut(out, `"lease-`)
		id, _, _ := strings.Cut(after, `"`)
		if !found {
			t.Fatalf("without a description:\n%s", out)
		}
		if code, out := tofu("force-unlock", "-force", otherLease); code == 0 {
			t.Errorf("tofu has released it\n%s", out)
		}
		p.must(t, "force-unlock", "-force", "lease-"+id)
		w.takeTurns(t, p, tofu)
		w.checkSealed(t)
	})
}

// takeTurns has each program wait for the other one.
func (w *watched) takeTurns(t *testing.T, p *project, tofu func(args ...string) (int, string)) {
	t.Helper()
	slow := newSlowly(t, p.dir)
	first, second := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(first)
		if code, err, out := p.wrapped(t, "apply", "-auto-approve"); code != 0 || err != nil {
			t.Errorf("the first: %d, %v\n%s", code, err, out)
		}
	}()
	_ = read(t, slow.started)
	if code, out := tofu("plan"); code == 0 || !strings.Contains(out, "OperationTypeApply") {
		t.Errorf("tofu, while wrap works: %d\n%s", code, out)
	}
	go func() {
		defer close(second)
		if code, out := tofu("plan", "-lock-timeout=5m", "-detailed-exitcode"); code != 0 {
			t.Errorf("tofu, after it has waited: %d\n%s", code, out)
		}
	}()
	write(t, slow.goOn, "")
	<-first
	<-second

	first, second = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(first)
		if code, out := tofu("apply", "-auto-approve", "-replace=terraform_data.slow"); code != 0 {
			t.Errorf("tofu: %d\n%s", code, out)
		}
	}()
	_ = read(t, slow.started)
	if code, err, out := p.wrapped(t, "plan"); code == 0 || err != nil || !strings.Contains(out, `for "OperationTypeApply"`) {
		t.Errorf("while tofu works: %d, %v\n%s", code, err, out)
	}
	go func() {
		defer close(second)
		if code, err, out := p.wrapped(t, "plan", "-lock-timeout=5m", "-detailed-exitcode"); code != 0 || err != nil {
			t.Errorf("after it has waited: %d, %v\n%s", code, err, out)
		}
	}()
	write(t, slow.goOn, "")
	<-first
	<-second
}

// TestAccAzureEncryptExisting: a state that Terraform's own backend keeps in plaintext is encrypted in its place, under
// its lock; whoever works without wrap is then refused.
//
// Promise: States in stores
func TestAccAzureEncryptExisting(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	accounts(t, func(t *testing.T, w *watched) {
		p := w.project(t)
		write(t, filepath.Join(p.dir, "main.tf"), module(ownAzureBackend))
		for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
			if code, out := p.bare(t, p.cli, w.environ, args...); code != 0 {
				t.Fatalf("%q: %d\n%s", args, code, out)
			}
		}
		write(t, filepath.Join(p.dir, "main.tf"), module(empty))
		p.with.Wishes.EncryptExisting = true
		w.abandon(t, abandoned)
		if code, err, out := p.wrapped(t, "init"); code == 0 || err == nil {
			t.Errorf("while it is locked: %d, %v\n%s", code, err, out)
		}
		w.do(t, http.MethodPut, inAzure+"?comp=lease", "x-ms-lease-action", "break")
		p.must(t, "init")
		p.with.Wishes.EncryptExisting = false
		if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode"); code != 0 || err != nil {
			t.Errorf("encrypted: %d, %v\n%s", code, err, out)
		}
		write(t, filepath.Join(p.dir, "main.tf"), module(ownAzureBackend))
		if code, out := p.bare(t, p.cli, w.environ, "plan"); code == 0 || !strings.Contains(out, `"version" attribute`) && !strings.Contains(out, "encrypt") {
			t.Errorf("without wrap: %d\n%s", code, out)
		}
	})
}

// TestAccAzureRequests: an apply without changes makes few more requests than Terraform's own backend does. At Azure's
// own addresses, it makes five less than at others, as TestRequests of the store shows.
func TestAccAzureRequests(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	a := azuretest.New("tfstate")
	a.Writes = true
	w := watch(t, a)
	p := w.project(t)
	apply := []string{"apply", "-auto-approve"}
	write(t, filepath.Join(p.dir, "main.tf"), module(ownAzureBackend))
	own := 0
	for _, args := range [][]string{{"init"}, apply, apply} {
		w.requests()
		code, out := p.bare(t, p.cli, w.environ, args...)
		if own = w.requests(); code != 0 {
			t.Fatalf("%d\n%s", code, out)
		}
	}
	write(t, filepath.Join(p.dir, "main.tf"), module(empty))
	if err := os.RemoveAll(filepath.Join(p.dir, ".terraform")); err != nil {
		t.Fatal(err)
	}
	a.Create("tfstate")
	p.with = wrap.Options{Where: states.Where{Backend: w.block()}, Wishes: wrap.Wishes{Accept: true}}
	p.must(t, "init")
	p.must(t, apply...)
	w.requests()
	p.must(t, apply...)
	elsewhere := w.requests()
	t.Logf("an apply without changes: %d requests by its own backend, %d elsewhere under wrap", own, elsewhere)
	if elsewhere-5 > own+2 || elsewhere > own+6 {
		t.Errorf("%d requests by its own backend, %d elsewhere under wrap", own, elsewhere)
	}
}
