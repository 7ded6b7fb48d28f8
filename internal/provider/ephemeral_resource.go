package provider

import "github.com/zclconf/go-cty/cty"

// resourceEphemeral is ephemeral "statecrypt_resource": what the data
// source of the same name gives, and nothing of it stored.
func (c catalog) resourceEphemeral() reading {
	return c.resource(
		"Reads one resource from a state, decrypting it if need be. The sources and methods are those of `statecrypt_remote_state`. Neither the plan nor the state stores anything of it. It never writes, locks or lists.",
		secret(computed("sensitive_attributes", cty.DynamicPseudoType, "The attributes that the state marks as sensitive, in the shape of `attributes`: objects have only these, and tuples have null for what is not sensitive.")),
	)
}
