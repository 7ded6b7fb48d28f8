package encryption

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

// Layer is a part of the settings, for [Load]. [Code] and [Environment] make
// them.
type Layer func(config.Options) (*config.Config, error)

// Code is what stands inside OpenTofu's encryption block, in native syntax or,
// when it begins with "{", in JSON. Blank text is an empty layer. Filename
// names the text in errors.
//
// The commands that it names will run, so text from a variable is none of it.
func Code(text, filename string) Layer {
	return func(o config.Options) (*config.Config, error) { return config.Parse(text, filename, o) }
}

// Environment is the text in TF_ENCRYPTION and, for arguments that no layer
// sets, variables such as BAO_TOKEN. Lookup is [os.LookupEnv], or a function
// like it. Without this layer, no variable is read, and the clients of key
// services are kept from doing so.
//
// Whoever sets the variables does not choose what runs, or where the secrets of
// the other layers go: both are errors when the entry is used. See
// [config.Config.Decode].
func Environment(lookup attr.LookupEnv) Layer {
	return func(o config.Options) (*config.Config, error) { return config.ParseEnvironment(lookup, o) }
}

// AllowCommands lets commands run that only the environment names. It is for
// programs whose environment is as trusted as their code.
func (l Layer) AllowCommands() Layer {
	return func(o config.Options) (*config.Config, error) {
		c, err := l(o)
		return config.Merge(c, &config.Config{AllowExternal: true}), err
	}
}

// WithVariables gives var.* in the layer's text its values, an object or a map.
func (l Layer) WithVariables(values cty.Value) Layer {
	return func(o config.Options) (*config.Config, error) {
		o.Variables = values
		return l(o)
	}
}

// Load puts settings to work, a later layer over the earlier ones, as OpenTofu
// lays TF_ENCRYPTION over the code:
//
//	enc, err := encryption.Load(registry, encryption.Code(text, "encryption.hcl"), encryption.Environment(os.LookupEnv))
//
// It contacts nothing. Without any settings, nothing can be opened. An error is
// about text that cannot be parsed; mistakes in an entry are reported when
// something uses it.
func Load(registry Registry, layers ...Layer) (*Encryption, error) {
	var parsed []*config.Config
	var errs attr.Errors
	for _, layer := range layers {
		c, err := layer(registry.Options(cty.NilVal))
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
