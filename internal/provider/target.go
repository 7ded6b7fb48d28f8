package provider

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/syntax"
)

// target reads a method with its fallbacks: the default block, or a data
// source. It returns nil when no method is set, nor has the default one.
func (f *findings) target(registry encryption.Registry, block cty.Value, p path.Path, only *config.Target) *config.Target {
	fallbacks, known := blocks(block, "fallback")
	if !known || !block.GetAttr("method").IsKnown() {
		f.notKnown("method or fallback of " + p.String())
		return nil
	}
	method := text(block, "method")
	switch {
	case method == "" && only != nil:
		method = only.Method
	case method == "" && !p.Equal(path.Empty()):
		f.fail(p.AtName("method"), "this argument is required, unless exactly one method is configured that decrypts")
		return nil
	case method == "" && len(fallbacks) > 0:
		f.fail(p.AtName("method"), "a fallback requires a method beside it, such as method = \"method.aes_gcm.main\"; "+
			"to use the fallbacks of the provider's default block, leave out both")
		return nil
	case method == "":
		return nil
	}
	f.checkAddress(registry, method, p.AtName("method"))
	t := &config.Target{Method: method}
	for i, fallback := range fallbacks {
		at := p.AtName("fallback").AtListIndex(i).AtName("method")
		if !fallback.GetAttr("method").IsKnown() {
			f.notKnown(at.String())
			continue
		}
		f.checkAddress(registry, text(fallback, "method"), at)
		t.Fallbacks = append(t.Fallbacks, text(fallback, "method"))
	}
	return t
}

func (f *findings) checkAddress(registry encryption.Registry, address string, p path.Path) {
	isKind := func(b encryption.Block[encryption.Method]) bool { return b.Name == address }
	if !syntax.IsMethodAddress(address) && !slices.ContainsFunc(registry.Methods, isKind) {
		f.fail(p, "the address of a method is required, such as method.aes_gcm.main, or a kind without settings, "+
			"such as sops or unencrypted")
	}
}
