package encryption_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

const exampleText = `
key_provider "pbkdf2" "main" {
  passphrase = var.passphrase
}
method "aes_gcm" "main" {
  keys = key_provider.pbkdf2.main
}
state {
  method   = method.aes_gcm.main
  enforced = true
}`

// Seal a state as OpenTofu does, look at the file without a key, and open it
// again.
func Example() {
	ctx := context.Background()
	registry := builtin.Registry()
	cfg, err := config.Parse(exampleText, "encryption.hcl", registry.Options(cty.ObjectVal(map[string]cty.Value{
		"passphrase": cty.StringVal("correct-horse-battery-staple"),
	})))
	if err != nil {
		log.Fatal(err)
	}
	enc, err := encryption.New(registry, cfg)
	if err != nil {
		log.Fatal(err)
	}

	file, err := enc.State().Encrypt(ctx, []byte(`{"version":4,"serial":3,"lineage":"l","outputs":{}}`))
	if err != nil {
		log.Fatal(err)
	}
	info, err := encryption.Inspect(file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Kind, "with serial", *info.Serial, "and metadata of", info.KeyProviders)

	opened, err := enc.State().Decrypt(ctx, file) // consumes file
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(opened.Method, "opened", string(opened.Data))
	// Output:
	// encrypted file with serial 3 and metadata of [key_provider.pbkdf2.main]
	// method.aes_gcm.main opened {"version":4,"serial":3,"lineage":"l","outputs":{}}
}
