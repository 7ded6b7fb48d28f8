package builtin

import (
	"context"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// Open opens a state as tofu does, with the settings in TF_ENCRYPTION. Without any,
// plaintext passes unchanged, so a tool that reads plain states calls it for every
// file. Lookup is [os.LookupEnv], or a function like it.
//
// Errors are those of [encryption.Load] and [encryption.Target.Decrypt]. A program with
// settings of its own, or with many files, calls these two itself.
func Open(ctx context.Context, file []byte, lookup attr.LookupEnv) (*encryption.Opened, error) {
	enc, err := encryption.Load(Registry(), encryption.Environment(lookup))
	if err != nil {
		return nil, err
	}
	defer enc.Close()
	opened, err := enc.State().Decrypt(ctx, file)
	if errors.Is(err, encryption.ErrNotConfigured) {
		return nil, fmt.Errorf("%w; set TF_ENCRYPTION to the settings that it was encrypted with", err)
	}
	return opened, err
}
