// Program outside prints a value of a state that may be encrypted, as a tool
// would that read plain states before.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
)

func main() {
	file, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = show(context.Background(), file, os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func show(ctx context.Context, file []byte, output string) error {
	enc, err := encryption.Load(builtin.Registry(), encryption.Environment(os.LookupEnv))
	if err != nil {
		return err
	}
	opened, err := enc.State().Decrypt(ctx, file)
	if err != nil {
		return err
	}
	var state struct {
		Outputs map[string]struct{ Value any }
	}
	if err := json.Unmarshal(opened.Data, &state); err != nil {
		return err
	}
	_, err = fmt.Println(state.Outputs[output].Value)
	return err
}
