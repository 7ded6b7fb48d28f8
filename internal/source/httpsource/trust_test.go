package httpsource

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// internet is a proxy that plays every host of the Internet, so that look-alikes
// can be asked for by name.
func internet(t *testing.T) (*recorder, map[string]string) {
	s := serve(t, ok)
	return s, map[string]string{"HTTP_PROXY": s.URL}
}

// Promise: Where secrets go
func TestLookAlikes(t *testing.T) {
	for address, covered := range map[string]bool{
		"http://example.com/acme/state":      true,
		"http://example.com:80/acme/state":   true,
		"http://EXAMPLE.com/acme/state":      true,
		"http://example.com/acme":            true,
		"http://example.com/acme/state?a=b":  true,
		"http://example.com.evil.io/acme/s":  false,
		"http://example.com./acme/state":     false,
		"http://evilexample.com/acme/state":  false,
		"http://sub.example.com/acme/state":  false,
		"http://example.com:8080/acme/state": false,
		"http://evil.io/example.com/acme/":   false,
		"http://evil.io?@example.com/acme/":  false,
		"http://example.com/acme-x/state":    false,
		"http://example.com/acmestate":       false,
		"http://example.com/ACME/state":      false,
		"http://example.com/other":           false,
		"http://example.com/":                false,
		"http://example.com//acme/state":     false,
		"http://example.com/acme/../other":   false,
		"http://example.com/acme/..%2fother": false,
		"http://example.com/acme/%2e%2e/x":   false,
		"http://example.com/acme/..;/other":  false,
		"http://example.com/acme%2f..%2fx":   false,
		`http://example.com/acme/..\other`:   false,
		"http://example.com/acme/..%5cother": false,
		"http://example.com/%61cme/state":    false,
		"http://ex\u0430mple.com/acme/state": false,
		"http://example\u3002com/acme/state": false,
	} {
		t.Run(address, func(t *testing.T) {
			s, env := internet(t)
			r := at(address, block("http://example.com/acme/", everything()))
			r.env = env
			r.want(t, "state")
			s.wantRequests(t, 1)
			if !covered {
				s.wantNoSecret(t)
				return
			}
			got := dump(s.seen()[0])
			for _, secret := range []string{"user-" + canary, "password-" + canary, "Private-Token=" + canary, "sig=" + canary} {
				if !strings.Contains(got, secret) {
					t.Errorf("%s did not arrive: %s", secret, got)
				}
			}
		})
	}
}

// Promise: Secrets in text
func TestAddress(t *testing.T) {
	golden := sourcetest.OpenMistakes(t, "http, addresses")
	for _, address := range []string{
		"https://example.com/s ",
		"https://example.com/s\n",
		"git::https://example.com/r.git",
		"s3::https://s3.example.com/b/k",
		"http://example.com@evil.io/",
		"http://user:" + canary + "@example.com",
		"http://" + canary + "@example.com",
		"http://example.com/?token=" + canary,
		"http://example.com/?a=b&PRIVATE_TOKEN=" + canary,
		"http://example.com/?X-Amz-Signature=" + canary,
		"ftp://example.com/" + canary,
		"file:///" + canary,
		"example.com/" + canary,
		"http:example.com/" + canary,
		"http:///" + canary,
		"http://evil.io#@example.com/acme/" + canary,
		"https://example.com/state#" + canary,
		"https://example.com/state#",
		"http://:80/" + canary,
		"http://example.com\\@" + canary,
		"http://example.com:" + canary,
		"http://example.com/\n" + canary,
		"",
	} {
		at(address).says(t, golden, strconv.Quote(address))
	}
}

func TestString(t *testing.T) {
	for address, want := range map[string]string{
		"https://example.com/a%2Fb?name=" + canary: "https://example.com/a%2Fb",
		"HTTPS://example.com:8443":                 "https://example.com:8443",
	} {
		s, err := at(address).open()
		if err != nil || s.String() != want {
			t.Errorf("got %v, %v, want %s", s, err, want)
		}
	}
}

