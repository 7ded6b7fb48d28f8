package azurerm

import (
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// backendAttributes are all arguments of the backends of OpenTofu 1.12 and
// Terraform 1.11, with their variables.
func backendAttributes() map[string][]string {
	return map[string][]string{
		"storage_account_name": nil, "container_name": nil, "key": nil, "resource_group_name": nil,
		"metadata_host": {"ARM_METADATA_HOST"}, "environment": {"ARM_ENVIRONMENT"},
		"access_key": {"ARM_ACCESS_KEY"}, "sas_token": {"ARM_SAS_TOKEN"}, "snapshot": {"ARM_SNAPSHOT"},
		"client_id": {"ARM_CLIENT_ID"}, "client_id_file_path": {"ARM_CLIENT_ID_FILE_PATH"},
		"endpoint": nil, "timeout_seconds": {"ARM_TIMEOUT_SECONDS"},
		"subscription_id": {"ARM_SUBSCRIPTION_ID"}, "tenant_id": {"ARM_TENANT_ID"},
		"client_certificate": {"ARM_CLIENT_CERTIFICATE"}, "client_certificate_password": {"ARM_CLIENT_CERTIFICATE_PASSWORD"},
		"client_certificate_path": {"ARM_CLIENT_CERTIFICATE_PATH"},
		"client_secret":           {"ARM_CLIENT_SECRET"}, "client_secret_file_path": {"ARM_CLIENT_SECRET_FILE_PATH"},
		"use_msi": {"ARM_USE_MSI"}, "msi_endpoint": {"ARM_MSI_ENDPOINT"},
		"use_oidc": {"ARM_USE_OIDC"}, "oidc_token": {"ARM_OIDC_TOKEN"},
		"oidc_token_file_path": {"ARM_OIDC_TOKEN_FILE_PATH", "AZURE_FEDERATED_TOKEN_FILE"},
		"oidc_request_url":     {"ARM_OIDC_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_URL", "SYSTEM_OIDCREQUESTURI"},
		"oidc_request_token":   {"ARM_OIDC_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "SYSTEM_ACCESSTOKEN"},
		"ado_service_connection_id": {"ARM_ADO_PIPELINE_SERVICE_CONNECTION_ID", "ARM_OIDC_AZURE_SERVICE_CONNECTION_ID",
			"AZURESUBSCRIPTION_SERVICE_CONNECTION_ID"},
		"use_aks_workload_identity": {"ARM_USE_AKS_WORKLOAD_IDENTITY"}, "use_azuread_auth": {"ARM_USE_AZUREAD"}, "use_cli": {"ARM_USE_CLI"},
		"customer_provided_key": {"ARM_CUSTOMER_PROVIDED_KEY"},
		"encryption_scope":      {"ARM_ENCYRPTION_SCOPE"}, //nolint:misspell // the backend spells it so
		// Of Terraform alone.
		"lookup_blob_endpoint": {"ARM_USE_DNS_ZONE_ENDPOINT"}, "ado_pipeline_service_connection_id": {"ARM_ADO_PIPELINE_SERVICE_CONNECTION_ID"},
	}
}

// leftOut are the arguments of the backends that a reader has no use for.
func leftOut() map[string]string {
	return map[string]string{
		"snapshot":                           "it has a snapshot made before each write",
		"encryption_scope":                   "it is for writing; the service knows how to decrypt what it has",
		"endpoint":                           "the backend does not use it any more",
		"lookup_blob_endpoint":               "it looks the endpoint up with further requests; blob_endpoint says it",
		"ado_pipeline_service_connection_id": "it is called ado_service_connection_id, as in OpenTofu; the variables are the same",
	}
}

func TestAttributesOfTheBackend(t *testing.T) {
	t.Parallel()
	ours := map[string]attr.Attr{}
	for _, a := range slices.Concat(table().Attrs, credentials().Attrs) {
		ours[a.Name] = a // of subscription_id, the one of credentials
	}
	left := leftOut()
	for name, env := range backendAttributes() {
		a, ok := ours[name]
		switch {
		case ok == (left[name] != ""):
			t.Errorf("%s is accepted: %t, and left out because %q", name, ok, left[name])
		case ok && !slices.Equal(a.Env, env):
			t.Errorf("%s: got the variables %q, want %q", name, a.Env, env)
		}
	}
	own := []string{"name", "credentials_name", "blob_endpoint", "version_id"}
	for name, a := range ours {
		if _, known := backendAttributes()[name]; !known && !slices.Contains(own, name) {
			t.Errorf("%s is no argument of the backend", name)
		}
		secret := name == "client_secret" || strings.HasSuffix(name, "_password") || strings.HasSuffix(name, "_key") ||
			strings.HasSuffix(name, "_token") || name == "client_certificate"
		if a.Secrecy.IsHidden() != secret {
			t.Errorf("%s is sensitive: %t", name, a.Secrecy.IsHidden())
		}
		if !strings.HasSuffix(a.Doc, ".") {
			t.Errorf("%s: the documentation is no sentence", name)
		}
	}
	for _, a := range table().Attrs {
		if a.Secrecy.IsHidden() {
			t.Errorf("%s is a secret in a data source", a.Name)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, workspace, want string }{
		{"network.tfstate", "default", "network.tfstate"},
		{"network.tfstate", "", "network.tfstate"},
		{"network.tfstate", "prod", "network.tfstateenv:prod"},
		{"a/b/network.tfstate", "prod-1", "a/b/network.tfstateenv:prod-1"},
		{"a b/é%2F?#&+", "x", "a b/é%2F?#&+env:x"},
		{"/absolute", "default", "/absolute"},
		{"folder/", "x", "folder/env:x"},
	} {
		s := azuretest.New("tfstate")
		s.Put("tfstate", c.want, azuretest.Blob{Data: []byte("right")})
		for _, block := range []attrs{withKey(), attrs{}.with("sas_token", azuretest.SAS)} {
			req := request(t, place().with("key", c.key), nil)
			req.Workspace = c.workspace
			src, err := kind(s.Client(t)).Start(settings(block))(req)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := src.Fetch(t.Context()); err != nil || string(got.Data) != "right" {
				t.Errorf("%q, %q: %v, asked for %q", c.key, c.workspace, err, s.Requests())
			}
		}
	}
}

// Wrong settings are said before anything is sent.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	p, k := place(), withKey()
	says := sourcetest.OpenMistakes(t, "azurerm, wrong settings")
	for name, c := range map[string]struct {
		place, block attrs
	}{
		"host in the account":   {p.with("storage_account_name", "evil.test/"), k},
		"other host":            {p.with("storage_account_name", "a.evil"), k},
		"letters":               {p.with("storage_account_name", "Account"), k},
		"short":                 {p.with("storage_account_name", "ab"), k},
		"long":                  {p.with("storage_account_name", strings.Repeat("a", 25)), k},
		"line":                  {p.with("storage_account_name", "account\n"), k},
		"user":                  {p.with("storage_account_name", "abc@evil"), k},
		"container":             {p.with("container_name", "a--b"), k},
		"container, path":       {p.with("container_name", "a/b"), k},
		"container, dots":       {p.with("container_name", "..."), k},
		"container, long":       {p.with("container_name", strings.Repeat("a-", 40)+"a"), k},
		"no key":                {p.with("key", ""), k},
		"key leads out":         {p.with("key", "../secret"), k},
		"key leads out, later":  {p.with("key", "a/../../secret"), k},
		"key with a line break": {p.with("key", "a\nb"), k},
		"backslash":             {p.with("key", `a\..\b`), k},
		"version":               {p.with("version_id", "1&comp=x"), k},
		"group":                 {p.with("resource_group_name", "a/../b"), k},
		"group, dot":            {p.with("resource_group_name", "a."), k},
		"subscription":          {p.with("resource_group_name", "a", "subscription_id", "a/b"), withSecret()},
		"timeout":               {p.with("timeout_seconds", 0), k},
		"no such block":         {p.with("credentials_name", "other"), k},
		"connection string":     {p, attrs{}.with("access_key", "DefaultEndpointsProtocol=https;AccountKey="+canary)},
		"access key":            {p, attrs{}.with("access_key", canary+"!")},
		"signature":             {p, attrs{}.with("sas_token", canary)},
		"signature in a URL":    {p, attrs{}.with("sas_token", "https://a.test/?sig="+canary+" x")},
		"signature, whole URL":  {p, attrs{}.with("sas_token", "https://a.test/?sv=1&sig="+canary)},
		"signature and more":    {p, attrs{}.with("sas_token", "sig="+canary+"&comp=metadata")},
		"customer's key":        {p, k.with("customer_provided_key", canary)},
		"endpoint, http":        {p, k.with("blob_endpoint", "http://"+azuretest.Account+".evil.test")},
		"endpoint, identity":    {p, withSecret().with("blob_endpoint", "http://127.0.0.1:10000/"+azuretest.Account)},
		"endpoint, password":    {p, k.with("blob_endpoint", "https://u:"+canary+"@a.test")},
		"endpoint, query":       {p, k.with("blob_endpoint", "https://a.test/?sig="+canary)},
		"endpoint of another":   {p, k.with("blob_endpoint", "https://other.blob.core.windows.net")},
		"endpoint, other path":  {p, k.with("blob_endpoint", "https://"+azuretest.Account+".test/other")},
		"cloud":                 {p, k.with("environment", "mars")},
		"metadata host":         {p, k.with("metadata_host", "a/b")},
		"request for a token":   {p, attrs{}.with("use_oidc", true, "oidc_request_url", "http://ci.test/"+canary)},
		"unknown account, secret": {p.with("storage_account_name", azuretest.Account+"x"),
			k.with("blob_endpoint", "https://127.0.0.1/"+azuretest.Account)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAccount()
			src, err := open(t, s.Client(t), settings(c.block), c.place)
			if err == nil {
				t.Fatalf("got %s", src)
			}
			says.Error(t, name, err)
			if n := len(s.Requests()) + len(s.Other()); n > 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
