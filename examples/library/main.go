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
)

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
