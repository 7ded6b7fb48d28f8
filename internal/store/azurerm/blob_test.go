package azurerm

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/careful"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// ready proves what locks and writes rely on.
func ready(t *testing.T, s store.State) error {
	t.Helper()
	prover, ok := store.As[store.Prover](s)
	if !ok {
		return errors.New("the state cannot prove anything")
	}
	return prover.Ready(t.Context())
}

// life locks a state, writes it, and releases it.
func life(t *testing.T, s store.State, serial int) error {
	t.Helper()
	if err := s.Lock(t.Context(), storetest.Lock("1")); err != nil {
		return err
	}
	_, version, err := s.Read(t.Context())
	if err == nil {
		_, err = s.Write(t.Context(), storetest.State(serial), version)
	}
	return errors.Join(err, s.Unlock(t.Context(), "1"))
}

// TestCarried: a write keeps what someone has added to the blob by hand, while the lock was held, too.
func TestCarried(t *testing.T) {
	t.Parallel()
	s := atAzure(t)
	s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1), Metadata: map[string]string{"Owner": "net"}, Tier: "Cool", Tags: "a=1"})
	state := s.at(t)
	must(t, state.Lock(t.Context(), storetest.Lock("1")))
	_, version, err := state.Read(t.Context())
	must(t, err)
	s.Change(containerOf, name, false, func(b *azuretest.Blob) { b.Tags = "a=1&team=x y" })
	version, err = state.Write(t.Context(), storetest.State(2), version)
	must(t, err)
	s.Change(containerOf, name, true, func(b *azuretest.Blob) { b.Metadata["note"] = "kept" })
	_, err = state.Write(t.Context(), storetest.State(3), version)
	must(t, err)
	must(t, state.Unlock(t.Context(), "1"))
	b := s.Look(containerOf, name)
	tags, err := url.ParseQuery(b.Tags) // the client sends them in any order
	must(t, err)
	if !maps.Equal(b.Metadata, map[string]string{"owner": "net", "note": "kept"}) || b.Tier != "Cool" || tags.Encode() != "a=1&team=x+y" ||
		string(b.Data) != string(storetest.State(3)) {
		t.Errorf("got %v, tier %q, tags %q, %.50s", b.Metadata, b.Tier, b.Tags, b.Data)
	}
}

// TestCreatedMeanwhile: a state that someone has made since the blob was looked for is not emptied by the lock. Both
// CLIs do that.
//
// Promise: States in stores
func TestCreatedMeanwhile(t *testing.T) {
	t.Parallel()
	for what, serve := range map[string]func(*testing.T) *service{
		"Azure": atAzure, "an emulator": func(t *testing.T) *service { t.Helper(); return emulator(t) },
	} {
		s := serve(t)
		state := s.at(t)
		s.on(func(_ http.ResponseWriter, r *http.Request) bool {
			if full, puts := isPut(r); puts && !full && !strings.HasSuffix(r.URL.Path, objects.ProofSuffix) {
				s.mayBe.Store(nil)
				s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1)})
			}
			return false
		})
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		if _, err := state.Write(t.Context(), storetest.State(2), ""); !errors.Is(err, store.ErrChanged) {
			t.Errorf("%s: %v", what, err)
		}
		if got := s.Get(containerOf, name); string(got) != string(storetest.State(1)) {
			t.Errorf("%s: there is %q", what, got)
		}
	}
}

// TestWrittenMeanwhile: a state that someone without a lock has written between our look and our write stays, whether
// the content or only the metadata have changed, and so does an identical one.
//
// Promise: States in stores
func TestWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change func(b *azuretest.Blob)
		works  bool
	}{
		"another state":    {change: func(b *azuretest.Blob) { b.Data = storetest.State(7) }},
		"an empty blob":    {change: func(b *azuretest.Blob) { b.Data = nil }},
		"only metadata":    {change: func(b *azuretest.Blob) { b.Metadata["a"] = "b" }, works: true},
		"nothing but ETag": {change: func(*azuretest.Blob) {}, works: true},
	} {
		s := atAzure(t)
		s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1)})
		state := s.at(t)
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		_, version, err := state.Read(t.Context())
		must(t, err)
		s.on(func(_ http.ResponseWriter, r *http.Request) bool {
			if full, puts := isPut(r); puts && full {
				s.mayBe.Store(nil)
				s.Change(containerOf, name, true, c.change)
			}
			return false
		})
		_, err = state.Write(t.Context(), storetest.State(2), version)
		if c.works != (err == nil) || err != nil && !errors.Is(err, store.ErrChanged) {
			t.Errorf("%s: %v", what, err)
		}
		if written := string(s.Get(containerOf, name)) == string(storetest.State(2)); written != c.works {
			t.Errorf("%s: written is %t", what, written)
		}
	}
}

