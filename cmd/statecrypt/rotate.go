package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/world"
)

// rotation gives files another key, or converts them.
type rotation struct{ from, to encryption.Target }

// rotate rotates files where they lie.
func (c *call) rotate(ctx context.Context) error {
	environment, _ := world.Lookup(c.environ)("TF_ENCRYPTION")
	switch {
	case c.from == "" || c.to == "":
		return usageError("both -from and -to are required; see statecrypt rotate -h")
	case strings.TrimSpace(environment) != "":
		return usageError("TF_ENCRYPTION is set, and would change what -from says as well as what -to says; unset it")
	case slices.Contains(c.args, stdinName):
		return usageError("standard input cannot be replaced; rotate requires the names of files")
	}
	from, err := c.target(c.from)
	if err != nil {
		return fmt.Errorf("-from: %w", err)
	}
	to, err := c.target(c.to)
	if err == nil {
		err = refusePlaintext(to)
	}
	if err != nil {
		return fmt.Errorf("-to: %w", err)
	}
	r := rotation{from, to}
	return c.all(ctx, func(ctx context.Context, name string) (finding, error) {
		f := finding{Result: resultFailed}
		before, err := os.Stat(name)
		if err != nil {
			return f, keyfile.Reason(err)
		}
		file, err := c.readUntil(ctx, name)
		if err != nil {
			return f, err
		}
		sealed, err := r.seal(ctx, &f, file)
		if err == nil && sealed != nil {
			err = replace(ctx, name, sealed, before)
		}
		switch {
		case err != nil:
			f.Method = "" // it has still the one that it had
			return f, err
		case sealed == nil:
			f.Result = resultSkipped
		default:
			f.Result = resultRotated
		}
		return f, nil
	})
}

// refusePlaintext refuses settings that would store what they should encrypt.
func refusePlaintext(target encryption.Target) error {
	if m := target.Methods()[0]; strings.HasPrefix(m, "method."+attr.Unencrypted+".") {
		return fmt.Errorf("%s encrypts nothing; name a method that does", m)
	}
	return nil
}

// seal returns what the file becomes, or nil if the first method of the new settings
// opens it. It overwrites the file.
func (r rotation) seal(ctx context.Context, f *finding, file []byte) ([]byte, error) {
	opened, errNew := r.to.Decrypt(ctx, file)
	if errNew == nil && !opened.UsedFallback {
		f.add(opened)
		return nil, nil
	}
	opened, errOld := r.from.DecryptInPlace(ctx, file)
	switch {
	case errOld != nil && errNew == nil:
		return nil, fmt.Errorf("a fallback of -to opens it, but -from does not: %w", errOld)
	case errOld != nil:
		return nil, fmt.Errorf("it opens neither with -from nor with -to.\n-from: %w\n-to: %w", errOld, errNew)
	}
	sealed, err := r.to.Encrypt(ctx, opened.Data)
	if err != nil {
		return nil, err
	}
	again, err := r.to.Decrypt(ctx, sealed)
	switch {
	case err != nil:
		return nil, fmt.Errorf("what was sealed cannot be opened again: %w", err)
	case again.UsedFallback || !again.Encrypted || !bytes.Equal(again.Data, opened.Data):
		return nil, errors.New("what was sealed is not the same when it is opened again")
	}
	f.add(again)
	f.opened.Warnings = append(opened.Warnings, again.Warnings...)
	return sealed, nil
}
