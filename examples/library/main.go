// Program library prints a state that OpenTofu encrypted.
//
//	TF_ENCRYPTION="$(cat encryption.hcl)" go run . terraform.tfstate
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
)

// registry lists what the settings may name. A key provider that needs the SDK of a cloud
// is a package of its own, such as builtin/keyprovider/awskms, with a function Block.
func registry() encryption.Registry {
	var own encryption.Registry
	all := light.Registry()
	for _, kind := range []string{"pbkdf2", "static", "external"} {
		if block, ok := all.KeyProvider(kind); ok {
			own.KeyProviders = append(own.KeyProviders, block)
		}
	}
	for _, kind := range []string{"aes_gcm", "unencrypted"} {
		if block, ok := all.Method(kind); ok {
			own.Methods = append(own.Methods, block)
		}
	}
	return own
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.LookupEnv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, env attr.LookupEnv, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: library terraform.tfstate")
	}
	file, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	enc, err := encryption.Load(registry(), encryption.Environment(env))
	if err != nil {
		return err
	}
	opened, err := enc.State().Decrypt(ctx, file)
	if err != nil {
		return err
	}
	_, err = out.Write(opened.Data)
	return err
}
