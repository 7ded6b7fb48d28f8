package provider

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/missing"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// This file is about provider blocks that say nothing, or not what their users think.

// isEmpty reports whether nothing is written in a block. A CLI makes such a block up if
// a data source is for a provider without an alias, and there is none.
func isEmpty(block cty.Value) bool {
	for _, v := range block.AsValueMap() {
		noBlocks := v.IsKnown() && !v.IsNull() && v.Type().IsListType() && v.LengthInt() == 0
		if !noBlocks && !(v.IsKnown() && v.IsNull()) {
			return false
		}
	}
	return true
}

// What a read with this provider block may have lacked.
const (
	otherProvider = "The provider block that was used is empty, or there is none without an alias. If the settings are in a block with " +
		"an alias, choose it with provider = statecrypt.ALIAS. If this is in a module, pass the block on where the module is called, with " +
		"providers = { statecrypt = statecrypt.ALIAS }."
	blocksInPlaceOfText = "Such blocks take the place of the argument encryption, whose text has no key provider: remove that argument, or " +
		"write the key provider there."
	unsetEnvironment = "TF_ENCRYPTION is not set, or it is empty."
	valuesForNoText  = "encryption_variables is set, and gives values to var.* in encryption or TF_ENCRYPTION alone; neither is set."
	noEnvironment    = "TF_ENCRYPTION is not read, because of use_environment = false."
	blocksAreRead    = "TF_ENCRYPTION is set but not read, because the provider block has its settings in blocks. If it is meant for " +
		"this provider, remove the key_provider, method and default blocks, or write their settings as text into the argument " +
		"encryption, over which it is merged."
)

// explain is [readDiagnostics] for a read with this provider block. A provider does not
// know its alias; what it knows is that nothing is written in its block.
func (c *configured) explain(err error) diagnostics {
	out := readDiagnostics(err)
	detail := &out[0].Detail
	lacking, missing := errors.AsType[*missing.Method](err)
	lacks := c.unread != "" && (missing || strings.Contains(*detail, "is not configured"))
	if c.empty && (lacks || strings.Contains(*detail, "credentials")) {
		*detail += "\n\n" + otherProvider
	}
	if missing && len(lacking.Selected) == 0 && len(c.names) > 0 {
		*detail += fmt.Sprintf("\n\nThe encryption text selects methods for states by name. To use them, set name = \"%s\" here.",
			strings.Join(c.names, `" or "`))
	}
	if missing && lacking.Format == "" && len(lacking.KeyProviders) == 0 && c.text {
		*detail += "\n\n" + blocksInPlaceOfText
	}
	if lacks || c.unread == blocksAreRead && errors.Is(err, encryption.ErrNoKey) {
		*detail += "\n\n" + c.unread
	}
	return out
}

// unread says why TF_ENCRYPTION has no say, "" if it has, or if nothing is set that
// could have one.
func (b providerBlock) unread(areBlocks bool) string {
	text, _ := b.env.Get("TF_ENCRYPTION")
	isSet, isText := strings.TrimSpace(text) != "", !b.value.GetAttr("encryption").IsNull()
	switch {
	case areBlocks && isSet:
		return blocksAreRead
	case areBlocks || isText || isSet:
		return ""
	case b.env == nil:
		return noEnvironment
	case !b.value.GetAttr("encryption_variables").IsNull():
		return valuesForNoText
	}
	return unsetEnvironment
}

// needKind refuses a group, such as method, without the block of a kind in it.
func (f *findings) needKind(group cty.Value, p path.Path, remedy string) {
	if group.IsKnown() && !group.IsNull() && isEmpty(group) {
		f.fail(p, "there is no block in it; the block of a kind is required, such as%s", remedy)
	}
}

var (
	aMethod      = syntax.Remedy("method.aes_gcm", `keys = "key_provider.pbkdf2.main"`)
	aCredentials = syntax.Remedy("credentials.git", `url = "https://git.example.com/"`, "username = var.git_username",
		"password = var.git_password")
)

// checkName finds out whether there is a remote_state_data_source of this name.
func (c *configured) checkName(name string) error {
	_, err := c.encryption.RemoteState(name)
	switch {
	case err == nil || name == "":
		return nil
	case c.blocks:
		return errors.New("a name chooses a remote_state_data_source of OpenTofu's text, and the provider block has blocks in place of that " +
			"text; remove it, and set method if the default is not the right one")
	case len(c.names) == 0:
		return fmt.Errorf("there is no remote_state_data_source %q in the encryption text, nor any other; to use the default, remove name", name)
	}
	return fmt.Errorf("there is no remote_state_data_source %q in the encryption text; there are: %s%s", name,
		strings.Join(c.names, ", "), syntax.Suggest(name, c.names))
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
