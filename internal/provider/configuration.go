package provider

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// configured is the provider after ConfigureProvider: the settings of one provider block, and the objects
// that its data sources and ephemeral resources share.
type configured struct {
	encryption *encryption.Encryption
	env        attr.LookupEnv                  // nil if environment variables must not be used
	enforced   cty.Value                       // may be unknown
	sources    map[string]source.Open          // constructors of sources, by kind
	states     memo.Memo[string, *openedState] // states by stateRequest.identity
	unknown    error                           // names the first unknown part of the block; nil if all is known
	complete   bool                            // whether the whole block is known and has no mistakes
	settings   encryptionSettings              // the encryption settings of the provider block
	blocks     bool                            // whether the encryption settings are written as blocks
	text       bool                            // whether the argument encryption is set
	inText     bool                            // whether the methods and key providers are written as text
	empty      bool                            // whether the provider block is empty
	broken     []problem                       // mistakes in TF_ENCRYPTION, if there is no provider block
	names      []string                        // sorted names of the remote_state_data_source blocks in the text
	unread     environment                     // why TF_ENCRYPTION was not used

	resourceReads cty.Value // the argument allow_resource_reads; may be unknown
}

// configure reads the provider block. If env is nil, it does not use the environment. Unknown values cause an
// error only when a read needs them.
func (c kinds) configure(block cty.Value, env attr.LookupEnv) (*configured, []problem) {
	if !block.IsKnown() {
		return &configured{unknown: unknownError("the provider block")}, nil
	}
	if !isTrue(block, "use_environment", block.GetAttr("use_environment").IsKnown()) {
		env = nil
	}
	b := providerBlock{findings: &findings{}, kinds: c, env: env, value: block}
	settings := b.settings()
	out := &configured{env: env, sources: b.openSources(), unknown: b.unknown, resourceReads: block.GetAttr("allow_resource_reads")}
	if out.enforced = block.GetAttr("enforced"); settings.State != nil && settings.State.Enforced {
		out.enforced = cty.True
	}
	settings.LookupEnv = env
	settings.AllowCommands = isTrue(block, "allow_external", false)
	var err error
	if out.encryption, err = encryption.Load(c.registry, unstable.Layer(settings.Config)); err != nil {
		b.failAt(path.Empty(), err)
	}
	out.blocks, out.empty, out.names = settings.places != nil, isEmpty(block), sortedNames(settings.Remote)
	out.unread, out.text = b.unread(out.blocks), !block.GetAttr("encryption").IsNull()
	out.inText = !out.blocks && len(settings.KeyProviders)+len(settings.Methods) > 0
	out.settings, out.complete = settings, b.unknown == nil && len(b.problems) == 0
	if out.blocks && out.complete {
		settings.check(out.encryption)
		if list, _ := blocks(block, "default"); len(list) > 0 {
			b.checkTarget(out, settings.RemoteDefault, path.Root("default").AtListIndex(0))
		}
	}
	if out.empty { // otherwise the CLI would wrongly report that a provider block is required
		out.broken = b.problems
		return out, nil
	}
	return out, b.problems
}

// providerBlock is a provider block that is being read.
type providerBlock struct {
	*findings
	kinds
	env   attr.LookupEnv
	value cty.Value
}

// known returns the nested blocks with the given name. If any of them is unknown, it returns none and records
// an error in which the parameter what describes them.
func (b providerBlock) known(block cty.Value, name, what string) []cty.Value {
	list, known := blocks(block, name)
	if !known {
		b.notKnown(what)
	}
	return list
}

// encryptionSettings holds the encryption settings of a provider block.
type encryptionSettings struct {
	*findings
	*unstable.Config
	registry encryption.Registry
	places   map[string]path.Path // paths of blocks, by the address of the key provider or method; nil for text
	layered  bool                 // whether TF_ENCRYPTION is not known yet, and may add settings to the text
}

