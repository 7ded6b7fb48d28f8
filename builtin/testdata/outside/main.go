// Program outside prints the output vpc_id of the state on standard input, which may be
// encrypted.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/zclconf/go-cty/cty/gocty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
)

func main() {
	file, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = show(context.Background(), file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func show(ctx context.Context, file []byte) error {
	enc, err := encryption.Load(builtin.Registry(), encryption.Environment(os.LookupEnv))
	if err != nil {
		return err
	}
	opened, err := enc.State().Decrypt(ctx, file)
	if err != nil {
		return err
	}
	state, err := tfstate.Parse(opened.Data)
	if err != nil {
		return err
	}
	vpc, err := state.Outputs["vpc_id"].Value()
	if err != nil {
		return err
	}
	var id string
	if err := gocty.FromCtyValue(vpc, &id); err != nil {
		return err
	}
	_, err = fmt.Println(id)
	return err
}
