package wrap_test

import (
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// azureAccount is an account that wrap has its state in, at an address of an emulator.
type azureAccount struct {
	*azuretest.Server
	address string
}

const blobOf = "net/prod.tfstate"

func newAccount(t *testing.T) *azureAccount {
	t.Helper()
	a := &azureAccount{Server: azuretest.New("tfstate")}
	a.Writes = true
	a.address = nettest.Serve(t, a.Server) + "/" + azuretest.Account
	return a
}

// block leads to the account, with more texts.
func (a *azureAccount) block(more map[string]string) *unstable.Entry {
	return azureWith(a.address, more)
}

// azureBlock leads to the account at an address.
func azureBlock(address string) *unstable.Entry { return azureWith(address, nil) }

func azureWith(address string, more map[string]string) *unstable.Entry {
	settings := map[string]cty.Value{}
	all := map[string]string{"storage_account_name": azuretest.Account, "container_name": "tfstate", "key": blobOf, "blob_endpoint": address,
		"access_key": azuretest.Key}
	maps.Copy(all, more)
	for name, text := range all {
		settings[name] = cty.StringVal(text)
	}
	return unstable.NewEntry("backend.azurerm", azurerm.Kind().Table, settings)
}

// hold gives the blob the lease and the description of a lock.
func (a *azureAccount) hold(lease, description string) {
	a.Change("tfstate", blobOf, true, func(b *azuretest.Blob) {
		b.Lease, b.Metadata = lease, map[string]string{}
		if description != "" {
			b.Metadata["terraformlockid"] = description
		}
	})
}

// withoutAzure is an environment without what describes other stores, and the machine's own.
func withoutAzure(environ []string) []string {
	return slices.DeleteFunc(environ, func(pair string) bool {
		return strings.HasPrefix(pair, "STATECRYPT_HTTP_") || strings.HasPrefix(pair, "ARM_")
	})
}

// These are locks as Terraform takes them, whose ID is that of their lease.
const (
	leaseOfCLI = "0b1e2f3a-4c5d-4e6f-8a7b-9c0d1e2f3a4b"
	ofTheCLI   = `{"ID":"` + leaseOfCLI + `","Operation":"OperationTypeApply","Who":"me@host","Created":"2026-11-27T00:00:00Z"}`
)

// TestInAzure: wrap keeps a state in Azure Storage as it does in a backend, and encrypts one in its place.
//
// Promise: Only encrypted states
func TestInAzure(t *testing.T) {
	needSignals(t)
	sealed := string(seal(t, sealing, state))
	const locked = "LOCK=" + ofTheCLI + " GET "
	record := func(key string) string {
		return `{"version":3,"backend":{"type":"azurerm","config":{"storage_account_name":"` + azuretest.Account +
			`","container_name":"tfstate","key":"` + key + `","environment":null,"metadata_host":null},"hash":1}}`
	}
	mistakes := wraptest.OpenMistakes(t, "in Azure")
	for name, c := range map[string]struct {
		script string
		args   []string
		there  string // in the blob
		record string // of the module's own backend
		held   bool
		bare   bool // the lease has no description
		moveIn bool
		frozen bool
		broken bool // a server that ignores conditions
		code   int
		want   string // what is in the blob, opened
		left   bool   // the lease is
	}{
		"the first":      {script: locked + "POST:" + leaseOfCLI + "=" + state + " UNLOCK=" + ofTheCLI, want: state},
		"the next":       {script: locked + "POST:" + leaseOfCLI + "=" + newer + " UNLOCK=" + ofTheCLI, there: sealed, want: newer},
		"without a lock": {script: "GET POST=" + newer, args: []string{"apply", "-lock=false"}, there: sealed, want: newer},
		"without, while held": {
			script: "GET POST=" + newer, args: []string{"apply", "-lock=false"}, there: sealed, held: true, code: 9, want: state, left: true,
		},
		"held":              {script: "LOCK=" + ofTheCLI, there: sealed, held: true, code: 9, want: state, left: true},
		"held, by nobody":   {script: "LOCK=" + ofTheCLI, there: sealed, bare: true, code: 9, want: state, left: true},
		"apply, killed":     {script: locked + "die", there: sealed, code: 137, want: state, left: true},
		"plan, killed":      {script: locked + "die", args: []string{"plan"}, there: sealed, code: 137, want: state},
		"unlocked by force": {script: "UNLOCK", args: []string{"force-unlock", otherLease}, there: sealed, held: true, want: state},
		"another, by force": {
			script: "UNLOCK", args: []string{"force-unlock", "42"}, there: sealed, held: true, code: 9, want: state, left: true,
		},
		"a plaintext state": {script: "GET", there: filled, code: 9},
		"a policy":          {script: locked + "POST:" + leaseOfCLI + "=" + newer, there: sealed, frozen: true, code: 1, want: state},
		"no conditions":     {script: locked + "POST:" + leaseOfCLI + "=" + newer, there: sealed, broken: true, code: 1, want: state},
		"encrypted in place": {script: "GET", args: []string{"init"}, there: filled, record: record(blobOf), moveIn: true,
			want: counted(filled)},
		"encrypted, no record":   {script: "GET", args: []string{"init"}, there: filled, moveIn: true, want: counted(filled)},
		"encrypted already":      {script: "GET", args: []string{"init"}, there: sealed, moveIn: true, want: state},
		"encrypted, held":        {script: "ready", args: []string{"init"}, there: filled, moveIn: true, held: true, code: 1, left: true},
		"nothing, by the record": {script: locked + "POST:" + leaseOfCLI + "=" + state, record: record("other"), code: 9, left: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			a.Ignores = map[azuretest.Condition]bool{azuretest.IfMatch: c.broken}
			args := c.args
			if args == nil {
				args = []string{"apply"}
			}
			o, dir, out := scripted(t, newStore(t), c.script, args...)
			o.Environ = withoutAzure(o.Environ)
			o.Where.Backend, o.Wishes.EncryptExisting = a.block(nil), c.moveIn
			if c.record != "" {
				write(t, filepath.Join(dir, ".terraform", "terraform.tfstate"), c.record)
			}
			if c.there != "" {
				a.Put("tfstate", blobOf, azuretest.Blob{Data: []byte(c.there)})
			}
			if c.held {
				a.hold(otherLease, describedLock)
			}
			if c.bare {
				a.hold(otherLease, "")
			}
			if c.frozen {
				a.Freeze("tfstate")
			}
			code, err, told := run(t, o)
			mistakes.Ended(t, name, strings.ReplaceAll(told, a.address, "ACCOUNT"), code, err)
			if code != c.code {
				t.Errorf("got %d, %v, want %d\n%s\n%s", code, err, c.code, out, told)
			}
			b := a.Look("tfstate", blobOf)
			if c.want != "" {
				opened, err := target(t, sealing).Decrypt(t.Context(), b.Data)
				if err != nil || !isSameJSON(opened.Data, []byte(c.want)) {
					t.Errorf("the blob has something else, or it does not open: %v", err)
				}
			} else if string(b.Data) != c.there {
				t.Errorf("the blob has %.200s", b.Data)
			}
			if (b.Lease != "") != c.left {
				t.Errorf("the lease is %q", b.Lease)
			}
		})
	}
}

