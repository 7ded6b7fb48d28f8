package azurevault_test

import (
	"cmp"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault/azurevaulttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// With the environment switched off, what the SDK would read of it by itself
// is not used: there is the same answer as without, or an error before anything
// is sent.
func TestEnvironmentIsSwitchedOff(t *testing.T) {
	for _, name := range []string{"MSI_ENDPOINT", "IDENTITY_ENDPOINT", "IMDS_ENDPOINT"} {
		t.Setenv(name, "")
	}
	key, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	steered := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL.Path) }))
	t.Cleanup(steered.Close)
	msi := bare().With("use_msi", true, "client_id", "off")
	says := kindtest.OpenMistakes(t, "azure_vault, without the environment")
	for name, c := range map[string]struct {
		attrs   attrs
		env     map[string]string
		refused bool
	}{
		"authority": {working(), map[string]string{"AZURE_AUTHORITY_HOST": steered.URL, "AZURE_CLIENT_ID": "canary",
			"AZURE_TENANT_ID": "canary", "AZURE_CLIENT_SECRET": "canary"}, false},
		"settings": {working(), map[string]string{"ARM_CLIENT_SECRET_FILE_PATH": "/nonexistent", "ARM_ENVIRONMENT": "china",
			"ARM_METADATA_HOST": "canary.invalid"}, false},
		"region":           {working(), map[string]string{"AZURE_REGIONAL_AUTHORITY_NAME": "canary"}, true},
		"forced region":    {working(), map[string]string{"MSAL_FORCE_REGION": "canary"}, true},
		"managed identity": {msi, nil, false},
		"app service":      {msi, map[string]string{"IDENTITY_ENDPOINT": steered.URL, "IDENTITY_HEADER": "canary"}, true},
		"cloud shell":      {msi, map[string]string{"MSI_ENDPOINT": steered.URL}, true},
		"arc":              {msi, map[string]string{"IMDS_ENDPOINT": steered.URL}, true},
		"workload identity": {bare().With("use_aks_workload_identity", true),
			map[string]string{"AZURE_CLIENT_ID": "canary", "AZURE_TENANT_ID": azurevaulttest.Tenant,
				"AZURE_FEDERATED_TOKEN_FILE": write(t, "canary")}, true},
		"nothing configured": {bare(), map[string]string{"ARM_TENANT_ID": azurevaulttest.Tenant, "ARM_CLIENT_ID": azurevaulttest.ClientID,
			"ARM_CLIENT_SECRET": azurevaulttest.Secret}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			s := service()
			got, err := buildWith(t, s.Start(t), c.attrs, nil).Key(t.Context(), nil, stored)
			switch {
			case c.refused:
				says.Error(t, name, err)
				if errors.Is(err, driver.ErrNoKey) || len(s.Other())+len(s.Calls()) > 0 {
					t.Errorf("got %v after %q, %q", err, s.Other(), s.Calls())
				}
			case err != nil || string(got) != string(key):
				t.Errorf("got %v", err)
			}
		})
	}
}

// With the environment on, what the SDK reads of it by itself leads a secret of
// the code to no other cloud, and to no other host.
//
// Promise: Where secrets go
func TestSteered(t *testing.T) {
	key, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	for name, c := range map[string]struct{ variable, value, host string }{
		"authority":               {"AZURE_AUTHORITY_HOST", "https://evil.example", " login.microsoftonline.com/"},
		"region":                  {"AZURE_REGIONAL_AUTHORITY_NAME", "westeurope", ""},
		"region with a path":      {"AZURE_REGIONAL_AUTHORITY_NAME", "evil.example/", ""},
		"region with a domain":    {"AZURE_REGIONAL_AUTHORITY_NAME", "evil.example", ""},
		"forced region":           {"MSAL_FORCE_REGION", "westeurope", ""},
		"forced region with path": {"MSAL_FORCE_REGION", "evil.example/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			s := service()
			got, err := buildWith(t, s.Start(t), working(), os.LookupEnv).Key(t.Context(), nil, stored)
			if (c.host != "") != (err == nil && string(got) == string(key)) {
				t.Errorf("got %v", err)
			}
			tokens := 0
			for _, request := range s.Other() {
				if strings.Contains(request, "evil") {
					t.Errorf("the secret may have gone to %s", request)
				}
				if strings.HasPrefix(request, "POST ") && strings.Contains(request, cmp.Or(c.host, "none")) {
					tokens++
				}
			}
			if (c.host != "") != (tokens > 0) {
				t.Errorf("want a token of %q: %q", c.host, s.Other())
			}
		})
	}
}

// The Azure CLI gets no secrets of ours, and nothing but what it needs to run
// where the environment is switched off.
func TestEnvironmentOfTheCLI(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for az is a shell script")
	}
	_, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	dir := t.TempDir()
	script := "#!/bin/sh\nenv >" + dir + "/env\necho '{\"accessToken\":\"" + azurevaulttest.Token + "\",\"expires_on\":4102444800}'\n"
	if err := os.WriteFile(filepath.Join(dir, "az"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"TF_ENCRYPTION", "TF_VAR_passphrase", "TF_HTTP_PASSWORD", "GIT_PASSWORD", "STATE_PASSPHRASE"} {
		t.Setenv(name, canary)
	}
	t.Setenv("AZURE_CONFIG_DIR", "/of/the/user")
	for name, c := range map[string]struct {
		lookup attr.LookupEnv
		own    bool // az sees its own settings
	}{"on": {os.LookupEnv, true}, "off": {nil, false}} {
		if _, err := buildWith(t, service().Start(t), bare().With("use_cli", true), c.lookup).Key(t.Context(), nil, stored); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "env"))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(got); strings.Contains(text, canary) || !strings.Contains(text, "PATH=") ||
			strings.Contains(text, "AZURE_CONFIG_DIR=") != c.own {
			t.Errorf("%s: az saw %s", name, text)
		}
	}
}

func TestProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	cloudtest.CheckProxies(t, "HTTPS_PROXY", "https_proxy")
}

// TestBehindProxy is run by TestProxyOfTheEnvironment.
func TestBehindProxy(t *testing.T) {
	lookup := kindtest.BehindProxy(t)
	p := buildWith(t, nil, working().With("vault_uri", "https://example.vault.invalid"), lookup)
	azurevault.SetPatience(p, 10*time.Second)
	if _, err := p.Key(t.Context(), nil, []byte(`{"ciphertext":"AAAA","key_version":"1","algo":"RSA-OAEP-256"}`)); err == nil {
		t.Error("a vault that is not there has answered")
	}
}
