package azurevault_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault/azurevaulttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// Promise: Fallbacks
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("the faults of networks take seconds")
	}
	t.Parallel()
	faultHarness(t).Run(t, kindtest.OpenMistakes(t, "azurevault, faults"))
}

func TestCosts(t *testing.T) { faultHarness(t).RunCosts(t) }

func faultHarness(t *testing.T) kindtest.Faults {
	t.Helper()
	s := service()
	key, stored := kindtest.NewKey(t, build(t, s.Start(t), working()))
	says := func(status int, code, inner string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { azurevaulttest.Fail(w, status, code, inner) }
	}
	return kindtest.Faults{
		Server: s,
		Hosts:  []string{"example.vault.azure.net", "login.microsoftonline.com"},
		Build: func(t *testing.T, url, ca string, patience time.Duration) driver.KeyProvider {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(ca))
			transport := &http.Transport{
				DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(url, "https://"))
				},
				TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			}
			t.Cleanup(transport.CloseIdleConnections)
			p := build(t, &http.Client{
				Transport:     transport,
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			}, working())
			azurevault.SetPatience(p, patience)
			return p
		},
		Stored: stored,
		Key:    key,
		At:     func(r *http.Request, _ []byte) bool { return strings.HasSuffix(r.URL.Path, "/decrypt") },
		Reads: func(r *http.Request, _ []byte) bool {
			if r.Host == "example.vault.azure.net" {
				return r.Method == http.MethodPost && r.URL.Path == "/keys/a/"+azurevaulttest.Version+"/decrypt"
			}
			return r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token")
		},
		Throttled:   says(429, "Throttled", ""),
		Unavailable: says(503, "ServiceUnavailable", ""),
		Denied:      says(403, "Forbidden", "ForbiddenByPolicy"),
		Disabled:    says(403, "Forbidden", "KeyDisabled"),
		NotFound:    says(404, "KeyNotFound", ""),
		AnotherKey:  says(400, "BadParameter", ""),
		Secrets:     []string{canary, azurevaulttest.Secret, azurevaulttest.Token},
		Sees: map[string]string{
			"reset in the body, once": netfail.Ended,
			"endless gzip of nothing": netfail.NoAnswer,
			"nested a million deep":   netfail.Invalid,

			"certificate expired": "https://example.vault.azure.net/: " + netfail.NotTrusted + ": x509: certificate has expired",
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "the SDK does not wait for longer than a minute; TestCancelledWhileWaiting cancels " +
				"half of that",
			"throttled for a year, cancelled": "the SDK does not wait for longer than a minute; TestCancelledWhileWaiting cancels such a wait",
		},
		Late: []string{"endless gzip of nothing"},
	}
}

// Ctrl-C does not wait for the next try.
func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := service()
	_, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	s.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "60")
		azurevaulttest.Fail(w, 503, "ServiceUnavailable", "")
		time.AfterFunc(100*time.Millisecond, cancel)
		return true
	}
	begin := time.Now()
	if key, err := build(t, s.Start(t), working()).Key(ctx, nil, stored); !errors.Is(err, context.Canceled) ||
		time.Since(begin) > 45*time.Second {
		t.Errorf("got a key of %d bytes, %v after %s", len(key), err, time.Since(begin))
	}
}