const (
	otherLease    = "11111111-2222-4333-8444-555555555555"
	describedLock = "eyJJRCI6IjExMTExMTExLTIyMjItNDMzMy04NDQ0LTU1NTU1NTU1NTU1NSIsIldobyI6InNvbWVib2R5QGhvc3QifQ==" // it has this ID
)

// TestRecoverInAzure: recover releases a lease that nobody describes, which no CLI can, and only after it has asked.
//
// Promise: States in stores
func TestRecoverInAzure(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "recover in Azure")
	for name, c := range map[string]struct {
		r     states.Recovery
		asked bool
		yes   bool
		works bool
	}{
		"asked, yes": {asked: true, yes: true, works: true},
		"asked, no":  {asked: true},
		"not asked":  {},
		"another ID": {r: states.Recovery{Unlock: otherLease}},
	} {
		a := newAccount(t)
		a.Put("tfstate", blobOf, azuretest.Blob{Data: seal(t, sealing, state)})
		o, dir := recovering(t, newStore(t))
		o.Environ = withoutAzure(o.Environ)
		o.Where.Backend = a.block(nil)
		left, _, _ := scripted(t, newStore(t), "GET leave=errored.tfstate,"+newer, "apply")
		left.Command[1], left.Environ, left.Where.Backend = "-chdir="+dir, withoutAzure(left.Environ), o.Where.Backend
		if code, err := wrap.Run(t.Context(), left); code != 0 || err != nil {
			t.Fatal(code, err)
		}
		a.hold(otherLease, "")
		etag := ""
		shown := func(text string) string {
			if _, after, ok := strings.Cut(text, `"lease-`); ok {
				etag, _, _ = strings.Cut(after, `"`)
			}
			return strings.ReplaceAll(strings.ReplaceAll(text, a.address, "ACCOUNT"), etag, "ETAG")
		}
		if c.asked {
			c.r.Ask = func(question string) bool {
				mistakes.Said(t, name+", asked", shown(question))
				return c.yes
			}
		}
		err, told := recovered(t, o, c.r)
		if err != nil {
			err = shownError{shown(err.Error()), err}
		}
		mistakes.Failed(t, name, shown(told), err)
		b := a.Look("tfstate", blobOf)
		opened, failed := target(t, sealing).Decrypt(t.Context(), b.Data)
		if failed != nil || (err == nil) != c.works || (string(opened.Data) == newer) != c.works || (b.Lease == "") != c.works {
			t.Errorf("%s: %v, %v, the lease %q", name, err, failed, b.Lease)
		}
	}
}

