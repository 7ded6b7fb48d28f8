package gcpkms_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Promise: Fallbacks
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("the faults of networks take seconds")
	}
	t.Parallel()
	faultHarness(t).Run(t, kindtest.OpenMistakes(t, "gcpkms, faults"))
}

func TestCosts(t *testing.T) { faultHarness(t).RunCosts(t) }

func faultHarness(t *testing.T) kindtest.Faults {
	t.Helper()
	s := service()
	key, stored := kindtest.NewKey(t, build(t, s.Start(t), working()))
	says := func(status string) http.HandlerFunc {
		return (&gcpkmstest.Failure{Status: status, Message: canary + ": the service says too much"}).ServeHTTP
	}
	return kindtest.Faults{
		Server: s,
		Hosts:  []string{gcpkmstest.Host},
		Build: func(t *testing.T, url, ca string, patience time.Duration) driver.KeyProvider {
			p := kindtest.Build(t, gcpkms.BlockOver(leads(strings.TrimPrefix(url, "https://"), ca)), working(), os.LookupEnv)
			gcpkms.SetPatience(p, patience/2) // of two tries
			return p
		},
		Stored: stored,
		Key:    key,
		Reads: func(r *http.Request, _ []byte) bool {
			return r.Method == http.MethodPost && r.URL.Path == "/v1/"+keyA+":decrypt"
		},
		Throttled:   says("RESOURCE_EXHAUSTED"),
		Unavailable: says("UNAVAILABLE"),
		Denied:      says("PERMISSION_DENIED"),
		Disabled:    says("FAILED_PRECONDITION"),
		NotFound:    says("NOT_FOUND"),
		AnotherKey:  says("INVALID_ARGUMENT"),
		Secrets:     []string{canary, gcpkmstest.Token},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "the longest wait of this test is too short to be waited for; see TestCancelledWait",
			"throttled for a year, cancelled":           "the same",
		},
	}
}

// Who gives up while the service is left alone for a moment does not wait for its end.
func TestCancelledWait(t *testing.T) {
	t.Parallel()
	s := service()
	transport := s.Start(t)
	_, stored := kindtest.NewKey(t, build(t, transport, working()))
	ctx, cancel := context.WithCancel(t.Context())
	s.Before = func(context.Context, string, string) *gcpkmstest.Failure {
		time.AfterFunc(time.Second/10, cancel)
		return &gcpkmstest.Failure{Status: "RESOURCE_EXHAUSTED"}
	}
	p := build(t, transport, working())
	gcpkms.SetWait(p, time.Hour)
	if _, err := p.Key(ctx, nil, stored); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// blockOf is the block with its own transport, which finds the service.
func blockOf(t *testing.T, s *gcpkmstest.Service) driver.Block[driver.KeyProvider] {
	t.Helper()
	authority := nettest.NewAuthority()
	server := nettest.Start(t, s, authority.Issue(nil, gcpkmstest.Host).Pair())
	return gcpkms.BlockOver(leads(server.Listener.Addr().String(), authority.PEM))
}

// leads has a transport find a server at this address, whatever it looks for, and trust ca.
func leads(address, ca string) func(*http.Transport) {
	return func(t *http.Transport) {
		t.TLSClientConfig.RootCAs = nettest.Pool(ca)
		t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
	}
}
