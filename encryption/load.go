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

// Layer is a source of settings for [Load]. [Code], [Environment], [Module] and [Passphrase] return
// layers. A nil Layer is empty.
type Layer interface {
	layer
}

// With is an option of a [Layer]. [Variables], [VarFiles], [VarEnvironment] and [AllowCommands]
// return options.
type With interface {
	with
}

type (
	layer = config.Layer
	with  = config.With
)

// Code returns a layer with the content of an OpenTofu encryption block. The text is read as JSON
// if it begins with "{" or if filename ends with .json, and as HCL's native syntax otherwise. Blank
// text is an empty layer. Errors give positions in the text, under the name filename.
//
// Commands named in the text will run. Do not pass the value of an environment variable; use
// [Environment] for that.
func Code(text, filename string, with ...With) Layer {
	return config.NewLayer(func(o config.Options) (*config.Config, error) { return config.Parse(text, filename, o) }, with...)
}

// Module returns a layer with the encryption block of the OpenTofu module in the folder dir. It
// finds and merges the block as OpenTofu does: in .tf and .tofu files, in both syntaxes, and with
// override files. The layer is empty if the module has no such block. If the folder contains no
// module, loading the layer is an error.
//
// The options set the values of variables. Variables that they do not set take their values from
// terraform.tfvars, *.auto.tfvars and the JSON forms of these files in the folder, in OpenTofu's
// order, and then from their defaults. Files are therefore sealed with the same key as in OpenTofu.
// Environment variables, including TF_WORKSPACE, count only with [VarEnvironment]. Without it,
// terraform.workspace is the workspace selected in the folder.
//
// Commands named in the block will run. Relative paths in the block are relative to the working
// directory of the process, except for file(), which resolves them in the folder.
func Module(dir string, with ...With) Layer {
	return config.NewLayer(func(o config.Options) (*config.Config, error) { return config.ParseModule(dir, o) }, with...)
}

// Environment returns a layer with the text in TF_ENCRYPTION. If no layer sets an argument, this
// layer also fills it from variables such as BAO_TOKEN. Lookup is [os.LookupEnv] or a similar
// function. Several goroutines may call it until [Encryption.Close].
//
// Without this layer, no environment variable is read, and the clients of key services are kept
// from reading any. With it, the clients, and the programs that give keys, also read the
// environment of the process. They do so even where lookup returns another value, because a process
// is assumed to serve one user.
//
// Environment variables must not choose commands to run, or servers that receive the secrets of
// other layers. If they do, using the entry is an error; see [attr.Attr].
func Environment(lookup attr.LookupEnv, with ...With) Layer {
	return config.NewLayer(func(o config.Options) (*config.Config, error) { return config.ParseEnvironment(lookup, o) }, with...)
}

// Variables sets the values of var.*. They take precedence over [VarFiles] and [VarEnvironment]. A
// reference to a variable without a value is an error.
func Variables(values map[string]cty.Value) With {
	return config.NewWith(func(o *config.Options) { o.Variables = cty.ObjectVal(values) })
}

// VarFiles sets var.* to the values in .tfvars files, like OpenTofu's flag -var-file. Later files
// take precedence.
func VarFiles(paths ...string) With {
	return config.NewWith(func(o *config.Options) {
		for _, path := range paths {
			o.Arguments = append(slices.Clip(o.Arguments), "-var-file="+path)
		}
	})
}

// VarEnvironment sets each var.NAME to the value of TF_VAR_NAME, and terraform.workspace to the value
// of TF_WORKSPACE. The argument environ has the format of [os.Environ].
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

// AllowCommands allows commands that are set only in the environment, in all layers. Use it only if the
// environment is as trusted as the program's code.
func AllowCommands() With {
	return config.NewWith(func(o *config.Options) { o.AllowCommands = true })
}

// Passphrase returns a layer that seals states and plans with the aes_gcm method. The pbkdf2 key
// provider derives the key from the passphrase. The registry must have both kinds. If the
// passphrase is shorter than 16 bytes, opening or sealing a file returns an error, and
// [Encryption.Check] reports it.
func Passphrase(passphrase string) Layer {
	return config.NewLayer[With](func(o config.Options) (*config.Config, error) {
		const keys, method = "key_provider.pbkdf2.main", "method.aes_gcm.main"
		keyTable, hasKeys := config.Find(o.KeyProviders, "pbkdf2")
		methodTable, hasMethod := config.Find(o.Methods, "aes_gcm")
		if !hasKeys || !hasMethod {
			return nil, errors.New("a passphrase requires the key provider pbkdf2 and the method aes_gcm, but the registry does " +
				"not have both")
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

// Load reads the settings in layers. It merges each layer over the earlier ones, as OpenTofu merges
// TF_ENCRYPTION over the configuration. An empty layer changes nothing.
//
//	enc, err := encryption.Load(registry, encryption.Code(text, "encryption.hcl"), encryption.Environment(os.LookupEnv))
//
// Load contacts no server and runs no program. If text cannot be read or parsed, it returns an
// [*attr.Error] for each mistake; several are joined as by [errors.Join]. It also returns an error
// if the registry is invalid or lacks a kind that [Passphrase] needs. Mistakes in an entry are
// reported when a file needs the entry, and by [Encryption.Check].
func Load(registry Registry, layers ...Layer) (*Encryption, error) {
	cfg, err := config.Read(config.For(registry.KeyProviders, registry.Methods), layers)
	if err != nil {
		return nil, err
	}
	return newEncryption(registry, cfg)
}

// Open opens a state with the settings in layers. A tool that reads plaintext states can call Open
// for every file: with [Environment] as the only layer, it behaves like OpenTofu, and returns
// plaintext unchanged if TF_ENCRYPTION is not set.
//
//	opened, err := encryption.Open(ctx, light.Registry(), file, encryption.Environment(os.LookupEnv))
//
// Open returns the errors of [Load] and [Target.Decrypt]. A program that opens many files, or uses
// [Opened.Reseal], should call these two functions itself, and then [Encryption.Close].
func Open(ctx context.Context, registry Registry, file []byte, layers ...Layer) (*Opened, error) {
	enc, err := Load(registry, layers...)
	if err != nil {
		return nil, err
	}
	defer enc.Close()
	return enc.State().Decrypt(ctx, file)
}
