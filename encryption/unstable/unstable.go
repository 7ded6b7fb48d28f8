// Package unstable exports parts of the settings that only the programs of this repository need.
// Other programs should not import it, because it changes without notice. The provider and the
// command need more than OpenTofu's text: entries made from Terraform blocks, options for the text,
// and blocks that OpenTofu does not have.
package unstable

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
)

// These types describe blocks as the user wrote them, before they are decoded.
type (
	Entry   = entries.Entry   // a block
	Setting = entries.Setting // an attribute of a block
	Scope   = entries.Scope   // the values that the environment may give a block
)

// These types describe settings that were read.
type (
	Config  = config.Config  // all settings
	Target  = config.Target  // the methods for one kind of data
	Options = config.Options // the kinds, blocks and values that a text may use

	NotSettingsError = config.NotSettingsError // the error for a text without any settings
)

// Module is the placeholder for the module's folder in values of a backend block.
const Module = config.Module

// SecretVariable returns the name of an environment variable in the table that is set and holds, or
// names, a secret. It returns "" if there is none.
func SecretVariable(table attr.Table, env attr.LookupEnv) string {
	return entries.SecretVariable(table, env)
}

// ExpectConfig returns an error if an HCL file is nested too deeply to be parsed.
func ExpectConfig(text []byte) error { return config.ExpectConfig(text) }

// ExpectJSON returns an error if an HCL file in JSON syntax is nested too deeply to be parsed.
func ExpectJSON(text []byte) error { return config.ExpectJSON(text) }

// CheckTable returns an error if a table contradicts itself.
func CheckTable(t attr.Table) error { return entries.CheckTable(t) }

// NewEntry makes an entry from a table and attribute values, such as the arguments of a Terraform
// block.
func NewEntry(address string, table attr.Table, values map[string]cty.Value) *Entry {
	return entries.NewEntry(address, table, values)
}

// Tables returns the tables of all kinds in a registry, with all attributes that an entry may have.
func Tables(registry encryption.Registry) (keyProviders, methods []attr.Table) {
	o := config.For(registry.KeyProviders, registry.Methods)
	return o.KeyProviders, o.Methods
}

// With returns a layer option that calls change to modify the [Options].
func With(change func(*Options)) encryption.With { return config.NewWith(change) }

// Read reads settings from layers, like [encryption.Load].
func Read(registry encryption.Registry, layers ...encryption.Layer) (*Config, error) {
	return config.Read(config.For(registry.KeyProviders, registry.Methods), layers)
}

// Layer returns a layer with settings that were read before or that do not come from text.
func Layer(settings *Config) encryption.Layer {
	return config.NewLayer[encryption.With](func(Options) (*Config, error) { return settings, nil })
}
