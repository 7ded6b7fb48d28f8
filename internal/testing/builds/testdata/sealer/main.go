// Program sealer encrypts standard input with the settings in TF_ENCRYPTION, using the library of the revision it is
// part of:
//
//	sealer state|plan
//
// TestUpgrade builds it from release tags, so it must stay in this folder.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(os.Getenv("TF_ENCRYPTION"), "settings.hcl"))
	if err != nil {
		return err
	}
	if len(args) != 1 || args[0] != "state" && args[0] != "plan" {
		return errors.New("usage: sealer state|plan")
	}
	target := enc.State()
	if args[0] == "plan" {
		target = enc.Plan()
	}
	plain, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	sealed, err := target.Encrypt(ctx, plain)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(sealed)
	return err
}
