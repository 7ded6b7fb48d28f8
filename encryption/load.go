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

// Layer is a part of the settings that [Load] reads. [Code], [Environment], [Module] and
// [Passphrase] make layers. Nil is an empty layer.
type Layer interface {
	layer
}

// With is an option of a layer. [Variables], [VarFiles], [VarEnvironment] and [AllowCommands]
// make options.
type With interface {
	with
}

type (
	layer = config.Layer
	with  = config.With
)

// Code returns a layer with the content of an OpenTofu encryption block, in native syntax or, if
// text begins with "{" or filename ends with .json, in JSON. Blank text is an empty layer. Errors
// give positions in the text with the name filename.
//
// Commands that the text names will run, so do not pass the value of an environment variable;
// use [Environment].
func Code(text, filename string, with ...With) Layer {
	return config.NewLayer(func(o config.Options) (*config.Config, error) { return config.Parse(text, filename, o) }, with...)
}

// Module returns a layer with the encryption block of the OpenTofu module in folder dir, found
// and merged as OpenTofu does: in .tf and .tofu files in both syntaxes, override files
// included. It is an empty layer if the module has no such block. A folder without a module
// is an error.
//
// The options set the values of variables. Other variables take their values from
// terraform.tfvars, *.auto.tfvars and their JSON forms in the folder, in OpenTofu's order, and
// then from their defaults, so that a file is sealed with the key that OpenTofu has.
// Environment variables, TF_WORKSPACE included, count only with [VarEnvironment]; without it,
// terraform.workspace is the workspace that is selected in the folder.
//
// Commands that the block names will run. Relative paths in it are relative to the working
// directory of the process, except for file(), which starts in the folder.
func Module(dir string, with ...With) Layer {
	return config.NewLayer(func(o config.Options) (*config.Config, error) { return config.ParseModule(dir, o) }, with...)
}

// Environment returns a layer with the text in TF_ENCRYPTION. It also fills arguments that no
// layer sets from variables such as BAO_TOKEN. Lookup is [os.LookupEnv] or a function like it;
// several goroutines call it until [Encryption.Close].
//
// Without this layer, no environment variable is read, and clients of key services are kept
// from reading any. With it, these clients and programs also read the environment of the
// process, even where lookup returns another value: a process serves one user.
//
// Environment variables must neither choose the commands that run, nor the servers that
// receive the secrets of other layers. Both are errors when the entry is used; see [attr.Attr].
func Environment(lookup attr.LookupEnv, with ...With) Layer {
	return config.NewLayer(func(o config.Options) (*config.Config, error) { return config.ParseEnvironment(lookup, o) }, with...)
}

// Variables sets var.* to these values, which win over [VarFiles] and [VarEnvironment]. A
// reference to a variable without a value is an error.
func Variables(values map[string]cty.Value) With {
	return config.NewWith(func(o *config.Options) { o.Variables = cty.ObjectVal(values) })
}

// VarFiles sets var.* to the values in .tfvars files, as OpenTofu's flag -var-file does. A
// later file wins.
func VarFiles(paths ...string) With {
	return config.NewWith(func(o *config.Options) {
		for _, path := range paths {
			o.Arguments = append(slices.Clip(o.Arguments), "-var-file="+path)
		}
	})
}

// VarEnvironment sets var.region to the value of TF_VAR_region, and so on, and
// terraform.workspace to the value of TF_WORKSPACE. Environ has the form of [os.Environ].
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

// AllowCommands allows commands that only the environment names, in all layers. Pass it if the
// environment is as trusted as the program's code.
func AllowCommands() With {
	return config.NewWith(func(o *config.Options) { o.AllowCommands = true })
}

// Passphrase returns a layer that seals states and plans by the method aes_gcm, with a key
// that the key provider pbkdf2 derives from the passphrase. The registry must have both kinds.
// A passphrase of less than 16 bytes is an error when a file is opened or sealed, and a
// finding of [Encryption.Check].
func Passphrase(passphrase string) Layer {
	return config.NewLayer[With](func(o config.Options) (*config.Config, error) {
		const keys, method = "key_provider.pbkdf2.main", "method.aes_gcm.main"
		keyTable, hasKeys := config.Find(o.KeyProviders, "pbkdf2")
		methodTable, hasMethod := config.Find(o.Methods, "aes_gcm")
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

// Load reads settings from layers. A later layer is merged over the earlier ones, as OpenTofu
// merges TF_ENCRYPTION over the configuration. An empty layer changes nothing.
//
//	enc, err := encryption.Load(registry, encryption.Code(text, "encryption.hcl"), encryption.Environment(os.LookupEnv))
//
// Load contacts no server and runs no program. It returns an error for text that cannot be
// read or parsed: an [*attr.Error] for each mistake, several of them joined like those of
// [errors.Join]. A registry that is invalid, or lacks a kind that [Passphrase] needs, is an error,
// too. Mistakes in an entry are reported when a file needs the entry, and by [Encryption.Check].
func Load(registry Registry, layers ...Layer) (*Encryption, error) {
	cfg, err := config.Read(config.For(registry.KeyProviders, registry.Methods), layers)
	if err != nil {
		return nil, err
	}
	return newEncryption(registry, cfg)
}

// Open opens a state with the settings of the layers. A tool that reads plaintext states can
// call it for every file: with [Environment] alone, it behaves as OpenTofu, so plaintext
// passes unchanged if TF_ENCRYPTION is not set.
//
//	opened, err := encryption.Open(ctx, light.Registry(), file, encryption.Environment(os.LookupEnv))
//
// Its errors come from [Load] and [Target.Decrypt]. A program that opens many files, or calls
// [Opened.Reseal], calls these two itself, and [Encryption.Close] at the end.
func Open(ctx context.Context, registry Registry, file []byte, layers ...Layer) (*Opened, error) {
	enc, err := Load(registry, layers...)
	if err != nil {
		return nil, err
	}
	defer enc.Close()
	return enc.State().Decrypt(ctx, file)
}
