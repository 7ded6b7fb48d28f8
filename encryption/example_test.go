package encryption_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// registry stands for builtin.Registry, or for a list of your own.
func registry() encryption.Registry { return lighttest.Registry() }

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

// TF_ENCRYPTION does not decide what runs: a command in it is refused, unless
// the program allows it.
func ExampleEnvironment() {
	lookup := func(name string) (string, bool) {
		return `
			key_provider "external" "main" { command = ["curl", "https://example.com"] }
			method "aes_gcm" "main" { keys = key_provider.external.main }
			state { method = method.aes_gcm.main }
		`, name == "TF_ENCRYPTION"
	}
	enc, err := encryption.Load(registry(), encryption.Environment(lookup))
	if err != nil {
		log.Fatal(err)
	}
	_, err = enc.State().Encrypt(context.Background(), []byte(`{"version":4,"serial":1,"lineage":"l"}`))
	if refused, ok := errors.AsType[*attr.Error](err); ok {
		fmt.Printf("%s: %s is refused\n", refused.Pos, refused.Attr)
	}
	// Output:
	// TF_ENCRYPTION:2,37: command is refused
}

// The settings in a module's .tf files. What they leave to a variable, the
// program gives.
func ExampleModule() {
	variables := map[string]cty.Value{"passphrase": cty.StringVal("correct-horse-battery-staple")}
	enc, err := encryption.Load(registry(), encryption.Module("testdata/module", encryption.Variables(variables)))
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.ReadFile("testdata/network/terraform.tfstate")
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

// A program that has a passphrase needs no text.
func ExamplePassphrase() {
	enc, err := encryption.Load(registry(), encryption.Passphrase("correct-horse-battery-staple"))
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.ReadFile("testdata/network/terraform.tfstate")
	if err != nil {
		log.Fatal(err)
	}
	opened, err := enc.State().Decrypt(context.Background(), file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(opened.Kind, "opened by", opened.Method)
	// Output:
	// plaintext state opened by method.aes_gcm.main
}

// Layers are merged attribute by attribute, the later over the earlier: the code
// says how, and the environment brings the passphrase.
func ExampleLoad() {
	code := encryption.Code(`
		key_provider "pbkdf2" "main" { iterations = 600000 }
		method "aes_gcm" "main" { keys = key_provider.pbkdf2.main }
		state {
			method   = method.aes_gcm.main
			enforced = true
		}
	`, "encryption.hcl")
	environment := encryption.Environment(func(name string) (string, bool) {
		return `key_provider "pbkdf2" "main" { passphrase = "correct-horse-battery-staple" }`, name == "TF_ENCRYPTION"
	})
	enc, err := encryption.Load(registry(), code, environment)
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.ReadFile("testdata/network/terraform.tfstate")
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

// A registry of one's own: settings may name these two kinds, and no others.
func ExampleRegistry() {
	keys, ok := light.Registry().KeyProvider("pbkdf2")
	method, ok2 := light.Registry().Method("aes_gcm")
	if !ok || !ok2 {
		log.Fatal("a kind is missing")
	}
	own := encryption.Registry{
		KeyProviders: []driver.Block[driver.KeyProvider]{keys},
		Methods:      []driver.Block[driver.Method]{method},
	}
	enc, err := encryption.Load(own, encryption.Passphrase("correct-horse-battery-staple"))
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.ReadFile("testdata/network/terraform.tfstate")
	if err != nil {
		log.Fatal(err)
	}
	opened, err := enc.State().Decrypt(context.Background(), file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(opened.Kind, "opened by", opened.Method)
	// Output:
	// plaintext state opened by method.aes_gcm.main
}

// The passphrase comes from somewhere else than the text.
func ExampleVariables() {
	const text = `
		key_provider "pbkdf2" "main" { passphrase = var.passphrase }
		method "aes_gcm" "main" { keys = key_provider.pbkdf2.main }
		state { method = method.aes_gcm.main }
	`
	variables := encryption.Variables(map[string]cty.Value{"passphrase": cty.StringVal("correct-horse-battery-staple")})
	enc, err := encryption.Load(registry(), encryption.Code(text, "encryption.hcl", variables))
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.ReadFile("testdata/network/terraform.tfstate")
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
	file, err := os.ReadFile("testdata/demo/network.tfstate")
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

// Say why a file cannot be opened.
func ExampleTarget_Decrypt() {
	sealed, err := os.ReadFile("testdata/network/terraform.tfstate")
	if err != nil {
		log.Fatal(err)
	}
	for _, settings := range []encryption.Layer{
		encryption.Code("", "none"),
		encryption.Passphrase("not-the-right-passphrase"),
		encryption.Passphrase("correct-horse-battery-staple"),
	} {
		enc, err := encryption.Load(registry(), settings)
		if err != nil {
			log.Fatal(err)
		}
		for _, file := range [][]byte{sealed, sealed[:500], []byte(`{"version":4,"serial":1,"lineage":"l"}`)} {
			opened, err := enc.State().Decrypt(context.Background(), file)
			switch {
			case errors.Is(err, encryption.ErrNoKey):
				fmt.Println("wrong key, or the ciphertext was changed")
			case errors.Is(err, encryption.ErrNotConfigured):
				fmt.Println("encrypted, and there are no settings for it")
			case errors.Is(err, encryption.ErrPlaintext):
				fmt.Println("not encrypted, and it should be")
			case errors.Is(err, encryption.ErrDamaged):
				fmt.Println("damaged")
			case err != nil:
				log.Fatal(err) // the settings, or a key service
			default:
				fmt.Println("opened; it was encrypted:", opened.Encrypted)
			}
		}
	}
	// Output:
	// encrypted, and there are no settings for it
	// damaged
	// opened; it was encrypted: false
	// wrong key, or the ciphertext was changed
	// damaged
	// not encrypted, and it should be
	// opened; it was encrypted: true
	// damaged
	// not encrypted, and it should be
}

// Rotate a key: what only the old one opens is sealed with the new one.
func ExampleTarget_Encrypt() {
	enc, err := encryption.Load(registry(), encryption.Code(`
		key_provider "pbkdf2" "main" { passphrase = "correct-horse-battery-staple" }
		key_provider "pbkdf2" "new" { passphrase = "another-horse-another-staple" }
		method "aes_gcm" "main" { keys = key_provider.pbkdf2.main }
		method "aes_gcm" "new" { keys = key_provider.pbkdf2.new }
		state {
			method = method.aes_gcm.new
			fallback { method = method.aes_gcm.main }
		}
	`, "encryption.hcl"))
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.ReadFile("testdata/network/terraform.tfstate")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for range 2 {
		opened, err := enc.State().Decrypt(ctx, file)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("opened by", opened.Method)
		if !opened.UsedFallback {
			break
		}
		if file, err = enc.State().Encrypt(ctx, opened.Data); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// opened by method.aes_gcm.main
	// opened by method.aes_gcm.new
}

// Change a state and write it back, for users who encrypt and for those who do not.
func ExampleOpened_Reseal() {
	sealed, err := os.ReadFile("testdata/network/terraform.tfstate")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, user := range []struct {
		settings encryption.Layer
		file     []byte
	}{
		{encryption.Code("", "none"), []byte(`{"version":4,"serial":1,"lineage":"l"}`)},
		{encryption.Passphrase("correct-horse-battery-staple"), sealed},
	} {
		enc, err := encryption.Load(registry(), user.settings)
		if err != nil {
			log.Fatal(err)
		}
		opened, err := enc.State().Decrypt(ctx, user.file)
		if err != nil {
			log.Fatal(err)
		}
		changed := bytes.Replace(opened.Data, []byte(`"serial":1,`), []byte(`"serial":2,`), 1)
		file, err := opened.Reseal(ctx, changed)
		if err != nil {
			log.Fatal(err)
		}
		info, err := encryption.Inspect(file)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(info.Kind)
	}
	// Output:
	// plaintext state
	// encrypted file
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
	enc, err := encryption.Load(registry(), encryption.Code(string(text), "config.hcl"))
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