func TestRedirectWithinBlock(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/a/old" {
			http.Redirect(w, req, "new?x=1", http.StatusFound)
			return
		}
		ok(w, req)
	})
	at(s.URL+"/a/old", block(s.URL+"/a/", everything())).want(t, "state")
	s.wantRequests(t, 2)
	for _, req := range s.seen() {
		if _, password, _ := req.BasicAuth(); password != "password-"+canary || req.URL.Query().Get("sig") != "sig="+canary {
			t.Errorf("no secret arrived at %s", req.URL.Path)
		}
		if len(req.URL.Query()["sig"]) != 1 || req.Header.Get("Referer") != "" {
			t.Errorf("got %s", dump(req))
		}
	}
}

// What one block allows does not follow a redirect to where it does not hold.
//
// Promise: Where secrets go
func TestRedirectOutOfBlock(t *testing.T) {
	elsewhere := serve(t, ok)
	s := serve(t, func(w http.ResponseWriter, req *http.Request) {
		switch to := req.URL.Query().Get("to"); {
		case req.URL.Path != "/a/state":
			if strings.Contains(dump(req), canary) {
				t.Errorf("a secret arrived at %s", req.URL.Path)
			}
			ok(w, req)
		case !strings.Contains(dump(req), canary):
			t.Error("no secret arrived where it belongs")
		default:
			http.Redirect(w, req, to, http.StatusTemporaryRedirect)
		}
	})
	secrets := []attrs{
		block(s.URL+"/a/", everything()),
		block(s.URL+"/a/", attrs{"bearer_token": cty.StringVal(canary)}),
		block(s.URL+"/a/", attrs{"headers": cty.MapVal(attrs{"Cookie": cty.StringVal(canary)})}),
	}
	for _, b := range secrets {
		for _, to := range []string{"/b", "/a-x", "/", "//" + elsewhere.Listener.Addr().String() + "/a/state2", elsewhere.URL + "/a/",
			"/a%2f../b"} {
			at(s.URL+"/a/state?to="+url.QueryEscape(to), b).want(t, "state")
		}
	}
	elsewhere.wantRequests(t, 2*len(secrets))
	elsewhere.wantNoSecret(t)
	for _, req := range elsewhere.seen() {
		if req.Header.Get("Referer") != "" {
			t.Errorf("the address is told to others: %s", req.Header.Get("Referer"))
		}
	}
}

// A server that redirects into another block's place gets that place's secret
// sent there, and only there.
func TestRedirectToAnotherBlock(t *testing.T) {
	second := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if got := req.Header.Get("Authorization"); got != "Bearer second" {
			t.Errorf("the second server got %q", got)
		}
		ok(w, req)
	})
	first := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if got := req.Header.Get("Authorization"); got != "Bearer first" {
			t.Errorf("the first server got %q", got)
		}
		http.Redirect(w, req, second.URL, http.StatusFound)
	})
	token := func(s string) attrs { return attrs{"bearer_token": cty.StringVal(s)} }
	at(first.URL, block(first.URL, token("first")), block(second.URL, token("second"))).want(t, "state")
}

// Whether credentials were sent is a question about who says "not found".
func TestMissingAfterRedirect(t *testing.T) {
	gone := serve(t, http.NotFound)
	s := serve(t, func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, gone.URL+"/x?y="+canary, 302)
	})
	err := at(s.URL, block(s.URL, everything())).says(t, sourcetest.OpenMistakes(t, "http, redirected"), "and missing")
	if m := missing(t, err); m.CredentialsSent {
		t.Error("no credentials were sent to the server that answered")
	}
}

// Promise: Where secrets go
func TestRefusedRedirects(t *testing.T) {
	plain := serve(t, ok)
	var to string
	s := serveTLS(t, func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, to, 302) })
	own := block(s.URL, attrs{"client_ca_certificate_pem": s.ca()}, everything())
	golden := sourcetest.OpenMistakes(t, "http, refused redirects")
	for name, target := range map[string]string{
		"to http":       plain.URL + "/" + canary,
		"with a user":   "https://u:" + canary + "@" + s.Listener.Addr().String(),
		"to ftp":        "ftp://example.com/" + canary,
		"in a circle":   "/again",
		"to no address": "https://" + canary + "\x7f/",
	} {
		to = target
		at(s.URL+"/state", own).says(t, golden, name)
	}
	plain.wantRequests(t, 0)
}

