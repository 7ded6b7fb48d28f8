package httpsource

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// serveMutualTLS asks each client for a certificate, and takes none for an
// answer unless it is required.
func serveMutualTLS(t *testing.T, auth tls.ClientAuthType, h http.HandlerFunc) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewUnstartedServer(r.handler(h))
	r.TLS = &tls.Config{ClientAuth: auth}
	r.Config.ErrorLog = quiet()
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

// identity is a client certificate with its key.
func identity() attrs {
	certificate := nettest.NewAuthority().Issue(nettest.OfClient(canary))
	return attrs{
		"client_certificate_pem": cty.StringVal(certificate.Chain),
		"client_private_key_pem": cty.StringVal(certificate.Key),
	}
}

func (r *recorder) trusted() attrs { return attrs{"client_ca_certificate_pem": r.ca()} }

// Promise: Verified connections
func TestOwnCA(t *testing.T) {
	s := serveTLS(t, ok)
	at(s.URL).says(t, sourcetest.OpenMistakes(t, "http, TLS"), "an unknown authority")
	at(s.URL, block(s.URL+"/elsewhere", s.trusted())).wantError(t, netfail.UnknownAuthority)
	if snap := at(s.URL, block(s.URL, s.trusted())).want(t, "state"); len(snap.Warnings) > 0 {
		t.Errorf("got the warnings %q", snap.Warnings)
	}
	s.wantRequests(t, 1)
}

// Under statecrypt wrap, Terraform's variables describe wrap. Its authority counts
// for it alone, and its password goes to nobody else.
//
// Promise: Only encrypted states
func TestUnderWrap(t *testing.T) {
	s := serveTLS(t, ok)
	variables := map[string]string{
		"TF_HTTP_ADDRESS": "https://127.0.0.1:1/state", "TF_HTTP_LOCK_ADDRESS": "https://127.0.0.1:1/lock", "TF_HTTP_USERNAME": "statecrypt",
		"TF_HTTP_PASSWORD": canary, "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM": nettest.NewAuthority().PEM,
	}
	r := at(s.URL, block(s.URL, s.trusted()))
	r.env = variables
	r.want(t, "state")
	s.wantRequests(t, 1)
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, _, given := r.BasicAuth(); given {
			t.Error("the password was sent")
		}
		ok(w, r)
	})
	r = at(plain.URL)
	r.env = variables
	r.want(t, "state")
}

// What is missing is an s.
func TestHTTPToTLS(t *testing.T) {
	s := serveTLS(t, ok)
	at(strings.Replace(s.URL, "https:", "http:", 1)).says(t, sourcetest.OpenMistakes(t, "http, TLS at the port"), "http")
	s.wantRequests(t, 0)
}

// Promise: Verified connections
func TestSkipVerification(t *testing.T) {
	s := serveTLS(t, ok)
	snap := at(s.URL, block(s.URL, attrs{"skip_cert_verification": cty.True})).want(t, "state")
	if len(snap.Warnings) != 1 || snap.Warnings[0].Title != netfail.NotVerified {
		t.Fatalf("got the warnings %q", snap.Warnings)
	}
	sourcetest.OpenMistakes(t, "http, warnings").Error(t, "skip_cert_verification", errors.New(snap.Warnings[0].Text))
	plain := serve(t, ok)
	if snap := at(plain.URL, block(plain.URL, attrs{"skip_cert_verification": cty.True})).want(t, "state"); len(snap.Warnings) > 0 {
		t.Errorf("got the warnings %q without TLS", snap.Warnings)
	}
}

func TestClientCertificate(t *testing.T) {
	s := serveMutualTLS(t, tls.RequireAnyClientCert, ok)
	at(s.URL, block(s.URL, s.trusted(), identity())).want(t, "state")
	s.wantRequests(t, 1)
	at(s.URL, block(s.URL, s.trusted())).wantError(t, "certificate required")
	s.wantRequests(t, 1)
}

// A connection that has shown a certificate is not used for what its block
// does not cover, although the server is the same.
func TestClientCertificateStaysInBlock(t *testing.T) {
	s := serveMutualTLS(t, tls.RequestClientCert, func(w http.ResponseWriter, req *http.Request) {
		if covered := strings.HasPrefix(req.URL.Path, "/a/"); covered != (len(req.TLS.PeerCertificates) > 0) {
			t.Errorf("%s: got %d certificates", req.URL, len(req.TLS.PeerCertificates))
		}
		if req.URL.Path == "/a/away" {
			http.Redirect(w, req, "/b/state", 302)
			return
		}
		ok(w, req)
	})
	blocks := []attrs{block(s.URL+"/a/", s.trusted(), identity()), block(s.URL+"/", s.trusted())}
	open := Kind().Start(at("", blocks...).settings()) // one run, whose connections are kept
	for _, path := range []string{"/a/state", "/b/state", "/a/away", "/a-x/state", "/b%2Fstate", "/a/state"} {
		src, err := at(s.URL + path).openIn(open)
		if err != nil {
			t.Fatal(err)
		}
		if snap, err := src.Fetch(t.Context()); err != nil || string(snap.Data) != "state" {
			t.Errorf("%s: got %v", path, err)
		}
	}
	s.wantRequests(t, 7)
}

// A certificate that nobody asked for is not a credential that was sent.
func TestMissingWithCertificate(t *testing.T) {
	for auth, want := range map[tls.ClientAuthType]bool{tls.NoClientCert: false, tls.RequestClientCert: true} {
		s := serveMutualTLS(t, auth, http.NotFound)
		err := at(s.URL, block(s.URL, s.trusted(), identity())).wantError(t)
		if got := missing(t, err).CredentialsSent; got != want {
			t.Errorf("%v: got %t", auth, got)
		}
	}
}

func TestHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.ProtoMajor != 2 || req.Header.Get("Authorization") != "Bearer "+canary {
			t.Errorf("got %s with %q", req.Proto, req.Header.Get("Authorization"))
		}
		if req.URL.Path == "/short" {
			w.Header().Set("Content-Length", "10")
		}
		_, _ = w.Write([]byte("state"))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	ca := (&recorder{Server: s}).trusted()
	own := block(s.URL, ca, attrs{"bearer_token": cty.StringVal(canary)})
	at(s.URL, own).want(t, "state")
	at(s.URL+"/short", own).with("retry_max", cty.NumberIntVal(0)).wantError(t)
}

// One connection serves all reads of a run.
func TestKeepAlive(t *testing.T) {
	conns := map[string]bool{}
	s := serve(t, func(w http.ResponseWriter, req *http.Request) {
		conns[req.RemoteAddr] = true
		ok(w, req)
	})
	open := Kind().Start(at("").settings())
	for range 5 {
		src, err := at(s.URL).openIn(open)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := src.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(conns) != 1 {
		t.Errorf("5 reads took %d connections", len(conns))
	}
}
