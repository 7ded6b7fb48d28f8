package tfstate

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// listed are the addresses of a state.
func listed(s *State) (addresses []string, err error) {
	resources, err := s.Resources()
	if err != nil {
		return nil, err
	}
	for r := range resources {
		addresses = append(addresses, r.Address())
	}
	return addresses, nil
}

// addressesOf are the addresses that "show -json" prints, also of its modules.
func addressesOf(m shown) (all []string) {
	for _, r := range m.Resources {
		all = append(all, r.Address)
	}
	for _, inner := range m.Modules {
		all = append(all, addressesOf(inner)...)
	}
	return all
}

// TestResources: what real states list is what the programs that wrote them show, and
// what Resource finds.
func TestResources(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"opentofu", "terraform"} {
		s := parsed(t, readFile(t, program+".tfstate"))
		var doc struct {
			Values struct {
				Root shown `json:"root_module"`
			} `json:"values"`
		}
		decode(t, readFile(t, program+".show.json"), &doc)
		got, err := listed(s)
		want := addressesOf(doc.Values.Root)
		slices.Sort(want)
		if sorted := slices.Sorted(slices.Values(got)); err != nil || len(want) != 19 || !slices.Equal(sorted, want) {
			t.Errorf("%s: got %q, %v, want %q", program, sorted, err, want)
		}
		resources, err := s.Resources()
		if err != nil {
			t.Fatal(err)
		}
		for r := range resources {
			found, err := s.Resource(r.Address())
			if err != nil {
				t.Error(err)
				continue
			}
			if found.Address() != r.Address() || found.Provider != r.Provider || found.Mode != r.Mode || found.Type != r.Type ||
				*found.SchemaVersion != *r.SchemaVersion || found.Size() != r.Size() || found.Marked() != r.Marked() {
				t.Errorf("%s: got %+v, want %+v", r.Address(), r, found)
			}
			open, sensitive, err := r.Values()
			wantOpen, wantSensitive, wantErr := found.Values()
			if err != nil || wantErr != nil || !open.RawEquals(wantOpen) || !sensitive.RawEquals(wantSensitive) {
				t.Errorf("%s: got %#v, %#v, %v", r.Address(), open, sensitive, err)
			}
		}
	}
}

func TestResourcesOf(t *testing.T) {
	t.Parallel()
	resource := func(name, instances string) string {
		return `{"module":"module.a[\"k\"]","mode":"managed","type":"x","name":"` + name + `","instances":` + instances + "}"
	}
	says := golden(t, "lists")
	for name, c := range map[string]struct {
		resources string
		want      []string
		refused   bool
	}{
		"none":        {resources: "[]"},
		"null":        {resources: "null"},
		"no instance": {resources: "[" + resource("y", "[]") + "]"},
		"one":         {resources: "[" + resource("y", "[{}]") + "]", want: []string{`module.a["k"].x.y`}},
		"keys": {resources: "[" + resource("y", `[{"index_key":1},{"index_key":0},{"index_key":"a"}]`) + "]",
			want: []string{`module.a["k"].x.y[1]`, `module.a["k"].x.y[0]`, `module.a["k"].x.y["a"]`}},
		"one to be destroyed": {resources: "[" + resource("y", `[{"deposed":"d"},{}]`) + "]", want: []string{`module.a["k"].x.y`}},
		"a data source": {resources: `[{"mode":"data","type":"x","name":"y","instances":[{}]},{"mode":"other","type":"x","name":"y",` +
			`"instances":[{}]}]`, want: []string{"data.x.y"}},
		"twice":        {resources: "[" + resource("y", "[{}]") + "," + resource("y", "[{}]") + "]", want: []string{`module.a["k"].x.y`, `module.a["k"].x.y`}},
		"no resource":  {resources: "[" + resource("y", "[{}]") + ",1]", refused: true},
		"no list":      {resources: `{"canary":1}`, refused: true},
		"no instances": {resources: "[" + resource("y", `[{},{"index_key":{"canary":1}}]`) + "]", refused: true},
	} {
		got, err := listed(parsed(t, []byte(`{"version":4,"serial":1,"resources":`+c.resources+`}`)))
		if !slices.Equal(got, c.want) || (err != nil) != c.refused {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		if c.refused {
			says.Error(t, name, err)
		}
	}
	old := parsed(t, []byte(`{"version":3,"serial":1,"lineage":"l","modules":[{"path":["root"],"outputs":{},"resources":{}}]}`))
	_, err := listed(old)
	says.Error(t, "an old state", err)
	_, err = listed(&State{Version: 4})
	says.Error(t, "a copy", err)
}

// TestResourcesEnd: who has seen enough breaks off, and may begin again.
func TestResourcesEnd(t *testing.T) {
	t.Parallel()
	s := parsed(t, []byte(`{"version":4,
		"resources":[{"mode":"managed","type":"x","name":"y","instances":[{"index_key":0},{"index_key":1}]}]}`))
	resources, err := s.Resources()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for r := range resources {
			if r.Address() != "x.y[0]" {
				t.Errorf("got %s", r.Address())
			}
			break
		}
	}
}

// TestLongAddresses: the addresses of a small file do not fill the memory.
//
// Promise: Cost
func TestLongAddresses(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	var instances []string
	for i := range 50_000 {
		instances = append(instances, fmt.Sprintf(`{"index_key":%d}`, i))
	}
	file := func(module string) []byte {
		return fmt.Appendf(nil, `{"version":4,"resources":[{"module":%q,"mode":"managed","type":"x","name":"y","instances":[%s]}]}`,
			module, strings.Join(instances, ","))
	}
	if got, err := listed(parsed(t, file("module.network"))); err != nil || len(got) != len(instances) {
		t.Errorf("an honest one: %d, %v", len(got), err)
	}
	got, err := listed(parsed(t, file("module."+strings.Repeat("a", 10_000))))
	if !errors.Is(err, ErrCost) || got != nil {
		t.Errorf("got %d, %v", len(got), err)
	}
}

// TestResourcesKeepNothing: the memory that a list takes is not that of the state.
func TestResourcesKeepNothing(t *testing.T) {
	const one = `{"mode":"managed","type":"x","name":"y","provider":"provider[\"example.com/a/x\"]","instances":[{"schema_version":0,"attributes":{"text":"%s"}}]}`
	const resources = 400
	s := parsed(t, fmt.Appendf(nil, `{"version":4,"resources":[%s]}`,
		strings.TrimSuffix(strings.Repeat(fmt.Sprintf(one, strings.Repeat("x", 10_000))+",", resources), ",")))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := 0
	all, err := s.Resources()
	if err != nil {
		t.Fatal(err)
	}
	for range all {
		got++
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / resources; got != resources || each > 3500 {
		t.Errorf("%d resources of 10 kB allocated %d bytes each", got, each)
	}
}

func BenchmarkList(b *testing.B) {
	s := parsed(b, manyInstances(10<<20))
	b.SetBytes(10 << 20)
	b.ReportAllocs()
	for b.Loop() {
		all, err := s.Resources()
		if err != nil {
			b.Fatal(err)
		}
		for range all {
		}
	}
}
