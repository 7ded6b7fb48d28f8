package httpsource

import (
	"crypto/tls"
	"net/http"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

func TestAuthorization(t *testing.T) {
	text := cty.StringVal
	for name, tt := range map[string]struct {
		block attrs
		want  map[string]string
	}{
		"user and password": {attrs{"username": text("u"), "password": text("p")}, map[string]string{"Authorization": "Basic dTpw"}},
		"user only":         {attrs{"username": text("u")}, map[string]string{"Authorization": "Basic dTo="}},
		"password only":     {attrs{"password": text("p")}, map[string]string{"Authorization": "Basic OnA="}},
		"token":             {attrs{"bearer_token": text("t")}, map[string]string{"Authorization": "Bearer t"}},
		"own header": {
			attrs{"headers": cty.MapVal(attrs{"authorization": text("AWS x"), "x-y": text("z")})},
			map[string]string{"Authorization": "AWS x", "X-Y": "z"},
		},
		"nothing": {attrs{}, map[string]string{"Authorization": ""}},
	} {
		s := serve(t, ok)
		at(s.URL, block(s.URL, tt.block)).want(t, "state")
		for header, want := range tt.want {
			if got := s.seen()[0].Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
}

// What cannot be sent is said when the source is opened, before any request.
func TestWrongCredentials(t *testing.T) {
	text := cty.StringVal
	headers := func(name, value string) attrs { return attrs{"headers": cty.MapVal(attrs{name: text(value)})} }
	own := identity()
	golden := sourcetest.OpenMistakes(t, "http, wrong credentials")
	for name, own := range map[string]attrs{
		"token and user":      attrs{"bearer_token": text(canary), "username": text("u")},
		"token and header":    attrs{"bearer_token": text(canary), "headers": headers("Authorization", canary)["headers"]},
		"password and header": attrs{"password": text(canary), "headers": headers("authorization", canary)["headers"]},
		"token, two lines":    attrs{"bearer_token": text(canary + "\nX-Evil: 1")},
		"token, file()":       attrs{"bearer_token": text(canary + "\n")},
		"password, file()":    attrs{"password": text(canary + "\n")},
		"username, file()":    attrs{"username": text("u\n"), "password": text(canary)},
		"header, file()":      headers("Token", canary+"\n"),
		"header, two lines":   headers("Token", canary+"\r\nX-Evil: 1"),
		"header name":         headers(canary+": x", canary),
		"no header name":      headers("", canary),
		"host":                headers("host", canary),
		"framing":             headers("transfer-encoding", canary),
		"twice":               attrs{"headers": cty.MapVal(attrs{"A": text(canary), "a": text(canary)})},
		"no key":              attrs{"client_certificate_pem": own["client_certificate_pem"]},
		"a path for a key":    attrs{"client_private_key_pem": text("~/" + canary)},
		"no certificate":      attrs{"client_private_key_pem": identity()["client_private_key_pem"]},
		"not PEM":             attrs{"client_certificate_pem": text(canary), "client_private_key_pem": text(canary)},
		"another key": attrs{"client_certificate_pem": own["client_certificate_pem"],
			"client_private_key_pem": identity()["client_private_key_pem"]},
		"CA":           attrs{"client_ca_certificate_pem": text(canary)},
		"proxy":        attrs{"proxy": text(canary)},
		"proxy scheme": attrs{"proxy": text("ftp://" + canary)},
	} {
		t.Run(name, func(t *testing.T) {
			r := at("https://example.com/state", block("https://example.com/", own))
			_, err := r.open()
			golden.Error(t, name, err)
			// Nobody else is bothered.
			if _, err := at("https://example.org/state", r.blocks...).open(); err != nil {
				t.Errorf("another address: %v", err)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	const address = "http://example.com/acme/state"
	family := map[string]string{"TF_HTTP_USERNAME": "env", "TF_HTTP_PASSWORD": canary}
	named := func(address string) map[string]string {
		env := map[string]string{"TF_HTTP_ADDRESS": address}
		for name, value := range family {
			env[name] = value
		}
		return env
	}
	text := cty.StringVal
	own := func(more attrs) []attrs { return []attrs{block("http://example.com/acme/", more)} }
	const none = "none"
	golden := sourcetest.OpenMistakes(t, "http, the environment")
	for name, tt := range map[string]struct {
		env    map[string]string
		blocks []attrs
		user   string // what arrives, with the password; or none
		fails  bool
	}{
		"the family names the address":      {named(address), nil, "env:" + canary, false},
		"a block":                           {family, own(nil), "env:" + canary, false},
		"a block with a user":               {family, own(attrs{"username": text("own")}), "own:" + canary, false},
		"a block with a password":           {family, own(attrs{"password": text("own")}), "env:own", false},
		"a block with a token":              {family, own(attrs{"bearer_token": text("own")}), "Bearer own", false},
		"a block elsewhere, address named":  {named(address), []attrs{block("http://example.org/")}, "env:" + canary, false},
		"nobody says where it belongs":      {family, nil, "", true},
		"a key that belongs nowhere":        {map[string]string{"TF_HTTP_CLIENT_PRIVATE_KEY_PEM": canary}, nil, "", true},
		"a user is not a secret":            {map[string]string{"TF_HTTP_USERNAME": "env"}, nil, none, false},
		"an empty password is not a secret": {map[string]string{"TF_HTTP_PASSWORD": ""}, nil, none, false},
		"half a pair in a named environment": {map[string]string{"TF_HTTP_ADDRESS": address,
			"TF_HTTP_CLIENT_PRIVATE_KEY_PEM": "-----BEGIN " + canary}, nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, env := internet(t)
			for name, value := range tt.env {
				env[name] = value
			}
			r := at(address, tt.blocks...)
			r.env = env
			if tt.fails {
				r.says(t, golden, name)
				s.wantRequests(t, 0)
				return
			}
			r.want(t, "state")
			if got := authorization(s.seen()[0]); got != tt.user {
				t.Errorf("got %q, want %q", got, tt.user)
			}
		})
	}
}

func authorization(req *http.Request) string {
	if user, password, ok := req.BasicAuth(); ok {
		return user + ":" + password
	}
	if other := req.Header.Get("Authorization"); other != "" {
		return other
	}
	return "none"
}

// TF_HTTP_ADDRESS alone is enough, as with the http backend. GitLab's own
// instructions have encoded slashes in it.
func TestEnvironmentOnly(t *testing.T) {
	s := serve(t, ok)
	r := reading{
		source: attrs{},
		env: map[string]string{"TF_HTTP_ADDRESS": s.URL + "/projects/acme%2Finfra/state", "TF_HTTP_USERNAME": "u", "TF_HTTP_PASSWORD": canary,
			"TF_HTTP_RETRY_MAX": "0"},
		limit: 1 << 20,
	}
	r.want(t, "state")
	if got := authorization(s.seen()[0]); got != "u:"+canary || s.seen()[0].RequestURI != "/projects/acme%2Finfra/state" {
		t.Errorf("got %q at %s", got, s.seen()[0].RequestURI)
	}
	golden := sourcetest.OpenMistakes(t, "http, TF_HTTP_ADDRESS")
	r.env["TF_HTTP_RETRY_MAX"] = canary
	r.says(t, golden, "a number of tries")
	r.env["TF_HTTP_ADDRESS"] = "https://u:" + canary + "@example.com/"
	r.says(t, golden, "a password in the address")
}

func TestEnvironmentTLS(t *testing.T) {
	s := serveMutualTLS(t, tls.RequireAnyClientCert, ok)
	own := identity()
	env := map[string]string{
		"TF_HTTP_ADDRESS":                   s.URL + "/state",
		"TF_HTTP_CLIENT_CERTIFICATE_PEM":    own["client_certificate_pem"].AsString(),
		"TF_HTTP_CLIENT_PRIVATE_KEY_PEM":    own["client_private_key_pem"].AsString(),
		"TF_HTTP_CLIENT_CA_CERTIFICATE_PEM": s.ca().AsString(),
	}
	r := at(s.URL + "/state")
	r.env = env
	r.want(t, "state")

	delete(env, "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM")
	r.wantError(t, netfail.UnknownAuthority)
	env["TF_HTTP_SKIP_CERT_VERIFICATION"] = "true"
	if snap := r.want(t, "state"); len(snap.Warnings) != 1 {
		t.Errorf("got the warnings %q", snap.Warnings)
	}
	env["TF_HTTP_SKIP_CERT_VERIFICATION"] = "perhaps"
	r.says(t, sourcetest.OpenMistakes(t, "http, TF_HTTP_SKIP_CERT_VERIFICATION"), "perhaps")
	env["TF_HTTP_SKIP_CERT_VERIFICATION"] = "true"
	r.blocks = []attrs{block(s.URL, attrs{"skip_cert_verification": cty.False})}
	r.wantError(t, netfail.UnknownAuthority)
}
