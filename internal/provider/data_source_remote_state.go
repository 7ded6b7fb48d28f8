package provider

import "github.com/zclconf/go-cty/cty"

// remoteStateData is data "statecrypt_remote_state".
func (c catalog) remoteStateData() reading {
	return c.remoteState(
		"Reads the outputs of a state that is kept in git, behind HTTP or in a file, decrypting it if need be. It never writes, locks or lists.",
		argument("store_sensitive", cty.Bool, "Whether `sensitive_outputs` is filled. Everything that a data source gives is stored in plain text in the state of the configuration that reads. Defaults to `false`; the ephemeral resource of the same name gives sensitive outputs without storing them."),
		secret(computed("sensitive_outputs", cty.DynamicPseudoType, "An object of the outputs that are marked as sensitive; null unless `store_sensitive = true`.")),
	)
}