// TestFrozen: an immutability policy or a legal hold is found before anything is changed.
func TestFrozen(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "frozen")
	for what, freeze := range map[string]func(s *service){
		"a policy of the container": func(s *service) { s.Freeze(containerOf) },
		"a hold of the blob": func(s *service) {
			s.Change(containerOf, name, false, func(b *azuretest.Blob) { b.Hold = true })
		},
	} {
		s := atAzure(t)
		s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1)})
		freeze(s)
		s.Requests()
		says.Error(t, what, ready(t, s.at(t)))
		for _, r := range s.Requests() {
			if !strings.HasPrefix(r, "HEAD ") {
				t.Errorf("%s: %s", what, r)
			}
		}
		says.Error(t, what+", without a look", life(t, s.at(t), 2))
		if b := s.Look(containerOf, name); b.Lease != "" || string(b.Data) != string(storetest.State(1)) {
			t.Errorf("%s: there is %+v", what, b)
		}
	}
}

// TestIgnored: a server that ignores conditions or leases is found out before anything depends on it.
//
// Promise: States in stores
func TestIgnored(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "a server that ignores")
	for _, c := range []azuretest.Condition{azuretest.IfNoneMatch, azuretest.IfMatch, azuretest.Leases} {
		s := emulator(t, c)
		s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1)})
		says.Error(t, string(c), life(t, s.at(t), 2))
		if got := s.Get(containerOf, name); string(got) != string(storetest.State(1)) {
			t.Errorf("%s: there is %q", c, got)
		}
		s.Put(containerOf, name, left(ofCLI, storetest.Lock(ofCLI)))
		if err := s.at(t).Lock(t.Context(), storetest.Lock("1")); err == nil || s.Look(containerOf, name).Lease != ofCLI {
			t.Errorf("%s, a foreign lock: %v", c, err)
		}
	}
}

// TestBusy: a service that has no time for a moment is asked again, and one that never has any leaves everything as it
// is.
func TestBusy(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "a service without time")
	for what, c := range map[string]struct {
		status int
		code   string
		stays  bool
	}{
		"429":                  {429, "TooManyRequests", false},
		"503":                  {503, "ServerBusy", false},
		"503, always":          {503, "ServerBusy", true},
		"429, always":          {429, "TooManyRequests", true},
		"409, another request": {409, "PendingCopyOperation", true},
	} {
		s := atAzure(t)
		s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1)})
		seen := map[string]bool{}
		s.on(func(w http.ResponseWriter, r *http.Request) bool {
			request := r.Method + r.URL.RawQuery + r.Header.Get("x-ms-lease-action") + r.Header.Get("x-ms-lease-id")
			refuses := c.stays && r.Method == http.MethodPut || !c.stays && !seen[request]
			seen[request] = true
			if refuses {
				azuretest.Fail(w, c.status, c.code)
			}
			return refuses
		})
		err := life(t, careful.New(s.at(t), store.Properties{HasLocks: true}), 2)
		s.mayBe.Store(nil)
		if c.stays {
			says.Error(t, what, err)
		} else if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if b := s.Look(containerOf, name); b.Lease != "" || (string(b.Data) == string(storetest.State(2))) == c.stays {
			t.Errorf("%s: there is %+v", what, b)
		}
	}
}

// TestRights: the permissions that the guide names are enough, and each of them is needed.
func TestRights(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "rights", azuretest.Key)
	sas := func(letters string) []any {
		return []any{"access_key", nil, "sas_token", strings.Replace(azuretest.SAS, "sp=r", "sp="+letters, 1)}
	}
	identity := []any{"access_key", nil, "tenant_id", azuretest.Tenant, "client_id", azuretest.ClientID, "client_secret", azuretest.Secret,
		"use_cli", false}
	role, err := os.ReadFile("../../../examples/stores/azurerm/role.json")
	must(t, err)
	var writer struct{ DataActions []string }
	must(t, json.Unmarshal(role, &writer))
	without := func(action string) []string {
		return slices.DeleteFunc(slices.Clone(writer.DataActions), func(a string) bool { return a == action })
	}
	for what, c := range map[string]struct {
		block   []any
		actions []string
		tags    string
		denied  bool
	}{
		"signature":                   {block: sas("rw")},
		"signature, index tags":       {block: sas("rwt"), tags: "a=b"},
		"signature without w":         {block: sas("r"), denied: true},
		"signature without r":         {block: sas("w"), denied: true},
		"signature without t":         {block: sas("rw"), tags: "a=b", denied: true},
		"identity":                    {block: identity, actions: writer.DataActions[:2]},
		"identity, index tags":        {block: identity, tags: "a=b", actions: writer.DataActions},
		"identity without read":       {block: identity, actions: without(azuretest.ReadAction), denied: true},
		"identity without write":      {block: identity, actions: without(azuretest.WriteAction), denied: true},
		"identity without tags/read":  {block: identity, actions: without(azuretest.TagsAction), tags: "a=b", denied: true},
		"identity without tags/write": {block: identity, actions: without(azuretest.TagAction), tags: "a=b", denied: true},
	} {
		s := atAzure(t)
		s.Actions = c.actions
		if c.tags != "" {
			s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1), Tags: c.tags})
		}
		state := s.at(t, c.block...)
		err = errors.Join(ready(t, state), life(t, state, 2))
		if !c.denied {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if !errors.Is(err, store.ErrDenied) {
			t.Errorf("%s: %v", what, err)
		}
		says.Error(t, what, life(t, state, 3))
	}
}