// settings reads the encryption settings either from blocks or from text. It never mixes the two.
func (b providerBlock) settings() encryptionSettings {
	out := encryptionSettings{findings: b.findings, Config: &unstable.Config{}, registry: b.registry}
	hasText := !b.value.GetAttr("encryption").IsNull()
	for _, name := range []string{"key_provider", "method", "default"} {
		list, known := blocks(b.value, name)
		if known && len(list) == 0 {
			continue
		}
		if hasText {
			b.failAt(path.Empty(), fault.With(fmt.Errorf("the argument encryption and %s blocks are mutually exclusive", name),
				"write all encryption settings in one place"))
			return out
		}
		if !b.value.GetAttr("encryption_variables").IsNull() {
			b.failAt(path.Root("encryption_variables"), fault.With(fmt.Errorf("these variables are only for the text of the argument encryption, "+
				"but the settings are in %s blocks", name), "remove this argument, and write var.NAME in the blocks"))
		}
		b.readBlocks(&out)
		return out
	}
	out.layered = b.env == nil && (!b.value.GetAttr("use_environment").IsKnown() || isTrue(b.value, "use_environment", true))
	if merged := b.readText(); merged != nil { // without any text, methods that need no settings still work
		out.Config = merged
	}
	return out
}

// readText returns the settings in the encryption argument, with TF_ENCRYPTION merged over them. OpenTofu
// merges TF_ENCRYPTION over its configuration in the same way.
func (b providerBlock) readText() *unstable.Config {
	if !b.value.GetAttr("encryption").IsKnown() {
		b.notKnown("encryption")
		return nil
	}
	if written := b.value.GetAttr("encryption"); !written.IsNull() && strings.TrimSpace(text(b.value, "encryption")) == "" {
		b.fail(path.Root("encryption"), "the text is empty; check whether a variable or a file is empty")
		return nil
	}
	variables := unstable.With(func(o *unstable.Options) { o.Variables = b.value.GetAttr("encryption_variables") })
	merged, err := unstable.Read(b.registry, encryption.Code(text(b.value, "encryption"), "encryption", variables),
		encryption.Environment(b.env, variables))
	b.failInText(err)
	return merged
}

// failInText records problems without paths. Given the path of an argument, Terraform prints the line that
// sets it, and the encryption text may contain secrets.
func (f *findings) failInText(err error) {
	var all fault.List
	if err != nil && !errors.As(err, &all) {
		all = fault.List{err}
	}
	for _, e := range all {
		f.failAt(path.Empty(), e)
	}
}

func (b providerBlock) readBlocks(into *encryptionSettings) {
	keyProviders, methods := unstable.Tables(b.registry)
	into.places = map[string]path.Path{}
	into.KeyProviders = b.entries(into.places, "key_provider", keyProviders, aBlock(aKeyProvider))
	into.Methods = b.entries(into.places, "method", methods, aBlock(aMethod))
	list := b.known(b.value, "default", "default")
	if b.unknown == nil && len(b.problems) == 0 {
		into.writeOut()
	}
	if len(list) == 1 {
		into.RemoteDefault = b.target(b.registry, list[0], path.Root("default").AtListIndex(0), into.RemoteDefault)
	}
}

// entries reads all key_provider or method blocks and records their paths. If a group contains no block, the
// error message shows one as an example.
func (b providerBlock) entries(
	places map[string]path.Path, what string, tables []attr.Table, one fault.NoBlock,
) map[string]*unstable.Entry {
	out := map[string]*unstable.Entry{}
	for i, group := range b.known(b.value, what, what) {
		b.needKind(group, path.Root(what).AtListIndex(i), one)
		for _, table := range tables {
			for j, block := range b.known(group, table.Name, what+"."+table.Name) {
				p := path.Root(what).AtListIndex(i).AtName(table.Name).AtListIndex(j)
				entry := b.entry(what, table, block, p)
				switch {
				case entry == nil:
				case out[entry.Address] != nil:
					if _, named := given(block, "name"); named {
						p = p.AtName("name")
					}
					b.failAt(p, fault.With(fmt.Errorf("%s is configured twice", entry.Address),
						`give one of them another name, for example with name = "old"`))
				default:
					places[entry.Address], out[entry.Address] = p, entry
				}
			}
		}
	}
	return out
}

