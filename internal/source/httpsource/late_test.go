package httpsource

import (
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
)

// Where the time of a try runs out at the end of its answer, net/http may hand
// over what it has made up of the connection's end.
func TestTimeoutAtTheEnd(t *testing.T) {
	const patience = 100 * time.Millisecond
	src, err := at(serve(t, ok).URL).with("retry_max", cty.NumberIntVal(0)).with("timeout", cty.StringVal(patience.String())).open()
	if err != nil {
		t.Fatal(err)
	}
	// The connection is put aside between the last byte and the end.
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{PutIdleConn: func(error) { time.Sleep(2 * patience) }})
	if snap, err := src.Fetch(ctx); err == nil || !contains(err, netfail.NoAnswer+" within 100ms") {
		t.Errorf("got %+v, %v", snap, err)
	}
}
