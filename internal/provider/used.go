package provider

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// This file detects provider blocks that are empty, or that do not have the effect that users expect.

// isEmpty reports whether a block has no arguments and no nested blocks. If a data source uses a provider
// without an alias, and there is no block for it, the CLI sends an empty one.
func isEmpty(block cty.Value) bool {
	for _, v := range block.AsValueMap() {
		noBlocks := v.IsKnown() && !v.IsNull() && v.Type().IsListType() && v.LengthInt() == 0
		if !noBlocks && !(v.IsKnown() && v.IsNull()) {
			return false
		}
	}
	return true
}

// example returns the required arguments of the block at a path such as "method.aes_gcm". It returns nil for
// an unknown kind.
func example(path string) []string {
	what, kind, _ := strings.Cut(path, ".")
	registry := builtin.Registry()
	if what == "method" {
		b, _ := registry.Method(kind)
		return b.Example
	}
	b, _ := registry.KeyProvider(kind)
	return b.Example
}

// unread returns the reason why TF_ENCRYPTION was not used, or heard if any settings were read.
func (b providerBlock) unread(areBlocks bool) environment {
	text, _ := b.env.Get("TF_ENCRYPTION")
	isSet, isText := strings.TrimSpace(text) != "", !b.value.GetAttr("encryption").IsNull()
	switch {
	case areBlocks && isSet:
		return besideText
	case areBlocks || isText || isSet:
		return heard
	case b.env == nil:
		return notWanted
	case !b.value.GetAttr("encryption_variables").IsNull():
		return noText
	}
	return unset
}

// needKind records a mistake if a group, such as method, contains no block.
func (f *findings) needKind(group cty.Value, p path.Path, one fault.NoBlock) {
	if group.IsKnown() && !group.IsNull() && isEmpty(group) {
		f.failAt(p, fault.Known(errors.New("this block is empty; add a block to it, for example"), one))
	}
}

// aBlock returns an example of the block at a path such as "method.aes_gcm".
func aBlock(path string) fault.NoBlock { return fault.NoBlock{Path: path, Arguments: example(path)} }

const (
	aKeyProvider = "key_provider.pbkdf2"
	aMethod      = "method.aes_gcm"
)

var someCredentials = fault.NoBlock{Path: "credentials.git", Arguments: []string{
	`url = "https://git.example.com/"`, "username = var.git_username", "password = var.git_password"}}

// checkName returns an error if there is no remote_state_data_source with this name.
func (c *configured) checkName(name string) error {
	switch {
	case name == "", slices.Contains(c.names, name):
		return nil
	case c.blocks:
		return fault.With(errors.New("a name selects a remote_state_data_source in the encryption text, but the provider block has no such "+
			"text"), "remove the argument name. If the default method is not the right one, set the argument method")
	case len(c.names) == 0:
		return fault.With(fmt.Errorf("the encryption text has no remote_state_data_source, so the name %q selects nothing", name),
			"remove the argument name to use the default")
	}
	return fmt.Errorf("the encryption text has no remote_state_data_source %q, but it has %s%s", name,
		strings.Join(c.names, ", "), syntax.Suggest(name, c.names))
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
