// Package unstable is for the programs of this repository, and nobody else should import
// it: it changes with them, without notice. It has what provider and command know of
// settings beyond the text of users: blocks that were written elsewhere than in text, what
// text may use besides, and what stands in a text that is not OpenTofu's.
package unstable

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
)

// Blocks as the user wrote them, not yet decoded.
type (
	Entry   = entries.Entry   // a block
	Setting = entries.Setting // an attribute of it
	Scope   = entries.Scope   // what the environment has to say about it
)

// Settings that were read.
type (
	Config  = config.Config  // all of them
	Target  = config.Target  // which methods apply to one kind of data
	Options = config.Options // what text may use
)

// Module stands for the folder of a module in what a backend block says.
const Module = config.Module

// SecretVariable returns a variable of a table that holds a secret, or names one; "" if none
// is set.
func SecretVariable(table attr.Table, env attr.LookupEnv) string {
	return entries.SecretVariable(table, env)
}

// ExpectConfig refuses a file in HCL that nests too deep to be parsed.
func ExpectConfig(text []byte) error { return config.ExpectConfig(text) }

// ExpectJSON is [ExpectConfig] for HCL in JSON.
func ExpectJSON(text []byte) error { return config.ExpectJSON(text) }

// Oddities are what is odd about values in the place of what their table says they are.
func Oddities(v attr.Values) []entries.Oddity { return entries.Oddities(v) }

// CheckTable returns a mistake of whoever wrote a table, nil for none.
func CheckTable(t attr.Table) error { return entries.CheckTable(t) }

// NewEntry makes an entry of the kind of table from values, such as those of a Terraform
// block.
func NewEntry(address string, table attr.Table, values map[string]cty.Value) *Entry {
	return entries.NewEntry(address, table, values)
}

// Tables returns those of the kinds in a registry, with all attributes that an entry may
// have.
func Tables(registry encryption.Registry) (keyProviders, methods []attr.Table) {
	o := config.For(registry.KeyProviders, registry.Methods)
	return o.KeyProviders, o.Methods
}

// With changes what the text of a layer may use.
func With(change func(*Options)) encryption.With { return config.NewWith(change) }

// Read returns what [encryption.Load] puts to work.
func Read(registry encryption.Registry, layers ...encryption.Layer) (*Config, error) {
	return config.Read(config.For(registry.KeyProviders, registry.Methods), layers)
}

// Layer is one of settings that were read, or were written elsewhere than in text.
func Layer(settings *Config) encryption.Layer {
	return config.NewLayer[encryption.With](func(Options) (*Config, error) { return settings, nil })
}
