package openbao_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestClose is not parallel: it counts what the process has open.
//
// Promise: Long lives
func TestClose(t *testing.T) {
	s := openbaotest.New(t, master())
	s.Token, s.MakesKeys = "canary-token", true
	kindtest.LeavesNothing(t, kindtest.Registry(openbao.Block()), `
		key_provider "openbao" "k" {
			address  = "`+s.URL+`"
			key_name = "tofu"
			token    = "canary-token"
		}
		method "aes_gcm" "m" { keys = key_provider.openbao.k }
		state { method = method.aes_gcm.m }`, nil)
}
