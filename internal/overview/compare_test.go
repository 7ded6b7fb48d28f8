package overview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// with returns a state in format 4 with these members.
func with(members string) string {
	return strings.TrimSuffix(`{"version":4,"terraform_version":"1.11.4","serial":7,"lineage":"l",`+members, ",") + "}"
}

// x returns a resource of type x with these instances.
func x(name string, instances ...string) string {
	return `{"mode":"managed","type":"x","name":"` + name + `","provider":"provider[\"example.com/a/x\"]","instances":[` +
		strings.Join(instances, ",") + "]}"
}

// is returns an instance with these attributes and no sensitive ones.
func is(attributes string) string {
	return `{"schema_version":0,"attributes":{` + attributes + `},"sensitive_attributes":[],"private":"c4n4ry"}`
}

func resources(all ...string) string { return with(`"resources":[` + strings.Join(all, ",") + "]") }

const password = `{"attributes":{"id":"1","user":"u","key":"c4n4ry-1"},"sensitive_attributes":[[{"type":"get_attr","value":"key"}]]}`

// TestDiff has each difference that two states can have, and pairs without a difference.
func TestDiff(t *testing.T) {
	t.Parallel()
	golden := testkit.OpenGolden(t, filepath.Join("testdata", "shown.txt"), "diff", canary)
	for name, c := range map[string]struct{ old, now string }{
		"nothing":                {with(`"outputs":{}`), with(`"outputs":{}`)},
		"another spelling":       {resources(x("a", is(`"a":1.50,"b":"é","c":null`))), resources(x("a", is(`"b": "\u00e9", "a": 15e-1`)))},
		"the serial":             {with(""), strings.Replace(with(""), ":7", ":9", 1)},
		"lineage and version":    {with(""), `{"version":4,"terraform_version":"1.12.0","serial":7}`},
		"an output":              {with(`"outputs":{"a":{"value":1,"type":"number"}}`), with(`"outputs":{"b":{"value":1,"type":"number"}}`)},
		"the value of an output": {with(`"outputs":{"a":{"value":1,"type":"number"}}`), with(`"outputs":{"a":{"value":2,"type":"number"}}`)},
		"a secret output": {
			with(`"outputs":{"a":{"value":"c4n4ry-1","type":"string","sensitive":true},"b":{"value":"c4n4ry","type":"string","sensitive":true}}`),
			with(`"outputs":{"a":{"value":"c4n4ry-2","type":"string","sensitive":true},"b":{"value":"open","type":"string"}}`),
		},
		"the type of an output": {
			with(`"outputs":{"a":{"value":["c"],"type":["list","string"]}}`), with(`"outputs":{"a":{"value":["c"],"type":["tuple",["string"]]}}`),
		},
		"resources":       {resources(x("a", is("")), x("b", is(""))), resources(x("b", is("")), x("c", is("")))},
		"a deposed one":   {resources(x("a", is(""))), resources(x("a", is(""), `{"deposed":"0a","attributes":{"id":"i"}}`))},
		"an attribute":    {resources(x("a", is(`"id":"1","name":"n"`))), resources(x("a", is(`"id":"1","name":"m","more":[1]`)))},
		"a secret":        {resources(x("a", password)), resources(x("a", strings.Replace(password, "y-1", "y-2", 1)))},
		"a secret before": {resources(x("a", password)), resources(x("a", is(`"id":"2","user":"u","key":"open"`)))},
		"a secret after":  {resources(x("a", is(`"id":"2","user":"u","key":"c4n4ry"`))), resources(x("a", password))},
		"an output that became secret": {
			with(`"outputs":{"a":{"value":"open","type":"string"}}`), with(`"outputs":{"a":{"value":"c4n4ry","type":"string","sensitive":true}}`),
		},
		"the lineage": {with(""), strings.Replace(with(""), `"l"`, `"m"`, 1)},
		"moved, beside a deposed one": {
			resources(x("a", is(`"id":"1"`))), resources(x("b", is(`"id":"1"`)), x("c", `{"deposed":"0a","attributes":{"id":"1"}}`)),
		},
		"moved, by identity before the id": {
			resources(x("a", `{"attributes":{"id":"1"},"identity":{"k":"v"}}`)),
			resources(x("b", `{"attributes":{"id":"2"},"identity":{"k":"v"}}`), x("c", `{"attributes":{"id":"1"}}`)),
		},
		"a secret without marks": {
			resources(x("a", `{"attributes":{"id":"1","key":"c4n4ry-1"}}`)), resources(x("a", `{"attributes":{"id":"1","key":"c4n4ry-2"}}`)),
		},
		"metadata": {
			resources(x("a", is(""))), resources(x("a", `{"schema_version":1,"status":"tainted","attributes":{},"sensitive_attributes":`+
				`[[{"type":"get_attr","value":"a"}]],"private":"c4n4ry-2","dependencies":["x.b"],"later":1}`)),
		},
		"no longer tainted": {resources(x("a", `{"status":"tainted","attributes":{}}`)), resources(x("a", `{"attributes":{}}`))},
		"added, tainted":    {resources(), resources(x("a", `{"status":"tainted","attributes":{}}`))},
		"what is empty": {resources(x("a", `{"attributes":{}}`)), resources(x("a",
			`{"attributes":{},"dependencies":[],"schema_version":0}`))},
		"the order of marks": {
			resources(x("a",
				`{"attributes":{"a":1,"b":2},"sensitive_attributes":[[{"type":"get_attr","value":"a"}],[{"type":"get_attr","value":"b"}]]}`)),
			resources(x("a",
				`{"attributes":{"a":1,"b":2},"sensitive_attributes":[[{"type":"get_attr","value":"b"}],[{"type":"get_attr","value":"a"}]]}`)),
		},
		"the alias of a provider": {resources(x("a", is(""))), strings.Replace(resources(x("a", is(""))), `x\"]"`, `x\"].west"`, 1)},
		"another provider":        {resources(x("a", is(""))), strings.Replace(resources(x("a", is(""))), `/a/x`, `/b/x`, 1)},
		"moved":                   {resources(x("a", is(`"id":"1"`))), resources(x("b", is(`"id":"1"`)))},
		"moved into a module": {resources(x("a", is(`"id":"1"`))), strings.Replace(resources(x("a", is(`"id":"1"`))), `{"mode"`,
			`{"module":"module.m[0]","mode"`, 1)},
		"moved and changed": {resources(x("a", is(`"id":"1","n":1`))), resources(x("b", is(`"id":"1","n":2`)))},
		"moved, by identity": {
			resources(x("a", `{"attributes":{"id":"1"},"identity":{"k":"c4n4ry"}}`)), resources(x("b",
				`{"attributes":{"id":"2"},"identity":{"k":"c4n4ry"}}`)),
		},
		"moved, one without identity": {resources(x("a", is(`"id":"1"`))), resources(x("b", `{"attributes":{"id":"1"},"identity":{"k":"v"}}`))},
		"not moved, by identity": {
			resources(x("a", `{"attributes":{"id":"1"},"identity":{"k":"v"}}`)), resources(x("b", `{"attributes":{"id":"1"},"identity":{"k":"w"}}`)),
		},
		"not moved, no id": {resources(x("a", is(`"id":""`))), resources(x("b", is(`"id":""`)))},
		"not moved, the id is of two": {resources(x("a", is(`"id":"none"`)), x("c", is(`"id":"none"`))), resources(x("b", is(`"id":"none"`)),
			x("c", is(`"id":"none"`)))},
		"not moved, another provider": {
			resources(x("a", is(`"id":"1"`))), strings.Replace(resources(x("b", is(`"id":"1"`))), `/a/x`, `/b/x`, 1),
		},
		"not moved, another type": {resources(x("a", is(`"id":"1"`))), strings.Replace(resources(x("b", is(`"id":"1"`))), `"type":"x"`,
			`"type":"y"`, 1)},
		"two exchanged": {
			resources(x("a", is(`"id":"1"`)), x("b", is(`"id":"2"`))), resources(x("a", is(`"id":"2"`)), x("b", is(`"id":"1"`))),
		},
		"checks": {
			with(`"check_results":[{"config_addr":"check.a","status":"pass","objects":[{"object_addr":"check.a","status":"pass"}]},` +
				`{"config_addr":"x.a","status":"fail","objects":[{"object_addr":"x.a[0]","status":"fail","failure_messages":["c4n4ry"]}]}]`),
			with(`"check_results":[{"config_addr":"check.a","status":"fail","objects":[{"object_addr":"check.a","status":"fail",` +
				`"failure_messages":["c4n4ry"]}]},{"config_addr":"x.a","status":"pass","objects":[{"object_addr":"x.a[1]","status":"unknown"}]}]`),
		},
		"checks and more": {
			with(`"outputs":{"a":{}},"check_results":[{"config_addr":"check.a","status":"pass"},{"config_addr":"check.b","status":"pass"},` +
				`{"config_addr":"check.d","status":"fail"}]`),
			with(`"check_results":[{"config_addr":"check.a","status":"error"},{"config_addr":"check.c","status":"pass"},` +
				`{"config_addr":"check.d","status":"pass"}]`),
		},
		"format 3, upgraded": {string(file(t, "format-3")),
			strings.ReplaceAll(with(`"outputs":{"names":{"value":["a"],"type":["list","string"]}},`+
				`"resources":[{"mode":"managed","type":"aws_instance","name":"web","provider":"provider.aws","instances":[{"index_key":1,"attributes":`+
				`{"id":"i-1"},"sensitive_attributes":[]}]}]`), "1.11.4", "0.12.31")},
		"format 3": {string(file(t, "format-3")), strings.NewReplacer(`"tags.c4n4ry": "c4n4ry"`, `"tags.c4n4ry": "c4n4ry-2"`, `"tainted": true`,
			`"tainted": false`, `"random_string.password"`, `"random_string.moved"`, `"value": "c4n4ry"`,
			`"value": "c4n4ry-2"`).Replace(string(file(t, "format-3")))},
		"format 1": {string(file(t, "format-1")), strings.ReplaceAll(string(file(t, "format-1")), "c4n4ry", "c4n4ry-2")},
		"marks of a provider": {string(file(t, "provider-marks")), strings.ReplaceAll(string(file(t, "provider-marks")), "c4n4ry",
			"c4n4ry-2")},
		"no marks": {string(file(t, "terraform-0.12")), strings.ReplaceAll(string(file(t, "terraform-0.12")), "c4n4ry",
			"c4n4ry-2")},
		"values that are no JSON": {resources(x("a", is(`"a":[c4n4ry-1]`))), resources(x("a", is(`"a":[c4n4ry-2]`)))},
	} {
		d, err := Compare(state(t, []byte(c.old)), state(t, []byte(c.now)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		shown := ""
		for _, v := range []DiffView{{Paint: painted}, {Values: true, Attributes: []string{"a", "id", "key", "more", "n", "result", "tags",
			"users"}}} {
			var text, asJSON bytes.Buffer
			if err := cmpErrors(d.WriteText(&text, v), d.WriteJSON(&asJSON, v)); err != nil {
				shown += err.Error() + "\n"
				continue
			}
			var members map[string]any
			if err := json.Unmarshal(asJSON.Bytes(), &members); err != nil {
				t.Errorf("%s: %v: %s", name, err, asJSON.String())
			}
			if differs := members["differs"]; differs != (text.String() != "no changes\n") {
				t.Errorf("%s: %v, %s", name, differs, text.String())
			}
			_, after, _ := strings.Cut(asJSON.String(), `"differs"`)
			shown += text.String() + `{"differs"` + after
		}
		golden.Check(t, name, shown)
	}
}

func cmpErrors(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestCompareIsSymmetric: an instance that was added one way was removed the other way, for random states.
func TestCompareIsSymmetric(t *testing.T) {
	t.Parallel()
	for n := range 500 {
		r := rand.New(rand.NewPCG(uint64(n), 1)) //nolint:gosec // states of a test
		some := func() *State {
			var all []string
			for _, name := range []string{"a", "b", "c", "d"} {
				if r.IntN(2) == 0 {
					all = append(all, x(name, is(fmt.Sprintf(`"id":"%d","n":%d`, r.IntN(6), r.IntN(2)))))
				}
			}
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			return state(t, []byte(resources(all...)))
		}
		old, now := some(), some()
		there, err := Compare(old, now)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Compare(now, old)
		if err != nil {
			t.Fatal(err)
		}
		opposite := map[Change]Change{Added: Removed, Removed: Added, Moved: Moved, Changed: Changed}
		describe := func(d *Diff, of func(Change) Change) (all []string) {
			for _, c := range d.Resources {
				addresses := []string{}
				for _, r := range []*Resource{c.Old, c.New} {
					if r != nil {
						addresses = append(addresses, r.String())
					}
				}
				slices.Sort(addresses)
				all = append(all, fmt.Sprint(of(c.Change), addresses, c.Attributes))
			}
			slices.Sort(all)
			return all
		}
		a, b := describe(there, func(c Change) Change { return c }), describe(back, func(c Change) Change { return opposite[c] })
		if !slices.Equal(a, b) {
			t.Errorf("state %d: %q, and back %q", n, a, b)
		}
		if same, err := Compare(old, old); err != nil || !same.IsEmpty() {
			t.Errorf("state %d differs from itself: %+v, %v", n, same, err)
		}
	}
}

// TestEqual: two JSON values are equal if a program reads the same from both.
func TestEqual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[1,2]}`, ` {"b":[1, 2],"a":1.0}`, true},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1,"a":2}`, `{"a":2}`, true},
		{`[1,2]`, `[2,1]`, false},
		{`[[1],2]`, `[[1,2]]`, false},
		{`[""]`, `[]`, false},
		{`"\u00e9"`, `"é"`, true},
		{`"1"`, `1`, false},
		{`"true"`, `true`, false},
		{`true`, `false`, false},
		{``, `null`, true},
		{``, `0`, false},
		{`null`, `false`, false},
		{`100`, `1e2`, true},
		{`0.10`, `1E-1`, true},
		{`-0`, `0.000e5`, true},
		{`-1`, `1`, false},
		{`1e99999999999999999999`, `1e99999999999999999998`, false},
		{`12345678901234567890`, `12345678901234567891`, false},
		{`{"ab":"c"}`, `{"a":"bc"}`, false},
		{`[1,`, `[1, `, false},
	} {
		if got := equal([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
		if got := equal([]byte(c.b), []byte(c.a)); got != c.want {
			t.Errorf("%s and %s: %t", c.b, c.a, got)
		}
	}
}
