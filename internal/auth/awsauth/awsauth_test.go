package awsauth

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

func parse(t *testing.T, values map[string]cty.Value) (Settings, attr.Values) {
	t.Helper()
	table := attr.Table{Name: "x", Attrs: slices.Concat(CredentialAttrs("X"), NetworkAttrs("x", attr.Attr{
		Name: "endpoints", Attrs: []attr.Attr{{Name: "sts", Type: cty.String}},
	}))}
	v, err := unstable.NewEntry("x", table, values).Decode(table, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(v, "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	return s, v
}

// TestEndpointsOfCredentialsFiles: why a variable may name such a file beside a
// configuration file of the code, and not beside its keys.
func TestEndpointsOfCredentialsFiles(t *testing.T) {
	t.Parallel()
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	credentials := write("credentials", "[default]\nendpoint_url = https://evil\n")
	for config, want := range map[string]string{
		write("without", "[profile x]\nregion = eu-west-1\n"): "https://evil",
		write("with", "[default]\nregion = eu-west-1\n"):      "",
	} {
		profile, err := awsconfig.LoadSharedConfigProfile(t.Context(), "default", func(o *awsconfig.LoadSharedConfigOptions) {
			o.CredentialsFiles, o.ConfigFiles = []string{credentials}, []string{config}
		})
		if err != nil || profile.BaseEndpoint != want {
			t.Errorf("%s: got the endpoint %q, %v", config, profile.BaseEndpoint, err)
		}
	}
}

// TestFilesOfVariables: they are for the identity of the environment, and for a
// profile of the code that is in them.
func TestFilesOfVariables(t *testing.T) {
	t.Parallel()
	env := map[string]string{"AWS_CONFIG_FILE": "/config", "AWS_SHARED_CREDENTIALS_FILE": "/credentials"}
	table := attr.Table{Name: "x", Attrs: CredentialAttrs("X")}
	for name, c := range map[string]struct {
		code                map[string]cty.Value
		config, credentials []string
	}{
		"nothing": {nil, []string{"/config"}, []string{"/credentials"}},
		"profile": {map[string]cty.Value{"profile": cty.StringVal("p")}, []string{"/config"}, []string{"/credentials"}},
		"keys":    {map[string]cty.Value{"access_key": cty.StringVal("a"), "secret_key": cty.StringVal("s")}, nil, nil},
	} {
		v, err := unstable.NewEntry("x", table, c.code).Decode(table, func(name string) (string, bool) { return env[name], true })
		if err != nil {
			t.Fatal(err)
		}
		config, credentials := v.Strings("shared_config_files"), v.Strings("shared_credentials_files")
		if !slices.Equal(config, c.config) || !slices.Equal(credentials, c.credentials) {
			t.Errorf("%s: got %q, %q", name, config, credentials)
		}
	}
}

// TestEndpointOfProfiles: AWS_PROFILE chooses no endpoint for secrets of the code.
func TestEndpointOfProfiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ own, loaded, want string }{
		"of the code":            {"p", "p", "https://profile"},
		"the default one":        {"", "default", "https://profile"},
		"of AWS_PROFILE":         {"", "p", ""},
		"of AWS_PROFILE, beside": {"p", "q", ""},
	} {
		s := Settings{World: world.Here(), OwnEndpoints: true, profile: c.own}
		endpoint := aws.String("https://environment")
		s.SetEndpoint(t.Context(), aws.Config{ConfigSources: []any{
			awsconfig.SharedConfig{Profile: c.loaded, BaseEndpoint: "https://profile"}}}, "KMS", &endpoint)
		if got := aws.ToString(endpoint); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Proxies of the environment serve blocks that it does not fill otherwise, and
// the block's own go before them.
func TestFillProxies(t *testing.T) {
	const own, other = "http://own.example:1", "http://other.example:2"
	env := func(pairs ...string) attr.LookupEnv {
		return func(name string) (string, bool) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1], true
				}
			}
			return "", false
		}
	}
	both := env("HTTP_PROXY", other, "https_proxy", other, "NO_PROXY", "inside.example")
	for name, c := range map[string]struct {
		values              map[string]cty.Value
		env                 attr.LookupEnv
		plain, tls, without string // for http, https and a host of no_proxy
	}{
		"none":          {nil, nil, "", "", ""},
		"environment":   {nil, both, other, other, ""},
		"http only":     {nil, env("http_proxy", other), other, "", ""},
		"http_proxy":    {map[string]cty.Value{"http_proxy": cty.StringVal(own)}, both, own, own, ""},
		"https_proxy":   {map[string]cty.Value{"https_proxy": cty.StringVal(own)}, both, other, own, ""},
		"no https":      {map[string]cty.Value{"https_proxy": cty.StringVal("")}, both, other, "", ""},
		"no_proxy":      {map[string]cty.Value{"no_proxy": cty.StringVal("elsewhere.example")}, both, other, other, other},
		"without a URL": {nil, env("HTTPS_PROXY", "other.example:2"), "", "http://other.example:2", "http://other.example:2"},
	} {
		s, v := parse(t, c.values)
		if err := s.FillProxies(v, c.env); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		transport, err := s.Transport()
		if err != nil {
			t.Fatal(err)
		}
		for address, want := range map[string]string{"http://s3.example": c.plain, "https://s3.example": c.tls,
			"https://inside.example": c.without} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if u, err := transport.Proxy(request); err != nil {
				t.Error(err)
			} else if u != nil {
				got = u.String()
			}
			if got != want {
				t.Errorf("%s: %s goes by %q, not %q", name, address, got, want)
			}
		}
	}
	s, v := parse(t, nil)
	if err := s.FillProxies(v, env("HTTP_PROXY", "canary%zz")); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("not a URL: %v", err)
	}
}
