package azurerm

import (
	"context"
	"net"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// TestRealAzurite runs the suite of every store against Azurite, which scripts/azurite.sh installs.
//
// Promise: States in stores (the suite of every store)
func TestRealAzurite(t *testing.T) {
	address, n := azurite(t), 0
	storetest.Run(t, storetest.Harness{
		Place: places(address, &n, func(b attrs) attrs { return b }), Properties: store.Properties{HasLocks: true},
		Versioned: places(address, &n, func(b attrs) attrs { return b.with("snapshot", true) }), // it has snapshots, and no versions
	})
}

// azurite starts the program that STATECRYPT_AZURITE names, and returns the address of the account.
func azurite(t *testing.T) string {
	t.Helper()
	program, port := testkit.Program(t, "STATECRYPT_AZURITE"), nettest.Port(t)
	address := net.JoinHostPort("127.0.0.1", port)
	args := []string{"--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence", "--blobHost", "127.0.0.1",
		"--blobPort", port}
	servertest.Start(t, program, args, "AZURITE_ACCOUNTS="+azuretest.Account+":"+azuretest.Key).Await(t, func() bool {
		c, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", address)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
	return "http://" + address + "/" + azuretest.Account
}
