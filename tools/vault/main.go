// Command vaultdev runs a HashiCorp Vault in memory, with only the transit engine and the AppRole login, for tests. It
// prints its address and root token, and runs until it is stopped.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/builtin/logical/transit"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

// plugins is the catalog of available plugins.
type plugins struct{}

func (plugins) Contains(name string, _ consts.PluginType) bool {
	return name == "transit" || name == "approle"
}
func (plugins) Get(string, consts.PluginType) (func() (interface{}, error), bool) { return nil, false }
func (plugins) Keys(consts.PluginType) []string                                   { return []string{"transit", "approle"} }
func (plugins) IsBuiltinEntPlugin(string, consts.PluginType) bool                 { return false }
func (plugins) DeprecationStatus(string, consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, true
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	logger := hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Error})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return err
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical: storage, DisableMlock: true, Logger: logger, BuiltinRegistry: plugins{},
		LogicalBackends:    map[string]logical.Factory{"transit": transit.Factory},
		CredentialBackends: map[string]logical.Factory{"approle": approle.Factory},
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	result, err := core.Initialize(ctx, &vault.InitParams{BarrierConfig: &vault.SealConfig{SecretShares: 1, SecretThreshold: 1},
		RecoveryConfig: &vault.SealConfig{}})
	if err != nil {
		return err
	}
	if _, err := core.Unseal(result.SecretShares[0]); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("VAULT_ADDR=http://%s\nVAULT_TOKEN=%s\n", listener.Addr(), result.RootToken)
	return http.Serve(listener, vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: &configutil.Listener{}}))
}
