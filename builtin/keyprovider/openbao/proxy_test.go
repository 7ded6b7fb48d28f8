package openbao_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

func TestProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	cloudtest.CheckProxies(t, "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "BAO_HTTP_PROXY", "VAULT_PROXY_ADDR")
}

// TestBehindProxy is run by TestProxyOfTheEnvironment.
func TestBehindProxy(t *testing.T) {
	lookup := kindtest.BehindProxy(t)
	a := attrs{}.With("address", "http://bao.invalid", "key_name", "k", "token", "t", "max_retries", 0)
	p := kindtest.Build(t, openbao.Block(), a, lookup)
	if _, err := p.Key(t.Context(), nil, []byte(`{"ciphertext":"dmF1bHQ6djE6AAAA"}`)); err == nil {
		t.Error("a server that is not there has answered")
	}
}
