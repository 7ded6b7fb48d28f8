package encryption_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
)

const exampleText = `
key_provider "pbkdf2" "main" {
  passphrase = "correct-horse-battery-staple"
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
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(exampleText, "encryption.hcl"))
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

// The passphrase comes from somewhere else than the text.
func ExampleLayer_WithVariables() {
	code := encryption.Code(`
		key_provider "pbkdf2" "main" { passphrase = var.passphrase }
		method "aes_gcm" "main" { keys = key_provider.pbkdf2.main }
		state { method = method.aes_gcm.main }
	`, "encryption.hcl")
	variables := cty.ObjectVal(map[string]cty.Value{"passphrase": cty.StringVal("correct-horse-battery-staple")})
	enc, err := encryption.Load(builtin.Registry(), code.WithVariables(variables))
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.ReadFile("../examples/demo/network.tfstate")
	if err != nil {
		log.Fatal(err)
	}
	opened, err := enc.State().Decrypt(context.Background(), file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("opened by", opened.Method)
	// Output:
	// opened by method.aes_gcm.main
}

// Tell what a file is, without a key. Nothing of it is authenticated.
func ExampleInspect() {
	file, err := os.ReadFile("../examples/demo/network.tfstate")
	if err != nil {
		log.Fatal(err)
	}
	info, err := encryption.Inspect(file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Kind, info.Version)
	fmt.Println("serial", *info.Serial, "of", info.Lineage)
	fmt.Println("needs", info.KeyProviders)
	// Output:
	// encrypted file v0
	// serial 1 of a32c1a02-5d00-a7d7-ec8f-f714c6a67329
	// needs [key_provider.pbkdf2.main]
}

// Open a state that OpenTofu sealed.
func ExampleTarget_Decrypt() {
	file, err := os.ReadFile("../examples/demo/network.tfstate")
	if err != nil {
		log.Fatal(err)
	}
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(exampleText, "encryption.hcl"))
	if err != nil {
		log.Fatal(err)
	}

	opened, err := enc.State().Decrypt(context.Background(), file) // consumes file
	switch {
	case errors.Is(err, encryption.ErrNoKey):
		log.Fatal("the passphrase is another one: ", err)
	case err != nil:
		log.Fatal(err)
	}
	var state struct {
		Serial  int64
		Outputs map[string]struct{ Value any }
	}
	if err := json.Unmarshal(opened.Data, &state); err != nil {
		log.Fatal(err)
	}
	fmt.Println(opened.Encrypted, opened.Method, opened.UsedFallback)
	fmt.Println(state.Serial, state.Outputs["vpc_id"].Value)
	// Output:
	// true method.aes_gcm.main false
	// 1 vpc-0a1b2c3d4e5f
}

// Seal a state as OpenTofu does. It has a new key and a new nonce each time.
func ExampleTarget_Encrypt() {
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(exampleText, "encryption.hcl"))
	if err != nil {
		log.Fatal(err)
	}

	state := []byte(`{"version":4,"serial":8,"lineage":"a-lineage","outputs":{}}`)
	file, err := enc.State().Encrypt(context.Background(), state)
	if err != nil {
		log.Fatal(err)
	}
	info, err := encryption.Inspect(file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Kind, "with serial", *info.Serial, "and lineage", info.Lineage)
	fmt.Println("the outputs show:", bytes.Contains(file, []byte("outputs")))
	// Output:
	// encrypted file with serial 8 and lineage a-lineage
	// the outputs show: false
}

// Open a plan that OpenTofu sealed. A plan is a zip archive.
func ExampleEncryption_Plan() {
	file, err := os.ReadFile("testdata/plan_file/plan.tfplan.enc")
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile("testdata/plan_file/config.hcl")
	if err != nil {
		log.Fatal(err)
	}
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(string(text), "config.hcl"))
	if err != nil {
		log.Fatal(err)
	}

	opened, err := enc.Plan().Decrypt(context.Background(), file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", opened.Data[:2])
	archive, err := zip.NewReader(bytes.NewReader(opened.Data), int64(len(opened.Data)))
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range archive.File {
		fmt.Println(f.Name)
	}
	// Output:
	// PK
	// tfplan
	// tfstate
	// tfstate-prev
	// tfconfig/m-/main.tf
	// tfconfig/modules.json
	// .terraform.lock.hcl
}
