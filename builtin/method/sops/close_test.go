package sops_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/method/sops"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestClose: what the method builds for a file is closed when the file has its data
// key. It is not parallel: it counts what the process has open.
//
// Promise: Long lives
func TestClose(t *testing.T) {
	s := newVault(t)
	file := vaultFile(t, s)
	registry := encryption.Registry{Methods: []driver.Block[driver.Method]{sops.Block(openbao.Block())}}
	kindtest.Leaves(t, func() {
		enc, err := encryption.Load(registry, encryption.Code(`
			method "sops" "s" {
				allowed_vault_addresses = ["`+s.URL+`"]
				vault_token             = "`+s.Token+`"
			}
			state { method = method.sops.s }`, "test"))
		if err != nil {
			t.Fatal(err)
		}
		defer enc.Close()
		if _, err := enc.State().Decrypt(t.Context(), file); err != nil {
			t.Fatal(err)
		}
	})
}
