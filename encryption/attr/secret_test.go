package attr_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// service sends a token, or what a profile names, to an address.
func service() attr.Table {
	return attr.Table{Name: "service", Attrs: []attr.Attr{
		{Name: "profile", Type: cty.String, Secret: true, Within: "file"},
		{Name: "identity", Type: cty.String, Sensitive: true, Local: true},
		{Name: "token", Type: cty.String, Sensitive: true, Env: []string{"X_TOKEN"}},
		{Name: "file", Type: cty.String, Secret: true, Place: true, Env: []string{"X_FILE"}},
		{Name: "address", Type: cty.String, Place: true, Env: []string{"X_ADDRESS"}},
	}}
}

// TestSecretsKeepTheirPlace: beside a secret of the code that is sent, no variable
// says where it goes. A profile may lie in a file that a variable names, but not
// if it stands beside another secret. An identity that is never sent keeps no
// variable away.
func TestSecretsKeepTheirPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code          []string // attributes
		file, address bool     // filled by a variable
	}{
		"nothing":                {file: true, address: true},
		"a token":                {code: []string{"token"}},
		"a profile":              {code: []string{"profile"}, file: true},
		"a profile and a token":  {code: []string{"profile", "token"}},
		"an identity":            {code: []string{"identity"}, file: true, address: true},
		"an identity, a token":   {code: []string{"identity", "token"}},
		"an identity, a profile": {code: []string{"identity", "profile"}, file: true},
	} {
		settings := map[string]cty.Value{}
		for _, secret := range c.code {
			settings[secret] = cty.StringVal("OWN")
		}
		env := func(variable string) (string, bool) { return "ENV", variable != "" }
		v, err := attr.NewEntry("x", service(), settings).Decode(service(), env)
		if err != nil || v.Has("file") != c.file || v.Has("address") != c.address {
			t.Errorf("%s: the file is filled: %t, the address: %t, %v", name, v.Has("file"), v.Has("address"), err)
		}
	}
}