// shownError has the text that users see, without what differs from run to run.
type shownError struct {
	text string
	error
}

func (e shownError) Error() string { return e.text }

// TestEnvironmentInAzure: credentials that are for the store alone are not for the child.
//
// Promise: Only encrypted states
func TestEnvironmentInAzure(t *testing.T) {
	t.Parallel()
	a, key := newAccount(t), strings.Repeat("a2V5", 10)+"a2U="
	a.CustomerKey = key
	o, _, out := scripted(t, newStore(t), "environ", "plan")
	o.Where.Backend = a.block(nil)
	o.Environ = append(withoutAzure(o.Environ), "ARM_ACCESS_KEY="+canary, "ARM_SAS_TOKEN="+canary, "ARM_CUSTOMER_PROVIDED_KEY="+key,
		"ARM_CLIENT_ID=kept")
	o.Stderr = io.Discard
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, out)
	}
	if text := out.String(); strings.Contains(text, canary) || strings.Contains(text, key) || !strings.Contains(text, "ARM_CLIENT_ID=kept") {
		t.Errorf("the child has this:\n%s", text)
	}
}

// TestMoveOutOfAzure: a state that a module has had in another container is read with the credentials of that backend.
func TestMoveOutOfAzure(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	o, dir, out := scripted(t, newStore(t), "pulled GET", "init")
	o.Where.Backend, o.Wishes.EncryptExisting = a.block(nil), true
	o.Environ = append(withoutAzure(o.Environ), "ARM_ACCESS_KEY="+azuretest.Key, "GOOGLE_APPLICATION_CREDENTIALS=")
	write(t, filepath.Join(dir, ".terraform", "terraform.tfstate"),
		`{"version":3,"backend":{"type":"azurerm","config":{"storage_account_name":"others","container_name":"c","key":"k"},"hash":1}}`)
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, out)
	}
	opened, err := target(t, sealing).Decrypt(t.Context(), a.Get("tfstate", blobOf))
	if err != nil || !strings.Contains(string(opened.Data), "others") {
		t.Errorf("the blob has something else, or it does not open: %v", err)
	}
}
