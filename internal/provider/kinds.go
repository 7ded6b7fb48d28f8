package provider

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// kinds lists the key providers, methods and sources that users can configure. The schemas are generated from
// it.
type kinds struct {
	registry encryption.Registry
	sources  []source.Kind
}

// forgiving returns a copy of c in which a source argument is optional if one of its environment variables is
// set.
func (c kinds) forgiving(env attr.LookupEnv) kinds {
	c.sources = slices.Clone(c.sources)
	for i := range c.sources {
		attrs := slices.Clone(c.sources[i].Attrs)
		for j, a := range attrs {
			_, said := env.Get(a.Env...)
			attrs[j].Required = a.Required && !said
		}
		c.sources[i].Attrs = attrs
	}
	return c
}

// providerFields returns the arguments and blocks of the provider block.
func (c kinds) providerFields() []field {
	keyProviders, methods := unstable.Tables(c.registry)
	var credentials []field
	for _, kind := range c.sources {
		if kind.Credentials.Name != "" {
			credentials = append(credentials, many(kind.Credentials))
		}
	}
	return []field{
		block("key_provider", "Where keys come from. The address of an entry is its path, such as `key_provider.pbkdf2.main`.",
			entryBlocks(keyProviders)),
		block("method", "How states are encrypted. The address of an entry is its path, such as `method.aes_gcm.main`.",
			entryBlocks(withOnlyKey(methods))),
		atMostOne(block("default", "The methods for data sources without the argument `method`.", targetFields())),
		block("credentials", "Secrets and connection settings for sources. A block is used for the addresses that its `url` covers; "+
			"one that has no `url` is chosen by its name.", credentials),
		argument("encryption", cty.String, "Encryption settings in OpenTofu's syntax (HCL or JSON) instead of the blocks here: the content of "+
			"its `encryption` block. `TF_ENCRYPTION` is merged over it."),
		secret(argument("encryption_variables", cty.Map(cty.String), "The values of `var.*` in the `encryption` text.")),
		argument("enforced", cty.Bool, "Whether unencrypted states are refused everywhere, whatever a data source says. Defaults to "+
			"`false`."),
		argument("use_environment", cty.Bool, "Whether environment variables are read, such as `TF_ENCRYPTION` or `GIT_PASSWORD`, "+
			"also by the clients of key services. Defaults to `true`."),
		argument("allow_external", cty.Bool, "Whether a command that only the environment names may run. Defaults to `false`."),
		argument("allow_resource_reads", cty.Bool, "Whether `statecrypt_resource` may read resources. Any module can contain one, and it "+
			"returns secrets, too. Not needed if `object` is set. Defaults to `false`."),
	}
}

// entryBlocks returns the blocks allowed inside key_provider or method, one for each kind.
func entryBlocks(tables []attr.Table) []field {
	out := make([]field, len(tables))
	for i, t := range tables {
		out[i] = many(t, argument("name", cty.String, "The last part of the entry's address: letters, digits, underscores and "+
			"dashes. Defaults to `main`."))
	}
	return out
}

// withOnlyKey returns the method tables with the key provider marked as optional, because writeOut adds the
// only one.
func withOnlyKey(methods []attr.Table) []attr.Table {
	methods = slices.Clone(methods)
	for m, t := range methods {
		methods[m].Attrs = slices.Clone(t.Attrs)
		for i, a := range t.Attrs {
			if a.Form == attr.KeyProvider && a.Required {
				methods[m].Attrs[i].Required = false
				methods[m].Attrs[i].Doc += " Defaults to the only key provider."
			}
		}
	}
	return methods
}

// targetFields returns the arguments of the default block. Data sources have the same arguments, to override
// the default.
func targetFields() []field {
	return []field{
		argument("method", cty.String, "The address of the method, such as `method.aes_gcm.main`, or `unencrypted`."),
		block("fallback", "A method to try if the methods before it have no key for the file. There may be several fallbacks, which are tried "+
			"in order.", []field{
			required(argument("method", cty.String, "The address of the method, or `unencrypted`.")),
		}),
	}
}

func argument(name string, typ cty.Type, doc string) field {
	return field{Attr: attr.Attr{Name: name, Type: typ, Doc: doc}}
}

func required(f field) field {
	f.Required = true
	return f
}

func secret(f field) field {
	f.Secrecy = attr.Secret
	return f
}

func block(name, doc string, inner []field) field {
	return field{Attr: attr.Attr{Name: name, Doc: doc}, Many: true, Fields: inner}
}

func atMostOne(f field) field {
	f.Many = false
	return f
}

// many returns a repeatable block with the arguments of a table, after the first ones.
func many(t attr.Table, first ...field) field { return block(t.Name, t.Doc, fields(t.Attrs, first...)) }