// An error of another place than the one that was asked for names it.
func TestErrorAfterRedirect(t *testing.T) {
	broken := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	s := serve(t, func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, broken.URL+"/x?y="+canary, 302)
	})
	at(s.URL).says(t, sourcetest.OpenMistakes(t, "http, redirected away"), "and out of order")
}

// A server does not get to say where credentials are to be added.
func TestRefusedElsewhere(t *testing.T) {
	golden := sourcetest.OpenMistakes(t, "http, redirected and refused")
	other := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) })
	origin := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	to := origin + "/x"
	s := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/state" {
			http.Redirect(w, req, to, 302)
			return
		}
		w.WriteHeader(401)
	})
	err := at(s.URL+"/state").says(t, golden, "another server")
	if block, ok := fault.Find[fault.NoBlock](err); ok {
		t.Errorf("suggested: %+v", block)
	}
	to = "/x"
	err = at(s.URL+"/state").says(t, golden, "the same server")
	if block, _ := fault.Find[fault.NoBlock](err); len(block.Arguments) == 0 || block.Arguments[0] != `url = "`+s.URL+`/x"` {
		t.Errorf("suggested: %+v", block)
	}
}

// A redirect from http to https is fine.
func TestRedirectToHTTPS(t *testing.T) {
	s := serveTLS(t, ok)
	first := serve(t, func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, s.URL+"/x", 301) })
	at(first.URL, block(s.URL, attrs{"client_ca_certificate_pem": s.ca()})).want(t, "state")
}

// The proxy of the root's block sees the secrets, as it must; it is not used
// for anything else.
func TestProxyOfBlock(t *testing.T) {
	proxy := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Host == "covered.example.com" {
			http.Redirect(w, req, "http://other.example.com/", 302)
			return
		}
		t.Errorf("the proxy was asked for %s", req.URL)
	})
	everyone, env := internet(t)
	address, _ := url.Parse(proxy.URL)
	address.User = url.UserPassword("proxy", canary)
	r := at("http://covered.example.com/state", block("http://covered.example.com/", attrs{"proxy": cty.StringVal(address.String())}))
	r.env = env
	r.want(t, "state")
	proxy.wantRequests(t, 1)
	if got := proxy.seen()[0].Header.Get("Proxy-Authorization"); got == "" {
		t.Error("the proxy's password did not arrive")
	}
	everyone.wantRequests(t, 1)
	everyone.wantNoSecret(t)
}

func TestNoProxyWithoutEnvironment(t *testing.T) {
	r := at("http://state.example.invalid/")
	r.wantError(t, "state.example.invalid")
	s, env := internet(t)
	env["NO_PROXY"] = "state.example.invalid"
	r.env = env
	r.wantError(t, "state.example.invalid")
	s.wantRequests(t, 0)
}

func TestConnectProxy(t *testing.T) {
	s := serveTLS(t, ok)
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { nettest.Tunnel(w, r, r.Host) })
	own := attrs{"client_ca_certificate_pem": s.ca(), "bearer_token": cty.StringVal(canary), "proxy": cty.StringVal(proxy.URL)}
	at(s.URL, block(s.URL, own)).want(t, "state")
	proxy.wantRequests(t, 1)
	proxy.wantNoSecret(t) // it only sees the tunnel
	if got := proxy.seen()[0].Method; got != http.MethodConnect {
		t.Errorf("the proxy saw %s", got)
	}
	golden := sourcetest.OpenMistakes(t, "http, proxies")
	for _, code := range []string{"407", "502"} {
		unwilling := serve(t, func(w http.ResponseWriter, _ *http.Request) { hijack(w, "HTTP/1.1 "+code+" "+canary+"\r\n\r\n") })
		own["proxy"] = cty.StringVal(strings.Replace(unwilling.URL, "//", "//u:"+canary+"@", 1))
		at(s.URL, block(s.URL, own)).says(t, golden, code)
	}
}
