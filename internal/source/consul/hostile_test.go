package consul

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Small answers that would take much memory if all that is in them were kept.
//
// Promise: Cost
func TestSmallAnswersWithMuchInThem(t *testing.T) {
	const limit = 16 << 20
	index := `{"current-hash":"","chunks":[` + strings.Repeat(`"",`, 5<<20) + `""]}`
	for name, answer := range map[string]http.HandlerFunc{
		"entries": sourcetest.Packed("[{}", ",{}", "]", limit),
		"parts": sourcetest.Packed(`[{"Key":"network","Value":"`+base64.StdEncoding.EncodeToString([]byte(index))+`"`, " ", "}]",
			1),
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(answer)
			defer s.Close()
			r := request(t, attrs{"path": text("network")}, nil)
			r.MaxSize = limit
			src := opened(t, settingsOf(attrs{"address": text(s.URL)}), r)
			sourcetest.Allocates(t, 10*limit, func() { _, _ = src.Fetch(t.Context()) })
		})
	}
}

// A server decides how many parts there are, and each of them comes in time.
func TestManySlowParts(t *testing.T) {
	const parts, hash = 30, "0123456789abcdef0123456789abcdef"
	var names []string
	for i := range parts {
		names = append(names, fmt.Sprintf("%q", fmt.Sprintf("network/tfstate.%s/%d", hash, i)))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, value := strings.TrimPrefix(r.URL.Path, "/v1/kv/"), "x"
		if path.Dir(key) == "." {
			value = `{"current-hash":"` + hash + `","chunks":[` + strings.Join(names, ",") + `]}`
		}
		time.Sleep(50 * time.Millisecond)
		_, _ = fmt.Fprintf(w, `[{"Key":%q,"Value":%q}]`, key, base64.StdEncoding.EncodeToString([]byte(value)))
	}))
	defer s.Close()
	kind := Kind()
	kind.Patience = 200 * time.Millisecond
	request := request(t, attrs{"path": text("network")}, nil)
	request.MaxSize = parts * chunk
	src, err := kind.Start(settingsOf(attrs{"address": text(s.URL)}))(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), " 200ms") {
		t.Errorf("got %v", err)
	}
}

// TestWellPacked: an honest state may unpack to far more than a hundred times its size.
func TestWellPacked(t *testing.T) {
	state := make([]byte, 8<<20)
	if got, err := unpack(nettest.Gzip(state), 16<<20, false); err != nil || !bytes.Equal(got, state) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}
