package provider

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

const resourceState = `{"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"l-1","outputs":{"o":{"value":"o","type":"string"}},"resources":[
	{"mode":"managed","type":"aws_db","name":"main","provider":"provider[\"registry.terraform.io/hashicorp/aws\"].west","instances":[
		{"schema_version":2,"attributes":{"endpoint":"db:5432","port":5432,"tags":{"a":"b"},"replica":null,
			"password":"s3cret","users":[{"name":"n","password":"s3cret"}]},
		 "sensitive_attributes":[[{"type":"get_attr","value":"password"}],
			[{"type":"get_attr","value":"users"},{"type":"index","value":{"value":0,"type":"number"}},
			{"type":"get_attr","value":"password"}]],"private":"cHJpdmF0ZQ=="}]},
	{"mode":"data","type":"aws_ami","name":"all","module":"module.m[\"k\"]","provider":"provider.aws","instances":[
		{"index_key":"x","schema_version":0,"attributes":{"id":"1"}},{"index_key":"y","schema_version":1,"attributes":{"id":"2"}}]}]}`

func readOneResource(t *testing.T, c *configured, cat kinds, set map[string]cty.Value) (*result, error) {
	t.Helper()
	return readOneAs(t, c, cat.resource(dataSource, cat.stateFields()), set)
}

func readOneAs(t *testing.T, c *configured, as reading, set map[string]cty.Value) (*result, error) {
	t.Helper()
	r, problems := as.request(as.kinds, object(t, as.typ(), set), nil)
	if len(problems) > 0 {
		return nil, problems[0].err
	}
	return r.read(t.Context(), c)
}

func resourceMemory(t *testing.T) *memory {
	t.Helper()
	m := plainMemory()
	m.files["resources"] = []byte(resourceState)
	m.files["v3"] = []byte(`{"version":3,"serial":1,"lineage":"l","modules":[]}`)
	m.files["broken"] = []byte(`{"version":4,"resources":[{}]}`)
	for _, name := range []string{"kubeform_resource_user", "kubeform_module"} {
		manifest := ""
		for _, file := range []string{"cr.json", "secret.json"} {
			if data, err := os.ReadFile(filepath.Join("..", "kubestate", "testdata", name, file)); err == nil {
				manifest += string(data) + "\n---\n"
			}
		}
		if manifest == "" {
			t.Fatalf("there is no vector %s", name)
		}
		m.files[name] = []byte(manifest)
	}
	return m
}

var allowed = map[string]cty.Value{"allow_resource_reads": cty.True}

func TestReadResource(t *testing.T) {
	t.Parallel()
	null := cty.NullVal(cty.DynamicPseudoType)
	main := map[string]cty.Value{"address": text1("aws_db.main")}
	with := func(set map[string]cty.Value, name string, v cty.Value) map[string]cty.Value {
		set = maps.Clone(set)
		set[name] = v
		return set
	}
	golden := openMistakes(t, "resource")
	for name, c := range map[string]struct {
		provider, set map[string]cty.Value
		want          map[string]cty.Value // read-only attributes, or a part of the error under "error"
	}{
		"one": {allowed, main, map[string]cty.Value{
			"attributes": cty.ObjectVal(map[string]cty.Value{
				"endpoint": text1("db:5432"), "port": cty.NumberIntVal(5432), "replica": null, "password": null,
				"tags":  cty.ObjectVal(map[string]cty.Value{"a": text1("b")}),
				"users": cty.TupleVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"name": text1("n"), "password": null})}),
			}),
			"sensitive_attributes": null,
			"provider_address":     text1("registry.terraform.io/hashicorp/aws"), "schema_version": cty.NumberIntVal(2), "type": text1("aws_db"),
			"mode":   text1("managed"),
			"serial": cty.NumberIntVal(7), "lineage": text1("l-1"), "terraform_version": text1("1.9.0"), "encrypted": cty.False,
			"revision": text1("r1"),
		}},
		"stored": {allowed, with(main, "store_sensitive", cty.True), map[string]cty.Value{
			"sensitive_attributes": cty.ObjectVal(map[string]cty.Value{
				"password": text1("s3cret"),
				"users":    cty.TupleVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"password": text1("s3cret")})}),
			}),
		}},
		"all instances": {allowed, with(main, "address", text1(`module.m["k"].data.aws_ami.all`)), map[string]cty.Value{
			"attributes": cty.ObjectVal(map[string]cty.Value{
				"x": cty.ObjectVal(map[string]cty.Value{"id": text1("1")}),
				"y": cty.ObjectVal(map[string]cty.Value{"id": text1("2")}),
			}),
			"provider_address": text1("provider.aws"), "schema_version": cty.NullVal(cty.Number), "mode": text1("data"),
		}},
		"one instance": {allowed, with(main, "address", text1(`module.m["k"].data.aws_ami.all["y"]`)), map[string]cty.Value{
			"attributes": cty.ObjectVal(map[string]cty.Value{"id": text1("2")}), "schema_version": cty.NumberIntVal(1),
		}},
		"not allowed": {nil, main, refused},
		"refused": {map[string]cty.Value{"allow_resource_reads": cty.False}, main,
			refused},
		"not known": {map[string]cty.Value{"allow_resource_reads": cty.UnknownVal(cty.Bool)}, main,
			refused},
		"no address":     {allowed, nil, refused},
		"empty address":  {allowed, with(main, "address", text1("")), refused},
		"broken address": {allowed, with(main, "address", text1("a.b.c")), refused},
		"not there": {allowed, with(main, "address", text1("aws_db.mian")),
			refused},
		"old format": {allowed, with(main, "memory", at("v3")), refused},
		"broken": {allowed, with(main, "memory", at("broken")),
			refused},
		"missing":         {allowed, with(main, "memory", at("gone")), refused},
		"another lineage": {allowed, with(main, "expected_lineage", text1("l-2")), refused},
		"old copy":        {allowed, with(main, "minimum_serial", cty.NumberIntVal(8)), refused},
		"plaintext by default": {allowed, with(main, "method", cty.NullVal(cty.String)),
			refused},
		"plaintext forbidden": {map[string]cty.Value{"allow_resource_reads": cty.True, "enforced": cty.True}, main,
			refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := map[string]cty.Value{"memory": at("resources"), "method": text1("unencrypted")}
			maps.Copy(set, c.set)
			cat := newCatalog(resourceMemory(t))
			got, err := readOneResource(t, configureWith(t, cat, nil, c.provider), cat, set)
			wantResult(t, golden, name, got, err, c.want)
		})
	}
}

