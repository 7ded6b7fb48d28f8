package oci

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
)

const host = "acme.compat.objectstorage.eu-frankfurt-1.oraclecloud.com"

// States that a real CLI writes are read back, at the name that the vendor's
// host has. OpenTofu has no oci backend, so they are written through its s3
// backend, to the names that the oci backend gives them.
func TestWrittenByCLIs(t *testing.T) {
	tofu := clitest.Tofu(t)
	for _, cli := range []clitest.CLI{tofu, tofu.Encrypting()} {
		t.Run(cli.Name, func(t *testing.T) {
			server := newStore()
			network, env := onInternet(t, server)
			kind := Vendor().KindOver(network)
			backend(t, server).Interop(t, cli, func(workspace string) (source.Source, error) {
				return objecttest.Open(kind, objecttest.Settings(kind, objecttest.Variables(env), keys("").With("endpoint", "")),
					where().With("key", "network/terraform.tfstate"), workspace)
			})
		})
	}
}

// backend is where the CLIs keep states.
func backend(t *testing.T, server *objecttest.Server) objecttest.Place {
	t.Helper()
	return objecttest.Place{
		Server: server, Bucket: bucket,
		Paths: map[string]string{"default": "network/terraform.tfstate", "staging-1": "tf-state-env/staging-1/network/terraform.tfstate"},
		Backend: fmt.Sprintf(`backend "s3" {
  bucket               = %q
  key                  = "network/terraform.tfstate"
  workspace_key_prefix = "tf-state-env"
  region               = "eu-frankfurt-1"
  access_key           = %q
  secret_key           = %q
  endpoints            = { s3 = %q }
  use_path_style       = true

  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
  skip_s3_checksum            = true
}`, bucket, reader.AccessKeyID, reader.SecretAccessKey, server.Serve(t)),
	}
}

// onInternet has the vendor's host lead to the store, by a proxy of the
// environment.
func onInternet(t *testing.T, server *objecttest.Server) (object.Network, map[string]string) {
	t.Helper()
	internet := cloudtest.New(t, map[string]http.Handler{host: server})
	network := objecttest.Through(t, internet)
	network.Proxy = nil
	return network, map[string]string{"HTTPS_PROXY": internet.Proxy}
}
