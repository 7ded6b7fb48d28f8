package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
)

// plain returns the plaintext of a state that may be encrypted. A tool that reads plaintext
// states calls it for each state, and parses the result instead.
func plain(ctx context.Context, file []byte) ([]byte, error) {
	opened, err := encryption.Open(ctx, light.Registry(), file, encryption.Environment(os.LookupEnv))
	if errors.Is(err, encryption.ErrNotConfigured) {
		err = fmt.Errorf("%w; set TF_ENCRYPTION to the settings that it was encrypted with", err)
	}
	if err != nil {
		return nil, err
	}
	for _, warning := range opened.Warnings {
		fmt.Fprintln(os.Stderr, "Warning:", warning.Text)
	}
	return opened.Data, nil
}
