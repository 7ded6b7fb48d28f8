package remote

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate" //nolint:depguard // the test opens what the source reads
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Whatever a service lists, what is made of it is a state file or an error.
func FuzzOutputs(f *testing.F) {
	f.Add(`{"data":[{"id":"wsout-1","attributes":{"name":"a","value":["x"],"detailed-type":["list","string"]}}]}`)
	f.Add(`{"data":[{"attributes":{"name":"a","sensitive":true,"value":null,"detailed-type":"string"}},{"attributes":{"name":"b"}}]}`)
	f.Add(`{"data":[{"attributes":{"name":"\ud800","value":1e999,"detailed-type":7}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var answer struct{ Data []output }
		if json.Unmarshal([]byte(text), &answer) != nil {
			return
		}
		x := &exchange{location: &location{limit: 1 << 20}}
		data, err := x.stateOf(answer.Data)
		if err != nil {
			return
		}
		state, err := tfstate.Parse(data)
		if err != nil || len(state.Outputs) != len(answer.Data) {
			t.Errorf("%d outputs make %q: %v", len(answer.Data), data, err)
		}
	})
}

// Whatever a service names, it is asked over https, at one path of its API, and
// no secret is in the URL that errors may show.
func FuzzURLs(f *testing.F) {
	f.Add("/api/v2/", "ws-1")
	f.Add("https://user:pw@tfe.example.com/api/v2/?a=b#c", "../x")
	f.Add("//tfe.example.com:8443", "a/b")
	f.Add("https:tfe", "%2e%2e")
	f.Fuzz(func(t *testing.T, text, id string) {
		base := &url.URL{Scheme: "https", Host: "app.terraform.io", Path: "/.well-known/terraform.json"}
		x := &exchange{location: &location{}, asked: base}
		service, err := x.parseService(text)
		if err != nil {
			return
		}
		if service.Scheme != "https" || service.Hostname() == "" || service.User != nil || service.RawQuery != "" {
			t.Errorf("%q is taken for a service", service)
		}
		data, _ := json.Marshal(map[string]string{"id": id})
		one := relation{Data: data}.id()
		if one == "" {
			return
		}
		got := at(service, "workspaces", one, "current-state-version")
		if source.Origin(got) != source.Origin(service) || !strings.HasSuffix(got.EscapedPath(), "/workspaces/"+one+"/current-state-version") {
			t.Errorf("%q and %q make %s", text, id, got)
		}
	})
}

// Files of the CLIs may hold anything.
func FuzzTokens(f *testing.F) {
	f.Add(`{"credentials": {"app.terraform.io": {"token": "x"}}}`)
	f.Add("credentials \"app.terraform.io\" {\n  token = \"x\"\n}\n")
	f.Add("credentials {\n")
	f.Add("\"credentials\" \"a\" { \"token\" = \"${\\\"x\\\"}\" }\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func([]byte) (map[string]string, error){parseJSON, parseHCL} {
			if tokens, err := parse([]byte(text)); err != nil && tokens != nil {
				t.Errorf("got %v and %v", tokens, err)
			}
		}
	})
}