// refused is wanted if the error is that of the golden.
var refused = map[string]cty.Value{"error": cty.True}

func wantRefused(t *testing.T, golden *testkit.Golden, name string, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	golden.Check(t, name, err.Error())
}

func wantResult(t *testing.T, golden *testkit.Golden, name string, got *result, err error, wanted map[string]cty.Value) {
	t.Helper()
	if _, ok := wanted["error"]; ok {
		wantRefused(t, golden, name, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for attr, want := range wanted {
		if v := got.attribute(attr, want); !v.RawEquals(want) {
			t.Errorf("%s: got %#v, want %#v", attr, v, want)
		}
	}
}

// The ephemeral resource stores nothing, so it gives everything.
func TestEphemeralResourceKeepsSensitive(t *testing.T) {
	t.Parallel()
	cat := newCatalog(resourceMemory(t))
	got, err := readOneAs(t, configureWith(t, cat, nil, allowed), cat.resource(ephemeralResource, cat.stateFields()),
		map[string]cty.Value{"memory": at("resources"), "method": text1("unencrypted"), "address": text1("aws_db.main")})
	if err != nil || !got.attributes["sensitive_attributes"].GetAttr("password").RawEquals(text1("s3cret")) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestResourceReadsShareOneFetch(t *testing.T) {
	t.Parallel()
	m := resourceMemory(t)
	cat := newCatalog(m)
	c := configureWith(t, cat, nil, allowed)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			address := [...]string{"aws_db.main", `module.m["k"].data.aws_ami.all`, `module.m["k"].data.aws_ami.all["x"]`}[i%3]
			if _, err := readOneResource(t, c, cat, map[string]cty.Value{"memory": at("resources"), "method": text1("unencrypted"),
				"address": text1(address)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := m.fetches.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
	// Who reads outputs alone keeps no resources in memory.
	state, err := c.open(t.Context(), mustRequest(t, cat, map[string]cty.Value{"memory": at("resources"), "method": text1("unencrypted")}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Resource("aws_db.main"); err == nil || !strings.Contains(err.Error(), "resources") {
		t.Errorf("got %v", err)
	}
}

func mustRequest(t *testing.T, cat kinds, set map[string]cty.Value) stateRequest {
	t.Helper()
	r, err := requestFor(t, cat, set)
	if err != nil {
		t.Fatal(err)
	}
	return r.stateRequest
}

func kubernetesObject(apiVersion, kind, name, namespace string) cty.Value {
	return one(map[string]cty.Value{"api_version": text1(apiVersion), "kind": text1(kind), "name": text1(name), "namespace": text1(namespace)})
}

var (
	databaseUser = kubernetesObject("digitalocean.kubeform.com/v1alpha1", "DatabaseUser", "app", "demo")
	module       = kubernetesObject("modules.kubeform.com/v1alpha1", "Net", "net", "demo")
)

// moduleManifest is a Kubeform module whose state is this text.
func moduleManifest(state string) []byte {
	return []byte("apiVersion: modules.kubeform.com/v1alpha1\nkind: Net\nmetadata: {name: net, namespace: demo}\nstatus: {state: '" + state +
		"'}\n")
}

// The resource of an object needs no permission and no address: it is the only
// one. What comes from the cluster's secrets is sensitive.
func TestReadResourceOfObject(t *testing.T) {
	t.Parallel()
	golden := openMistakes(t, "resource of an object")
	for name, c := range map[string]struct{ set, want map[string]cty.Value }{
		"the only one": {nil, map[string]cty.Value{
			"attributes": cty.ObjectVal(map[string]cty.Value{
				"id": text1("u-1"), "cluster_id": text1("c-1"), "name": text1("app"), "role": text1("normal"),
				"password": cty.NullVal(cty.DynamicPseudoType),
			}),
			"sensitive_attributes": cty.ObjectVal(map[string]cty.Value{"password": text1("throwaway-db-pw")}),
			"provider_address":     text1("provider.digitalocean"), "type": text1("digitalocean_database_user"), "mode": text1("managed"),
			"encrypted": cty.False, "serial": cty.NumberIntVal(3),
		}},
		"by address": {map[string]cty.Value{"address": text1("digitalocean_database_user.app")},
			map[string]cty.Value{"type": text1("digitalocean_database_user")}},
		"another address": {map[string]cty.Value{"address": text1("digitalocean_database_user.ap")},
			refused},
		"plaintext": {map[string]cty.Value{"method": cty.NullVal(cty.String)},
			refused},
		"not an object": {map[string]cty.Value{"memory": at("resources")}, refused},
		"module": {map[string]cty.Value{"memory": at("module"), "object": module, "address": text1("aws_db.main")},
			map[string]cty.Value{"type": text1("aws_db")}},
		"which one": {map[string]cty.Value{"memory": at("module"), "object": module},
			refused},
		"no state yet": {map[string]cty.Value{"memory": at("empty module"), "object": module},
			refused},
		"a wrong setting": {map[string]cty.Value{"object": kubernetesObject("v1", "Secret", "s", "demo")},
			refused},
		"unmarked as well": {map[string]cty.Value{"memory": at("unmarked"), "object": module},
			map[string]cty.Value{"attributes": cty.NullVal(cty.DynamicPseudoType),
				"sensitive_attributes": cty.ObjectVal(map[string]cty.Value{"p": text1("s3cret")})}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := resourceMemory(t)
			m.files["module"] = moduleManifest(resourceState)
			m.files["empty module"] = []byte("apiVersion: modules.kubeform.com/v1alpha1\nkind: Net\nmetadata: {name: net, namespace: demo}\n")
			m.files["unmarked"] = moduleManifest(`{"version":4,"resources":[{"mode":"managed","type":"x","name":"y","instances":[{"attributes":{"p":"s3cret"}}]}]}`)
			set := map[string]cty.Value{"memory": at("kubeform_resource_user"), "object": databaseUser, "method": text1("unencrypted"),
				"store_sensitive": cty.True}
			maps.Copy(set, c.set)
			cat := newCatalog(m)
			got, err := readOneResource(t, configureWith(t, cat, nil, nil), cat, set)
			wantResult(t, golden, name, got, err, c.want)
		})
	}
}

// The outputs of a module that Kubeform keeps, from a manifest.
func TestReadOutputsOfObject(t *testing.T) {
	t.Parallel()
	m := plainMemory()
	m.files["module"] = moduleManifest(strings.ReplaceAll(plainState, "\n", " "))
	m.files["empty"] = []byte("apiVersion: modules.kubeform.com/v1alpha1\nkind: Net\nmetadata: {name: net, namespace: demo}\n")
	cat := newCatalog(m)
	c := configureWith(t, cat, nil, nil)
	set := map[string]cty.Value{"memory": at("module"), "method": text1("unencrypted")}
	// The manifest itself is no state; that it was refused must not stick.
	if _, err := read(t, c, cat, set); err == nil {
		t.Error("a manifest was read as a state")
	}
	set["object"] = module
	got, err := read(t, c, cat, set)
	if err != nil || !got.attributes["outputs"].GetAttr("open").RawEquals(text1("o")) {
		t.Errorf("got %v, %v", got, err)
	}
	set["object"] = kubernetesObject("modules.kubeform.com/v1alpha1", "Net", "other", "demo")
	if _, err := read(t, c, cat, set); err == nil {
		t.Error("another object was found in the memory")
	}
	set["memory"], set["object"] = at("empty"), module
	set["on_missing"], set["defaults"] = text1("defaults"), cty.EmptyObjectVal
	if got, err := read(t, c, cat, set); err != nil || !got.attributes["exists"].RawEquals(cty.False) {
		t.Errorf("got %v, %v", got, err)
	}
}