// TestKeys: a key of the customer, or an encryption scope, is used for everything that needs it.
func TestKeys(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	s := atAzure(t)
	s.CustomerKey = key
	must(t, life(t, s.at(t, "customer_provided_key", key, "snapshot", true), 1))
	must(t, life(t, s.at(t, "customer_provided_key", key, "snapshot", true), 2))
	if err := life(t, s.at(t), 3); err == nil {
		t.Error("without the key, it works")
	}
	if b := s.Look(containerOf, name); len(b.Snapshots) != 1 || string(b.Snapshots[0]) != string(storetest.State(1)) {
		t.Errorf("the snapshots are %q", b.Snapshots)
	}
	scoped := atAzure(t)
	must(t, life(t, scoped.at(t, "encryption_scope", "states"), 1))
	if b := scoped.Look(containerOf, name); b.Scope != "states" {
		t.Errorf("the scope is %q", b.Scope)
	}
	if _, err := openStore(t, block().with("customer_provided_key", key, "encryption_scope", "states"), s.network); err == nil {
		t.Error("both are accepted")
	}
}

// TestList: a list has several pages, and neither deleted blobs nor proofs nor folders.
func TestList(t *testing.T) {
	t.Parallel()
	s := atAzure(t)
	for _, blob := range []string{"net/a", "net/b", "net/c", "net/d", "net/d" + objects.ProofSuffix, "net/e/", "other"} {
		s.Put(containerOf, blob, azuretest.Blob{Data: storetest.State(1)})
	}
	s.Put(containerOf, "net/deleted", azuretest.Blob{Data: storetest.State(1), Deleted: true})
	opened, err := openStore(t, s.block, s.network)
	must(t, err)
	names, err := opened.List(t.Context(), "net/")
	if err != nil || !slices.Equal(names, []string{"net/a", "net/b", "net/c", "net/d"}) {
		t.Errorf("got %v, %v", names, err)
	}
	blobs, _, err := blobsIn([]byte(`<?xml version="1.0"?><EnumerationResults><Blobs><Blob><Name Encoded="true">a%EF%BF%BE</Name></Blob>` +
		`<Blob><Name>folder</Name><Properties><ResourceType>directory</ResourceType></Properties></Blob></Blobs></EnumerationResults>`))
	if err != nil || len(blobs) != 1 || blobs[0].name != "a\ufffe" {
		t.Errorf("got %+v, %v", blobs, err)
	}
	if _, _, err := blobsIn([]byte("hello")); err == nil {
		t.Error("a text is a list")
	}
}

// TestSoftDeleted: a deleted blob is no state, and the next one takes its place.
func TestSoftDeleted(t *testing.T) {
	t.Parallel()
	s := atAzure(t)
	s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1), Deleted: true})
	state := s.at(t)
	if data, version, err := state.Read(t.Context()); data != nil || version != "" || err != nil {
		t.Errorf("got %q, %q, %v", data, version, err)
	}
	must(t, life(t, state, 2))
	if got := s.Get(containerOf, name); string(got) != string(storetest.State(2)) {
		t.Errorf("there is %q", got)
	}
}

// TestRequests counts the requests of a command that changes nothing, and of a write. The backend of Terraform 1.11
// sends 10 requests in the first case.
func TestRequests(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		serve       func(t *testing.T) *service
		idle, write int
	}{
		"Azure":       {atAzure, 10, 2},
		"an emulator": {func(t *testing.T) *service { t.Helper(); return emulator(t) }, 15, 2},
	} {
		s := c.serve(t)
		s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1)})
		state := s.at(t)
		must(t, ready(t, state))
		_, _, err := state.Read(t.Context())
		must(t, err)
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		_, version, err := state.Read(t.Context())
		must(t, err)
		idle := s.Requests()
		_, err = state.Write(t.Context(), storetest.State(2), version)
		must(t, err)
		write := s.Requests()
		must(t, state.Unlock(t.Context(), "1"))
		idle = append(idle, s.Requests()...)
		if len(idle) != c.idle || len(write) != c.write {
			t.Errorf("%s: %d requests, and %d to write:\n%s\n\n%s", what, len(idle), len(write), strings.Join(idle, "\n"), strings.Join(write, "\n"))
		}
	}
}