// entry returns the key provider or method that a block configures, or nil if its name is unknown or invalid.
func (b providerBlock) entry(what string, table attr.Table, block cty.Value, p path.Path) *unstable.Entry {
	if !block.GetAttr("name").IsKnown() {
		b.notKnown(what + "." + table.Name)
		return nil
	}
	name, ok := given(block, "name")
	if !ok {
		name = onlyName
	}
	if !syntax.IsName(name) {
		b.fail(p.AtName("name"), "this is not a valid name; use only letters, digits, underscores and dashes")
		return nil
	}
	values := blockValues(block)
	delete(values, "name") // the address already contains the name
	return unstable.NewEntry(what+"."+table.Name+"."+name, table, values)
}

// blockValues returns the arguments of a block. It converts each nested block from a list of at most one
// object to the object.
func blockValues(block cty.Value) map[string]cty.Value {
	out := block.AsValueMap()
	for name, v := range out {
		if typ := v.Type(); !typ.IsListType() || !typ.ElementType().IsObjectType() {
			continue
		}
		switch nested, known := blocks(block, name); {
		case !known:
		case len(nested) == 0:
			delete(out, name)
		default:
			out[name] = cty.ObjectVal(blockValues(nested[0]))
		}
	}
	return out
}

// target reads a method and its fallbacks from the default block or a data source. It returns nil if the
// block names no method and only is nil.
func (f *findings) target(registry encryption.Registry, block cty.Value, p path.Path, only *unstable.Target) *unstable.Target {
	fallbacks, known := blocks(block, "fallback")
	if !known || !block.GetAttr("method").IsKnown() {
		f.notKnown("method or fallback of " + p.String())
		return nil
	}
	method := text(block, "method")
	switch {
	case method == "" && !block.GetAttr("method").IsNull():
		f.failAt(p.AtName("method"), fault.With(errors.New("the method is empty"), "remove the argument to use the default"))
		return nil
	case method == "" && only != nil:
		method = only.Method
	case method == "" && !p.Equal(path.Empty()):
		f.fail(p.AtName("method"), "this argument is required, unless exactly one configured method decrypts; set it, for example, to "+
			"\"method.aes_gcm.main\"")
		return nil
	case method == "" && len(fallbacks) > 0:
		f.failAt(p.AtName("method"), fault.With(errors.New("a fallback is set, but no method is"),
			`set a method, for example method = "method.aes_gcm.main". To use the fallbacks of the provider's default block, remove the fallback`))
		return nil
	case method == "":
		return nil
	}
	f.checkAddress(registry, method, p.AtName("method"))
	t := &unstable.Target{Method: method}
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

// openSources starts each kind of source with its credentials. It returns functions that open a source, by
// kind.
func (b providerBlock) openSources() map[string]source.Open {
	groups := b.known(b.value, "credentials", "credentials")
	for i, group := range groups {
		b.needKind(group, path.Root("credentials").AtListIndex(i), someCredentials)
	}
	blocks := map[string][]*unstable.Entry{}
	for _, kind := range b.sources {
		if name := kind.Credentials.Name; name != "" {
			blocks[name] = b.credentials(groups, kind.Credentials)
		}
	}
	out := map[string]source.Open{}
	for _, kind := range b.sources {
		name := kind.Credentials.Name
		credentials := source.Credentials{Table: kind.Credentials, Env: b.env, Entries: blocks[name], Others: maps.Clone(blocks)}
		delete(credentials.Others, name)
		out[kind.Name] = kind.Start(source.Settings{Credentials: credentials, LookupEnv: b.env, Voice: ofCredentials(name)})
	}
	return out
}

// ofCredentials returns the wording that source errors use for this kind of credentials.
func ofCredentials(kind string) fault.Voice {
	return fault.Voice{Words: map[string]string{
		"credentials": "the " + kind + " credentials block of the provider", "settings": "the provider block"}}
}

// credentials returns the credentials blocks of one kind. The address of each entry is its path in the
// provider block, because a mistake in it is reported by the data source that uses it.
func (b providerBlock) credentials(groups []cty.Value, table attr.Table) []*unstable.Entry {
	var out []*unstable.Entry
	for i, group := range groups {
		for j, entry := range b.known(group, table.Name, "credentials."+table.Name) {
			address := strings.ReplaceAll(fmt.Sprintf("in the provider block, credentials[%d].%s[%d]", i, table.Name, j), "[0]", "")
			out = append(out, unstable.NewEntry(address, table, blockValues(entry)))
		}
	}
	return out
}
