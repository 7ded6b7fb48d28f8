package awsauth

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/world"
)

// The SDK's own chain asks services of the machine. One that never ends its answer
// is not read any further than an answer of AWS may go.
func TestEndlessAnswers(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut { // a token of the instance's service, or its refusal
			w.WriteHeader(http.StatusNotFound)
			return
		}
		chunk := bytes.Repeat([]byte(" "), 1<<16)
		for sent.Load() < 1<<30 {
			n, err := w.Write(chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	nowhere := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", nowhere)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_EC2_METADATA_DISABLED"} {
		t.Setenv(name, "")
	}
	for name, c := range map[string]struct {
		container string
		values    map[string]cty.Value
	}{
		"container": {server.URL, nil},
		"instance":  {"", map[string]cty.Value{"ec2_metadata_service_endpoint": cty.StringVal(server.URL)}},
	} {
		sent.Store(0)
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", c.container)
		s, _ := parse(t, c.values)
		s.World, s.attempts = world.Here(), 1
		_, err := s.Load(t.Context())
		if err == nil || !strings.Contains(err.Error(), "no AWS credentials") {
			t.Errorf("%s: got %v", name, err)
		}
		if n := sent.Load(); n == 0 || n > 64<<20 {
			t.Errorf("%s: %d bytes were sent: %v", name, n, err)
		}
	}
}