// TestIsStateOf: the backend that a module has had is known by its account, container and blob, in the same cloud.
func TestIsStateOf(t *testing.T) {
	t.Parallel()
	theirs := func(more ...any) map[string]any {
		out := map[string]any{"storage_account_name": azuretest.Account, "container_name": containerOf, "key": name, "environment": nil}
		for i := 0; i < len(more); i += 2 {
			out[more[i].(string)] = more[i+1]
		}
		return out
	}
	const own = "https://" + azuretest.Account + ".privatelink.blob.core.windows.net"
	for what, c := range map[string]struct {
		block []any
		kind  string
		with  map[string]any
		same  bool
	}{
		"the same":               {kind: "azurerm", with: theirs(), same: true},
		"the public cloud":       {kind: "azurerm", with: theirs("environment", "public"), same: true},
		"another cloud":          {kind: "azurerm", with: theirs("environment", "china")},
		"the same other cloud":   {kind: "azurerm", with: theirs("environment", "china"), block: []any{"environment", "china"}, same: true},
		"another metadata host":  {kind: "azurerm", with: theirs("metadata_host", "stack.example")},
		"another account":        {kind: "azurerm", with: theirs("storage_account_name", "others")},
		"another container":      {kind: "azurerm", with: theirs("container_name", "others")},
		"another key":            {kind: "azurerm", with: theirs("key", "net/prodenv:dev")},
		"another kind":           {kind: "s3", with: theirs()},
		"our private endpoint":   {kind: "azurerm", with: theirs(), block: []any{"blob_endpoint", own}, same: true},
		"our emulator":           {kind: "azurerm", with: theirs(), block: []any{"blob_endpoint", "http://127.0.0.1:10000/" + azuretest.Account}},
		"a list in place of key": {kind: "azurerm", with: theirs("key", []any{name})},
	} {
		shared, ok := store.As[store.Shared](atAzure(t).at(t, c.block...))
		if !ok {
			t.Fatal("it is not shared")
		}
		if same, err := shared.IsStateOf(c.kind, c.with); same != c.same || err != nil {
			t.Errorf("%s: %t, %v", what, same, err)
		}
	}
}

// TestMistakes: what is wrong in a block is told without a request.
func TestMistakes(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "a block", azuretest.Key)
	for what, more := range map[string][]any{
		"a container with a slash":     {"container_name", "states/net"},
		"a key with dots":              {"key", "net/../prod"},
		"a key that ends with a line":  {"key", "net\n"},
		"a long key":                   {"key", strings.Repeat("x", 1020)},
		"an endpoint of others":        {"blob_endpoint", "https://others.blob.core.windows.net"},
		"an endpoint with http":        {"blob_endpoint", "http://" + azuretest.Account + ".example"},
		"an identity over http":        {"blob_endpoint", "http://127.0.0.1/" + azuretest.Account, "access_key", nil, "use_cli", true},
		"a lookup, no subscription":    {"access_key", nil, "resource_group_name", "states", "use_cli", false},
		"no account":                   {"storage_account_name", nil},
		"a key with a connection":      {"access_key", "DefaultEndpointsProtocol=https;AccountKey=" + azuretest.Key},
		"a short customer key":         {"customer_provided_key", "c2hvcnQ="},
		"a signature that is a URL":    {"access_key", nil, "sas_token", "https://x?sig=y"},
		"a signature that has expired": {"access_key", nil, "sas_token", "sp=r&se=2020-01-01&sig=y"},
	} {
		b := block().with(more...)
		opened, err := openStore(t, b, atAzure(t).network)
		if err == nil {
			_, err = opened.State(b["key"].AsString())
		}
		says.Error(t, what, err)
	}
}

// TestCosts: a list has what anyone has written who can write to the container.
func TestCosts(t *testing.T) {
	const list = `<?xml version="1.0"?><EnumerationResults><Blobs><Blob><Name>a</Name></Blob></Blobs></EnumerationResults>`
	amplification.Grow(t, 300, amplification.InXML(list), func(_ *testing.T, file string) func() error {
		return func() error {
			_, _, err := blobsIn([]byte(file))
			return err
		}
	})
}
