package remote

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate" //nolint:depguard // the test opens what the source reads
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/remote/tfetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// onlyOutputs asks s for the outputs of the workspace network, with a token that
// may read no more.
func onlyOutputs(t *testing.T, s *tfetest.Server) ask {
	t.Helper()
	s.Tokens[readToken] = tfetest.Outputs
	host, ca := tfetest.Start(t, s)
	return ask{attrs: with(network(host), "outputs_only", cty.True),
		settings: source.Settings{Credentials: blocks(block(host, ca, readToken))}}
}

// The outputs that the service tells are those of the state, to the last digit.
func TestOutputs(t *testing.T) {
	state := []byte(`{"version":4,"terraform_version":"1.12.6","serial":7,"lineage":"x","outputs":{
		"text":    {"value":"<a> & \u2028 ☃","type":"string"},
		"number":  {"value":12345678901234567890.123456789,"type":"number"},
		"bool":    {"value":false,"type":"bool"},
		"list":    {"value":["a","b"],"type":["list","string"]},
		"set":     {"value":[1,2],"type":["set","number"]},
		"tuple":   {"value":["a",1,null],"type":["tuple",["string","number","string"]]},
		"map":     {"value":{"k":"v"},"type":["map","string"]},
		"object":  {"value":{"a":{"b":[]}},"type":["object",{"a":["object",{"b":["list","bool"]}]}]},
		"dynamic": {"value":{"value":"x","type":"string"},"type":["object",{"value":"string","type":"string"}]},
		"null":    {"value":null,"type":"string"},
		"secret":  {"value":{"password":"s3cr3t"},"type":["object",{"password":"string"}],"sensitive":true},
		"hidden":  {"value":null,"type":"string","sensitive":true}
	}}`)
	want, err := tfstate.Parse(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 5, 12, 100} {
		s := server(state)
		s.PageSize = size
		snap, err := onlyOutputs(t, s).fetch(t)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tfstate.Parse(snap.Data)
		if err != nil {
			t.Fatal(err)
		}
		if got.Serial != 0 || got.Lineage != "" || snap.Revision != "" || len(got.Outputs) != len(want.Outputs) {
			t.Errorf("got %d outputs of serial %d, lineage %q, revision %q", len(got.Outputs), got.Serial, got.Lineage, snap.Revision)
		}
		for name, w := range want.Outputs {
			value, err := w.Value()
			if err != nil {
				t.Fatal(err)
			}
			if v, err := got.Outputs[name].Value(); err != nil || !v.RawEquals(value) || got.Outputs[name].Sensitive != w.Sensitive {
				t.Errorf("%s is %#v, %v, want %#v", name, v, err, value)
			}
		}
		asked := s.Requests()
		for _, r := range asked {
			if strings.Contains(r, "state-versions") || strings.HasSuffix(r, "current-state-version") {
				t.Errorf("asked to %s", r)
			}
		}
		if n := len(slices.DeleteFunc(asked, func(r string) bool { return !strings.Contains(r, "/state-version-outputs/") })); n != 2 {
			t.Errorf("asked for %d outputs, want the sensitive ones alone", n)
		}
	}
}

// A service lists no outputs of a state that it cannot read. That is told from a
// state that has none.
func TestNoOutputs(t *testing.T) {
	const encrypted = `{"serial":1,"lineage":"x","meta":{},"encrypted_data":"AAAA","encryption_version":"v0"}`
	const none, unread = `{"version":4,"serial":1,"outputs":{}}`, "the state cannot be read to tell whether it is encrypted"
	says := sourcetest.OpenMistakes(t, "remote, no outputs")
	for name, r := range map[string]struct {
		state  string
		access tfetest.Access
		terse  bool
		fails  bool
	}{
		"none":                     {state: none, access: tfetest.Read},
		"not a word of outputs":    {state: `{"version":4}`, access: tfetest.Read, terse: true},
		"none, and not to be read": {state: none, access: tfetest.Outputs, fails: true},
		"encrypted":                {state: encrypted, access: tfetest.Read, fails: true},
		"encrypted, spelled oddly": {state: `{"version":4,"Encrypted_Data":""}`, access: tfetest.Read, fails: true},
		"outputs, spelled oddly": {state: "{\"version\":4,\"output\u017f\":{\"a\":{}}}", access: tfetest.Read,
			fails: true},
		"encrypted, not to be read": {state: encrypted, access: tfetest.Outputs, fails: true},
		"encrypted by another tool": {state: "age-encryption.org/v1\n", access: tfetest.Read, fails: true},
		"of an older version":       {state: `{"version":3,"modules":[]}`, access: tfetest.Read, fails: true},
		"outputs in a list":         {state: `{"version":4,"outputs":[1]}`, access: tfetest.Read, fails: true},
		"not listed yet": {state: `{"version":4,"outputs":{"a":{"value":"x","type":"string"}}}`, access: tfetest.Read,
			fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := server([]byte(r.state))
			s.Terse = r.terse
			s.SetOutputs(s.Workspace("network"))
			a := onlyOutputs(t, s)
			s.Tokens[readToken] = r.access
			snap, err := a.fetch(t)
			if r.fails {
				says.Error(t, name, err)
				return
			}
			if err != nil || string(snap.Data) != `{"version":4,"outputs":{}}` {
				t.Errorf("got %v, %v", snap, err)
			}
		})
	}
}

