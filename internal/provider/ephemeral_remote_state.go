package provider

import "github.com/zclconf/go-cty/cty"

// remoteStateEphemeral is ephemeral "statecrypt_remote_state": what the data
// source of the same name gives, and nothing of it stored.
func (c catalog) remoteStateEphemeral() reading {
	return c.remoteState(
		"Reads the outputs of a state that is kept in git, behind HTTP or in a file, decrypting it if need be. Neither the plan nor the state stores anything of it. It never writes, locks or lists.",
		secret(computed("sensitive_outputs", cty.DynamicPseudoType, "An object of the outputs that are marked as sensitive.")),
	)
}
