package main

import (
	"context"
	"errors"
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
	if _, ok := errors.AsType[*encryption.NotConfiguredError](err); ok {
		return nil, fmt.Errorf("%w; set TF_ENCRYPTION to the settings that it was encrypted with", err)
	}
	if err != nil {
		return nil, err
	}
	for _, warning := range opened.Warnings {
		fmt.Fprintln(os.Stderr, "Warning:", warning)
	}
	return opened.Data, nil
}