func TestOutputsThatCannotBeUsed(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	plain := tfetest.Output{Name: "a", Value: raw(`"x"`), Detail: raw(`"string"`)}
	says := sourcetest.OpenMistakes(t, "remote, outputs that cannot be used")
	for name, r := range map[string]struct {
		outputs []tfetest.Output
		limit   int64
	}{
		"old Terraform": {outputs: []tfetest.Output{plain, {Name: "b", Value: raw(`"x"`)}}},
		"twice":         {outputs: []tfetest.Output{plain, plain}},
		"too large": {outputs: []tfetest.Output{{Name: "a", Value: raw(`"` + strings.Repeat("x", 1000) + `"`), Detail: raw(`"string"`)}},
			limit: 1000},
		"a little larger": {outputs: []tfetest.Output{{Name: "a", Value: raw(`"` + strings.Repeat("x", 900) + `"`), Detail: raw(`"string"`)}},
			limit: 930},
	} {
		t.Run(name, func(t *testing.T) {
			s := server([]byte(`{"version":4}`))
			s.SetOutputs(s.Workspace("network"), r.outputs...)
			a := onlyOutputs(t, s)
			a.limit = r.limit
			_, err := a.fetch(t)
			says.Error(t, name, err)
		})
	}
}

// What a service answers may be meant to do harm.
func TestStrangeOutputs(t *testing.T) {
	const listPath, onePath = "/api/v2/workspaces/ws-0000000000000001/current-state-version-outputs", "/api/v2/state-version-outputs/wsout-1"
	secret := `{"data":[{"id":"wsout-1","attributes":{"name":"canary","sensitive":true,"value":null,"detailed-type":"string"}}]}`
	says := sourcetest.OpenMistakes(t, "remote, strange outputs")
	for name, r := range map[string]struct{ list, one string }{
		"pages without an end": {list: `{"data":[],"meta":{"pagination":{"next-page":2}}}`},
		"pages backwards":      {list: `{"data":[],"meta":{"pagination":{"next-page":-1}}}`},
		"no list":              {list: `{"data":{"canary":1}}`},
		"an ID that is a path": {list: strings.ReplaceAll(secret, "wsout-1", "../organizations")},
		"another name":         {list: secret, one: `{"data":{"id":"wsout-1","attributes":{"name":"other","value":"x","detailed-type":"string"}}}`},
		"another ID":           {list: secret, one: `{"data":{"id":"wsout-2","attributes":{"name":"canary","value":"x","detailed-type":"string"}}}`},
		"another type":         {list: secret, one: `{"data":{"id":"wsout-1","attributes":{"name":"canary","value":1,"detailed-type":"number"}}}`},
		"no value":             {list: secret, one: `{"data":{"id":"wsout-1","attributes":{"name":"canary","detailed-type":"string"}}}`},
		"gone":                 {list: secret, one: ""},
		"too many": {
			list: `{"data":[` + strings.TrimSuffix(strings.Repeat(`{"id":"wsout-1","attributes":{"name":"canary","sensitive":true,"detailed-type":"string"}},`, maxSensitive+1), ",") + `]}`,
			one:  `{"data":{"id":"wsout-1","attributes":{"name":"canary","value":"x","detailed-type":"string"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			code := 200
			if r.one == "" {
				code = 404
			}
			a := answering(t, map[string]http.HandlerFunc{listPath: saying(200, r.list), onePath: saying(code, r.one)})
			a.attrs["outputs_only"] = cty.True
			_, err := a.fetch(t)
			says.Error(t, name, err)
		})
	}
}
