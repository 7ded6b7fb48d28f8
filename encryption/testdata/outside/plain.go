package main

import (
	"context"
	"fmt"
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
)

// plain returns the plaintext of a state that may be encrypted. A tool that reads
// plain states passes each through it, and parses the result instead.
func plain(ctx context.Context, file []byte) ([]byte, error) {
	enc, err := encryption.Load(builtin.Registry(), encryption.Environment(os.LookupEnv))
	if err != nil {
		return nil, err
	}
	defer enc.Close()
	opened, err := enc.State().Decrypt(ctx, file)
	if err != nil {
		return nil, err // "… is encrypted …; set TF_ENCRYPTION …" if that is what is missing
	}
	for _, warning := range opened.Warnings {
		fmt.Fprintln(os.Stderr, "Warning:", warning)
	}
	return opened.Data, nil
}
