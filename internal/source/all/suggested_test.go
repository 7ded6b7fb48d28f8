package all

import (
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// TestSuggestedBlock: with the url that an error suggests, a secret gets where it is
// missed, and to no neighbour.
func TestSuggestedBlock(t *testing.T) {
	rows := policies(t)
	for _, k := range Kinds() {
		p := rows[k.Name]
		if !p.byURL {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			a := arenaOf(k, p)
			env := a.proxies
			if a.home != nil { // or else the variable is for the host, and suffices
				env = join(a.env(a.asked), a.proxies)
			}
			_, err := a.read(t, a.asked, env)
			lacks, ok := fault.Find[fault.NoBlock](err)
			if !ok {
				t.Fatalf("got %v, want a block", err)
			}
			url, err := strconv.Unquote(strings.TrimPrefix(lacks.Arguments[0], "url = "))
			if err != nil {
				t.Fatal(err)
			}
			block := with(a.own(a.asked), "url", url)
			_, err = a.read(t, a.asked, a.proxies, block)
			a.arrives(t, err, "OWN")
			for name, v := range a.where(a.asked) {
				if name != "repository" && name != "address" && name != "workspaces" && name != "organization" {
					continue
				}
				where := a.where(a.asked)
				where[name], _ = cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
					if v.Type() == cty.String && !v.IsNull() {
						text := strings.TrimSuffix(v.AsString(), ".git")
						v = cty.StringVal(text + "2" + strings.TrimPrefix(v.AsString(), text))
					}
					return v, nil
				})
				_, err := a.readAt(t, where, a.proxies, true, block)
				a.arrives(t, err, "", "OWN")
			}
		})
	}
}
