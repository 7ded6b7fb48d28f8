package encryption

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
)

// Layer is a part of the settings, for [Load]. [Code], [Environment], [Module] and
// [Passphrase] make them. Nil is an empty layer.
type Layer interface {
	layer
}

// With is what the text of a layer may use beyond itself: [Variables], [VarFiles],
// [VarEnvironment] and [AllowCommands].
type With interface {
	with
}

type (
	layer = config.Layer
	with  = config.With
)

// Code is what stands inside OpenTofu's encryption block, in native syntax or,
// when it begins with "{", in JSON. Blank text is an empty layer. Filename
// names the text in errors.
//
// The commands that it names will run, so pass no text from a variable: that is for
// [Environment].
func Code(text, filename string, with ...With) Layer {
	return config.NewLayer(func(o config.Options) (*config.Config, error) { return config.Parse(text, filename, o) }, with...)
}

// Module is the encryption block of the OpenTofu module in a folder, found and
// merged as OpenTofu does: in .tf and .tofu files in both syntaxes, override
// files included. Variables have the values that they are given here; for others those of
// terraform.tfvars, *.auto.tfvars and their like in the folder count, in OpenTofu's
// order, and then the defaults: without these files, a file could be sealed with
// another key than OpenTofu has. Variables of the environment count only with
// [VarEnvironment], TF_WORKSPACE among them; without it, terraform.workspace is the one that
// is selected in the folder. The layer is empty if the module has no such block; a folder
// without a module is an error.
//
// The commands that it names will run. Relative paths in it, except those of
// file(), begin in the working directory of the process.
func Module(dir string, with ...With) Layer {
	return config.NewLayer(func(o config.Options) (*config.Config, error) { return config.ParseModule(dir, o) }, with...)
}

// Environment is the text in TF_ENCRYPTION and, for arguments that no layer
// sets, variables such as BAO_TOKEN. Lookup is [os.LookupEnv], or a function
// like it; it is called until [Encryption.Close], from several goroutines. Without this
// layer, no variable is read, and the clients of key services are kept from doing so. With
// it, these clients, and programs, read the environment of the process, too, whatever lookup
// says: a process is for one user.
//
// Whoever sets the variables does not choose what runs, or where the secrets of
// the other layers go: both are errors when the entry is used. See [attr.Attr].
func Environment(lookup attr.LookupEnv, with ...With) Layer {
	return config.NewLayer(func(o config.Options) (*config.Config, error) { return config.ParseEnvironment(lookup, o) }, with...)
}

// Variables gives var.* these values, which win over those of [VarFiles] and
// [VarEnvironment]. A reference to a variable without a value is an error.
func Variables(values map[string]cty.Value) With {
	return config.NewWith(func(o *config.Options) { o.Variables = cty.ObjectVal(values) })
}

// VarFiles gives var.* the values in .tfvars files, as the flag -var-file does; a later
// file wins.
func VarFiles(paths ...string) With {
	return config.NewWith(func(o *config.Options) {
		for _, path := range paths {
			o.Arguments = append(slices.Clip(o.Arguments), "-var-file="+path)
		}
	})
}

// VarEnvironment gives var.* the values of variables such as TF_VAR_region among these,
// which are [os.Environ] or a list like it, and terraform.workspace that of TF_WORKSPACE.
func VarEnvironment(environ []string) With {
	return config.NewWith(func(o *config.Options) {
		o.Environment = map[string]string{}
		for _, pair := range environ {
			name, value, _ := strings.Cut(pair, "=")
			if of, ok := strings.CutPrefix(name, "TF_VAR_"); ok {
				o.Environment[of] = value
			} else if name == "TF_WORKSPACE" {
				o.Workspace = value
			}
		}
	})
}

// AllowCommands lets commands run that only the environment names, in all layers. It is
// for programs whose environment is as trusted as their code.
func AllowCommands() With {
	return config.NewWith(func(o *config.Options) { o.AllowCommands = true })
}

// Passphrase is what OpenTofu's shortest settings say: states and plans are
// sealed by aes_gcm, with a key that pbkdf2 derives from the passphrase. One of less
// than 16 bytes is found by [Encryption.Check], and an error when a file is opened or sealed.
// The registry must have both kinds.
func Passphrase(passphrase string) Layer {
	return config.NewLayer[With](func(o config.Options) (*config.Config, error) {
		const keys, method = "key_provider.pbkdf2.main", "method.aes_gcm.main"
		keyTable, hasKeys := find(o.KeyProviders, "pbkdf2")
		methodTable, hasMethod := find(o.Methods, "aes_gcm")
		if !hasKeys || !hasMethod {
			return nil, errors.New("a passphrase requires the key provider pbkdf2 and the method aes_gcm, and the registry lacks one of them")
		}
		target := &config.Target{Method: method}
		return &config.Config{
			KeyProviders: map[string]*entries.Entry{
				keys: entries.NewEntry(keys, keyTable, map[string]cty.Value{"passphrase": cty.StringVal(passphrase)}),
			},
			Methods: map[string]*entries.Entry{
				method: entries.NewEntry(method, methodTable, map[string]cty.Value{"keys": cty.StringVal(keys)}),
			},
			State: target,
			Plan:  target,
		}, nil
	})
}

func find(tables []attr.Table, name string) (attr.Table, bool) {
	i := slices.IndexFunc(tables, func(t attr.Table) bool { return t.Name == name })
	if i < 0 {
		return attr.Table{}, false
	}
	return tables[i], true
}

// Load puts settings to work, a later layer over the earlier ones, as OpenTofu
// lays TF_ENCRYPTION over the code. An empty layer changes nothing.
//
//	enc, err := encryption.Load(registry, encryption.Code(text, "encryption.hcl"), encryption.Environment(os.LookupEnv))
//
// It contacts nothing. An error is about text that cannot be read or parsed, each
// mistake in it an [*attr.Error]: several are in an error whose Unwrap returns them all, as
// that of [errors.Join] does. Mistakes in an entry are reported when something uses
// it, and by [Encryption.Check].
func Load(registry Registry, layers ...Layer) (*Encryption, error) {
	cfg, err := config.Read(config.For(registry.KeyProviders, registry.Methods), layers)
	if err != nil {
		return nil, err
	}
	return newEncryption(registry, cfg)
}

// Open opens a state, with the settings of the layers. With [Environment] alone, it does
// what tofu does: a tool that reads plain states calls it for every file, and plaintext
// passes unchanged if TF_ENCRYPTION is not set.
//
//	opened, err := encryption.Open(ctx, light.Registry(), file, encryption.Environment(os.LookupEnv))
//
// Errors are those of [Load] and [Target.Decrypt]. A program with many files, or
// that writes back with [Opened.Reseal], calls these two itself, and [Encryption.Close].
func Open(ctx context.Context, registry Registry, file []byte, layers ...Layer) (*Opened, error) {
	enc, err := Load(registry, layers...)
	if err != nil {
		return nil, err
	}
	defer enc.Close()
	return enc.State().Decrypt(ctx, file)
}
