package remote

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

const outputsPath = "/api/v2/workspaces/ws-0000000000000001/current-state-version-outputs"

// A small document that would take much memory if all that is in it were kept.
//
// Promise: Cost
func TestManyOutputs(t *testing.T) {
	const limit = 1 << 20 // more must not be packed so tightly
	a := answering(t, map[string]http.HandlerFunc{outputsPath: sourcetest.Packed(`{"data":[{}`, ",{}", "]}", limit)})
	a.attrs, a.limit = with(a.attrs, "outputs_only", cty.True), limit
	sourcetest.Allocates(t, 10*limit, func() {
		_, err := a.fetch(t)
		if err == nil {
			t.Error("no error")
		}
	})
}

// Each value is small enough, and there are many.
//
// Promise: Cost
func TestLargeSensitiveOutputs(t *testing.T) {
	const outputs, size = 100, 1 << 19
	var asked atomic.Int64
	var list []string
	h := map[string]http.HandlerFunc{}
	value := strings.Repeat("x", size)
	for i := range outputs {
		id := fmt.Sprintf("wsout-%d", i)
		list = append(list, fmt.Sprintf(`{"id":%q,"attributes":{"name":%[1]q,"sensitive":true,"detailed-type":"string"}}`, id))
		h["/api/v2/state-version-outputs/"+id] = func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			_, _ = fmt.Fprintf(w, `{"data":{"id":%q,"attributes":{"name":%[1]q,"sensitive":true,"detailed-type":"string","value":%[2]q}}}`,
				path.Base(r.URL.Path), value)
		}
	}
	h[outputsPath] = saying(200, `{"data":[`+strings.Join(list, ",")+`]}`)
	a := answering(t, h)
	a.attrs = with(a.attrs, "outputs_only", cty.True)
	_, err := a.fetch(t)
	if !meter.IsTooLarge(err) {
		t.Errorf("got %v", err)
	}
	if n := asked.Load(); n > (1<<20+maxDocument)/size {
		t.Errorf("%d values were read before that", n)
	}
}
