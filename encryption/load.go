package encryption

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/errlist"
)

// Layer is a part of the settings, for [Load]. [Code], [Environment], [Module] and
// [Passphrase] make them. Nil is an empty layer.
type Layer func(config.Options) (*config.Config, error)

// Code is what stands inside OpenTofu's encryption block, in native syntax or,
// when it begins with "{", in JSON. Blank text is an empty layer. Filename
// names the text in errors.
//
// The commands that it names will run, so pass no text from a variable: that is for
// [Environment].
func Code(text, filename string) Layer {
	return func(o config.Options) (*config.Config, error) { return config.Parse(text, filename, o) }
}

// Module is the encryption block of the OpenTofu module in a folder, found and
// merged as OpenTofu does: in .tf and .tofu files in both syntaxes, override
// files included. The variables are the values of var.*; for others those of
// terraform.tfvars, *.auto.tfvars and their like in the folder count, in OpenTofu's
// order, and then the defaults: without these files, a file could be sealed with
// another key than OpenTofu has. TF_VAR_… is not read. The layer is empty if the
// module has no such block; a folder without a module is an error.
//
// The commands that it names will run. Relative paths in it, except those of
// file(), begin in the working directory of the process.
func Module(dir string, variables map[string]cty.Value) Layer {
	return func(o config.Options) (*config.Config, error) {
		o.Variables = cty.ObjectVal(variables)
		return config.ParseModule(dir, o)
	}
}

// Passphrase is what OpenTofu's shortest settings say: states and plans are
// sealed by aes_gcm, with a key that pbkdf2 derives from the passphrase. One of less
// than 16 bytes is found by [Encryption.Check], and an error when a file is opened or sealed.
// The registry must have both kinds.
func Passphrase(passphrase string) Layer {
	return func(o config.Options) (*config.Config, error) {
		const keys, method = "key_provider.pbkdf2.main", "method.aes_gcm.main"
		keyTable, hasKeys := find(o.KeyProviders, "pbkdf2")
		methodTable, hasMethod := find(o.Methods, "aes_gcm")
		if !hasKeys || !hasMethod {
			return nil, errors.New("a passphrase requires the key provider pbkdf2 and the method aes_gcm, and the registry lacks one of them")
		}
		target := &config.Target{Method: method}
		return &config.Config{
			KeyProviders: map[string]*attr.Entry{
				keys: attr.NewEntry(keys, keyTable, map[string]cty.Value{"passphrase": cty.StringVal(passphrase)}),
			},
			Methods: map[string]*attr.Entry{
				method: attr.NewEntry(method, methodTable, map[string]cty.Value{"keys": cty.StringVal(keys)}),
			},
			State: target,
			Plan:  target,
		}, nil
	}
}

func find(tables []attr.Table, name string) (attr.Table, bool) {
	i := slices.IndexFunc(tables, func(t attr.Table) bool { return t.Name == name })
	if i < 0 {
		return attr.Table{}, false
	}
	return tables[i], true
}

// Environment is the text in TF_ENCRYPTION and, for arguments that no layer
// sets, variables such as BAO_TOKEN. Lookup is [os.LookupEnv], or a function
// like it. Without this layer, no variable is read, and the clients of key
// services are kept from doing so.
//
// Whoever sets the variables does not choose what runs, or where the secrets of
// the other layers go: both are errors when the entry is used. See
// [attr.Entry.Resolve].
func Environment(lookup attr.LookupEnv) Layer {
	return func(o config.Options) (*config.Config, error) { return config.ParseEnvironment(lookup, o) }
}

// AllowCommands lets commands run that only the environment names. It is for
// programs whose environment is as trusted as their code.
func (l Layer) AllowCommands() Layer {
	return func(o config.Options) (*config.Config, error) {
		c, err := l.read(o)
		return config.Merge(c, &config.Config{AllowCommands: true}), err
	}
}

// WithVariables gives var.* in the layer's text its values, an object or a map. A
// reference to a variable without a value is an error.
func (l Layer) WithVariables(values cty.Value) Layer {
	return func(o config.Options) (*config.Config, error) {
		o.Variables = values
		return l.read(o)
	}
}

func (l Layer) read(o config.Options) (*config.Config, error) {
	if l == nil {
		return nil, nil //nolint:nilnil // an empty layer
	}
	return l(o)
}

// Load puts settings to work, a later layer over the earlier ones, as OpenTofu
// lays TF_ENCRYPTION over the code. An empty layer changes nothing.
//
//	enc, err := encryption.Load(registry, encryption.Code(text, "encryption.hcl"), encryption.Environment(os.LookupEnv))
//
// It contacts nothing. An error is about text that cannot be read or parsed, each
// mistake in it an [*attr.Error]; mistakes in an entry are reported when something uses
// it, and by [Encryption.Check].
func Load(registry Registry, layers ...Layer) (*Encryption, error) {
	var parsed []*config.Config
	var errs errlist.Errors
	for _, layer := range layers {
		c, err := layer.read(registry.Options(cty.NilVal))
		if err != nil {
			errs = append(errs, err)
		}
		parsed = append(parsed, c)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return New(registry, config.Merge(parsed...))
}

// Open opens a state as tofu does, with the settings in TF_ENCRYPTION. Without any,
// plaintext passes unchanged, so a tool that reads plain states calls it for every
// file. Lookup is [os.LookupEnv], or a function like it.
//
// Errors are those of [Load] and [Target.Decrypt]. A program with settings of its own,
// or with many files, calls these two itself.
func Open(ctx context.Context, registry Registry, file []byte, lookup attr.LookupEnv) (*Opened, error) {
	enc, err := Load(registry, Environment(lookup))
	if err != nil {
		return nil, err
	}
	defer enc.Close()
	opened, err := enc.State().Decrypt(ctx, file)
	if errors.Is(err, ErrNotConfigured) {
		return nil, fmt.Errorf("%w; set TF_ENCRYPTION to the settings that it was encrypted with", err)
	}
	return opened, err
}
