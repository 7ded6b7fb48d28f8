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
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/static"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/unencrypted"
)

// registry lists what a configuration may name. What is not here is not linked
// in: no SDK of any cloud.
func registry() encryption.Registry {
	return encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{pbkdf2.Block(), static.Block(), external.Block()},
		Methods:      []encryption.Block[encryption.Method]{aesgcm.Block(), unencrypted.Block()},
	}
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
