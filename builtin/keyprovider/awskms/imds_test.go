package awskms_test

import (
	"testing"
)

// The role of an EC2 instance, and the switch that leaves its metadata service
// alone. TestMain has switched it off in the environment.
func TestInstanceRole(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	url, asked := instanceMetadata(t, "canary")
	a := anonymous().With("ec2_metadata_service_endpoint", url).With("ec2_metadata_service_endpoint_mode", "IPv4")
	for name, c := range map[string]struct {
		attrs attrs
		used  bool
	}{
		"off in the environment": {a, false},
		"skipped":                {a.With("skip_metadata_api_check", true), false},
		"not skipped":            {a.With("skip_metadata_api_check", false), true},
	} {
		asked.Store(0)
		_, err := provider(t, c.attrs).Key(t.Context(), nil, stored)
		if (err == nil) != c.used || (asked.Load() > 0) != c.used {
			t.Errorf("%s: asked %d times, %v", name, asked.Load(), err)
		}
		clean(t, err)
	}
	if got := server.Requests(); len(got) != 1 || got[0].AccessKey != "ASIAINSTANCE" {
		t.Errorf("got requests %+v", got)
	}
}
