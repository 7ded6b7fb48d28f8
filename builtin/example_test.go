package builtin_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
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

// Read an output of a state, encrypted or not, with the settings of the
// environment, as tofu does.
func Example() {
	os.Setenv("TF_ENCRYPTION", exampleText)
	defer os.Unsetenv("TF_ENCRYPTION")

	file, err := os.ReadFile("../encryption/testdata/network/terraform.tfstate")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()

	enc, err := encryption.Load(builtin.Registry(), encryption.Environment(os.LookupEnv))
	if err != nil {
		log.Fatal(err)
	}
	opened, err := enc.State().Decrypt(ctx, file)
	if err != nil {
		log.Fatal(err)
	}
	state, err := tfstate.Parse(opened.Data)
	if err != nil {
		log.Fatal(err)
	}
	vpc, err := state.Outputs["vpc_id"].Value()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(vpc.AsString())
	// Output:
	// vpc-0a1b2c3d4e5f
}
