package azurevault_test

import (
	"net/http"
	"os"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault/azurevaulttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestClose is not parallel: it counts what the process has open, and its transports
// are made from the default one.
//
// Promise: Long lives
func TestClose(t *testing.T) {
	standard := http.DefaultTransport
	defer func() { http.DefaultTransport = standard }()
	http.DefaultTransport = service().Start(t).Transport
	for mode, env := range map[string]attr.LookupEnv{"with an environment": os.LookupEnv, "without": nil} {
		t.Run(mode, func(t *testing.T) {
			kindtest.LeavesNothing(t, kindtest.Registry(azurevault.Block()), `
				key_provider "azure_vault" "k" {
					vault_uri      = "https://example.vault.azure.net/"
					vault_key_name = "a"
					key_length     = 32
					use_cli        = false
					tenant_id      = "`+azurevaulttest.Tenant+`"
					client_id      = "`+azurevaulttest.ClientID+`"
					client_secret  = "`+azurevaulttest.Secret+`"
				}
				method "aes_gcm" "m" { keys = key_provider.azure_vault.k }
				state { method = method.aes_gcm.m }`, env)
		})
	}
}
