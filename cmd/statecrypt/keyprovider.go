package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// keyProviderHeader is the first line of the output for OpenTofu's key provider external; see
// opentofu/internal/encryption/keyprovider/external/protocol.go.
const keyProviderHeader = `{"magic":"OpenTofu-External-Key-Provider","version":1}` + "\n"

// keyProviderAnswer is the JSON document after the header.
type keyProviderAnswer struct {
	Keys struct {
		EncryptionKey []byte `json:"encryption_key"`
		DecryptionKey []byte `json:"decryption_key,omitempty"`
	} `json:"keys"`
	Meta json.RawMessage `json:"meta"`
}

const maxStored = 1 << 20 // the maximum size of a key provider's metadata in a file, in bytes

// keyProvider implements the program that OpenTofu's key provider external runs. OpenTofu expects a new key
// from every run, even if it only reads.
func (c *call) keyProvider(ctx context.Context) error {
	if c.args[0] != "age" {
		return usageError(fmt.Sprintf("there is no key provider %s; use age", shown(c.args[0])))
	}
	if c.toStdout() && isTerminal(c.stdout) {
		return usageError("standard output is a terminal, and would show a key; let OpenTofu run this command from key_provider " +
			"\"external\". To try the command, run echo null | statecrypt key-provider age … > /dev/null")
	}
	if err := c.checkIdentities(); err != nil {
		return err
	}
	provider, err := c.ageKeyProvider(c.flags["i"])
	if err != nil {
		return err
	}
	stored, err := meter.Read(c.stdin, -1, maxStored)
	if err != nil {
		return err
	}
	var answer keyProviderAnswer
	answer.Keys.EncryptionKey, answer.Meta, err = c.newKey(ctx, provider)
	if err != nil {
		return err
	}
	if answer.Keys.DecryptionKey, err = c.openedKey(ctx, provider, stored); err != nil {
		return err
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.stdout, "%s%s\n", keyProviderHeader, body)
	return err
}

// newKey creates a key for the recipients. If none of the identities could open it, newKey prints a note and
// creates a key anyway, because OpenTofu expects a new key even when it reads with a fallback.
func (c *call) newKey(ctx context.Context, provider driver.KeyProvider) (key []byte, stored json.RawMessage, err error) {
	key, stored, err = provider.(driver.KeyMaker).NewKey(ctx, nil) //nolint:forcetypeassert // age makes keys
	if errors.Is(err, encryption.ErrNoKey) {
		c.say(yellow, "note:", c.audience().Text(err))
		if provider, err = c.ageKeyProvider(nil); err == nil {
			return c.newKey(ctx, provider)
		}
	}
	return key, stored, err
}

// openedKey returns the key in stored, or nil for a new file. If no identity matches, it prints a note and
// returns nil without an error, because OpenTofu would not try a fallback after an error.
func (c *call) openedKey(ctx context.Context, provider driver.KeyProvider, stored []byte) ([]byte, error) {
	var meta struct {
		ExternalData json.RawMessage `json:"external_data"`
	}
	if err := json.Unmarshal(stored, &meta); err != nil {
		return nil, errors.New("standard input does not contain the JSON that OpenTofu sends; let OpenTofu run this command from " +
			"key_provider \"external\". To try the command for a new file, send null")
	}
	if len(meta.ExternalData) == 0 && string(bytes.TrimSpace(stored)) != "null" {
		return nil, errors.New("standard input is neither null nor metadata with external_data; for a new file, send null")
	}
	if len(meta.ExternalData) == 0 || string(meta.ExternalData) == "null" {
		return nil, nil
	}
	key, err := provider.Key(ctx, nil, bytes.TrimSpace(stored))
	if errors.Is(err, encryption.ErrNoKey) {
		c.say(yellow, "note:", c.audience().Text(err))
		return nil, nil
	}
	return key, err
}

// checkIdentities returns an error if -i is an identity itself, or names a file that is protected by a
// passphrase.
func (c *call) checkIdentities() error {
	for _, path := range c.flags["i"] {
		if recognize.HoldsPrivateKey(path) {
			return usageError("-i requires a file name, but its value is an identity; write the identity to a file, and delete this " +
				"command from the history of the shell")
		}
		content, err := keyfile.ReadText(path)
		if err == nil && recognize.IsAge(content) {
			return fmt.Errorf("%s is protected by a passphrase, but this command cannot ask for the passphrase; decrypt the file first: "+
				"age -d %[1]s > key.txt", shown(path))
		}
	}
	return nil
}

func (c *call) ageKeyProvider(identities []string) (driver.KeyProvider, error) {
	for _, recipient := range c.flags["r"] {
		if recognize.IsPath(recipient) || recognize.Exists(recipient) {
			return nil, usageError("-r requires a recipient, but its value is a file path; use -R to read recipients from a file")
		}
	}
	for _, recipient := range c.flags["r"] {
		if _, err := buildAge(map[string]cty.Value{"recipients": list([]string{recipient})}, nil); err != nil {
			if at, ok := errors.AsType[*attr.Error](err); ok && errors.Unwrap(at.Err) != nil {
				err = errors.Unwrap(at.Err) // without the element's index, because there is only one
			}
			return nil, fmt.Errorf("-r: %w", err)
		}
	}
	all := slices.Clone(c.flags["r"])
	for _, path := range c.flags["R"] {
		recipients, err := readRecipients(path)
		if err != nil {
			return nil, err
		}
		all = append(all, recipients...)
	}
	if len(all) == 0 {
		return nil, usageError("no recipients are given, but each call encrypts a new key for them; add -r RECIPIENT or -R FILE")
	}
	values := map[string]cty.Value{"recipients": list(all)}
	if len(identities) > 0 {
		values["identity_files"] = list(identities)
	}
	return buildAge(values, world.Lookup(c.environ))
}

func buildAge(values map[string]cty.Value, env attr.LookupEnv) (driver.KeyProvider, error) {
	block, _ := light.Registry().KeyProvider("age")
	settings, err := unstable.NewEntry("", block.Table, values).Decode(block.Table, env)
	if err != nil {
		return nil, err
	}
	return block.Build(settings)
}

func list(texts []string) cty.Value {
	values := make([]cty.Value, len(texts))
	for i, text := range texts {
		values[i] = cty.StringVal(text)
	}
	return cty.ListVal(values)
}

// readRecipients returns the recipients in a file in the format of "age -R": one per line, with comments.
func readRecipients(path string) (recipients []string, err error) {
	if recognize.IsRecipient(path) {
		return nil, usageError("-R requires a file name, but its value is a recipient; use -r")
	}
	text, err := keyfile.ReadText(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			recipients = append(recipients, line)
		}
	}
	if len(recipients) == 0 {
		return nil, fmt.Errorf("%s: the file contains no recipients; write each recipient (age1…) on its own line", shown(path))
	}
	if _, err := buildAge(map[string]cty.Value{"recipients": list(recipients)}, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", shown(path), err)
	}
	return recipients, nil
}
