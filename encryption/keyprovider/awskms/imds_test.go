package awskms_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The role of an EC2 instance, and the switch that leaves its metadata service
// alone. TestMain has switched it off in the environment.
func TestInstanceRole(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	asked := 0
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch {
		case strings.HasSuffix(r.URL.Path, "/api/token"):
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
			fmt.Fprint(w, "token")
		case strings.HasSuffix(r.URL.Path, "/security-credentials/"):
			fmt.Fprint(w, "role")
		case strings.HasSuffix(r.URL.Path, "/security-credentials/role"):
			fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"ASIAINSTANCE","SecretAccessKey":"canary","Token":"canary","Expiration":%q}`,
				time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		default:
			w.WriteHeader(404)
		}
	}))
	t.Cleanup(metadata.Close)
	a := anonymous().With("ec2_metadata_service_endpoint", metadata.URL).With("ec2_metadata_service_endpoint_mode", "IPv4")
	for name, c := range map[string]struct {
		attrs attrs
		used  bool
	}{
		"off in the environment": {a, false},
		"skipped":                {a.With("skip_metadata_api_check", true), false},
		"not skipped":            {a.With("skip_metadata_api_check", false), true},
	} {
		asked = 0
		_, err := provider(t, c.attrs).Key(t.Context(), nil, stored)
		if (err == nil) != c.used || (asked > 0) != c.used {
			t.Errorf("%s: asked %d times, %v", name, asked, err)
		}
		clean(t, err)
	}
	if got := server.Requests(); len(got) != 1 || got[0].AccessKey != "ASIAINSTANCE" {
		t.Errorf("got requests %+v", got)
	}
}
