// Package config reads encryption settings from OpenTofu's configuration text, in both of its
// syntaxes, and merges layers of settings.
//
// The text has the form of OpenTofu's encryption block and of the environment variable
// TF_ENCRYPTION: https://opentofu.org/docs/language/state/encryption/
package config

import (
	"errors"
	"maps"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
)

// Config is one layer of settings, or several layers merged into one.
type Config struct {
	KeyProviders map[string]*entries.Entry // entries by address, such as "key_provider.pbkdf2.main"
	Methods      map[string]*entries.Entry // entries by address, such as "method.aes_gcm.main"

	State         *Target            // nil if the block is missing
	Plan          *Target            // nil if the block is missing
	RemoteDefault *Target            // remote_state_data_sources.default; nil if the block is missing
	Remote        map[string]*Target // targets by the name of the remote_state_data_source

	// LookupEnv fills absent attributes from the environment. If it is nil, no variable is read,
	// and the client libraries of key services are kept from reading the environment. Otherwise,
	// these libraries also read the environment of the process themselves.
	LookupEnv attr.LookupEnv

	// AllowCommands allows commands that only the environment names. Commands named by any other
	// layer need no permission.
	AllowCommands bool

	// literals holds the keys that the text contains instead of a reference.
	literals map[string]literal // keys by attribute address, such as "method.aes_gcm.main.keys"
}

// Target says which methods apply to one kind of data.
type Target struct {
	Method    string   // the address of the primary method; "" if this layer names none
	Fallbacks []string // addresses of the fallbacks, in the order in which they are tried
	Enforced  bool     // whether unencrypted data is refused
	Pos       attr.Pos
}

// literal is a key that is written in the text, in the form of OpenTofu's object with two byte
// lists.
type literal struct {
	encryption []byte
	decryption []byte // nil if the key opens no files
}

// Literal returns the key that is written in the text instead of a key provider's address. It
// consists of a key to seal and a key to open, one of which may be nil. Literal returns false if
// address does not belong to such a key.
func (c *Config) Literal(address string) (encryption, decryption []byte, ok bool) {
	l, ok := c.literals[address]
	return slices.Clone(l.encryption), slices.Clone(l.decryption), ok
}

// Merge merges layers. For each attribute, the latest layer that sets it takes precedence. Entries
// and targets that only one layer has are kept. Enforced is true if any layer sets it. Merge skips
// nil layers, and returns nil if all layers are nil.
//
// As in OpenTofu, a later layer does not change encrypted_metadata_alias, so that OpenTofu finds
// the keys of files that are sealed here. Unlike in OpenTofu, a later target without a method keeps
// the method of the earlier target.
func Merge(layers ...*Config) *Config {
	var merged *Config
	for _, layer := range layers {
		if layer == nil {
			continue
		}
		if merged == nil {
			merged = newConfig()
		}
		mergeEntries(merged.KeyProviders, layer.KeyProviders)
		mergeEntries(merged.Methods, layer.Methods)
		for name, t := range layer.Remote {
			merged.Remote[name] = mergeTarget(merged.Remote[name], t)
		}
		merged.State = mergeTarget(merged.State, layer.State)
		merged.Plan = mergeTarget(merged.Plan, layer.Plan)
		merged.RemoteDefault = mergeTarget(merged.RemoteDefault, layer.RemoteDefault)
		maps.Copy(merged.literals, layer.literals)
		if layer.LookupEnv != nil {
			merged.LookupEnv = layer.LookupEnv
		}
		merged.AllowCommands = merged.AllowCommands || layer.AllowCommands
	}
	return merged
}

func newConfig() *Config {
	return &Config{
		KeyProviders: map[string]*entries.Entry{},
		Methods:      map[string]*entries.Entry{},
		Remote:       map[string]*Target{},
		literals:     map[string]literal{},
	}
}

func mergeEntries(into, from map[string]*entries.Entry) {
	for address, e := range from {
		if e == nil {
			e = &entries.Entry{Err: &attr.Error{Address: address, Err: errors.New("the entry is nil")}}
		}
		merged := *e
		merged.Address, merged.Settings = address, maps.Clone(e.Settings)
		if earlier, ok := into[address]; ok {
			merged.FromEnvironment = e.FromEnvironment && earlier.FromEnvironment
			merged.Settings = maps.Clone(earlier.Settings)
			for name, s := range e.Settings {
				if name != "encrypted_metadata_alias" {
					merged.Settings[name] = over(s, earlier.Settings[name])
				}
			}
		}
		into[address] = &merged
	}
}

func mergeTarget(earlier, later *Target) *Target {
	switch {
	case earlier == nil:
		return later
	case later == nil:
		return earlier
	}
	merged := *earlier
	merged.Enforced = earlier.Enforced || later.Enforced
	if later.Method != "" && later.Method != earlier.Method {
		merged.Method, merged.Pos = later.Method, later.Pos
	}
	if len(later.Fallbacks) > 0 {
		merged.Fallbacks = slices.Clone(later.Fallbacks)
	}
	return &merged
}
