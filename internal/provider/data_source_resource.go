package provider

import "github.com/zclconf/go-cty/cty"

// resourceData is data "statecrypt_resource".
func (c catalog) resourceData() reading {
	return c.resource(
		"Reads one resource from a state, decrypting it if need be. The sources and methods are those of `statecrypt_remote_state`. It never writes, locks or lists.",
		argument("store_sensitive", cty.Bool, "Whether `sensitive_attributes` is filled. Everything that a data source gives is stored in plain text in the state of the configuration that reads. Defaults to `false`; the ephemeral resource of the same name gives sensitive attributes without storing them."),
		secret(computed("sensitive_attributes", cty.DynamicPseudoType, "The attributes that the state marks as sensitive, in the shape of `attributes`: objects have only these, and tuples have null for what is not sensitive. Null unless `store_sensitive = true`.")),
	)
}
