package provider

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/syntax"
)

// configured is the provider after ConfigureProvider: what one provider block
// says, and what its data sources and ephemeral resources share.
type configured struct {
	encryption *encryption.Encryption
	env        attr.LookupEnv // nil if the environment is not to be used
	enforced   bool
	sources    map[string]source.Open          // :: kind of source → how to open one
	states     memo.Memo[string, *openedState] // :: see stateRequest.identity → state
	unknown    error                           // what of the provider block is not known yet
	complete   bool                            // blocks, all known: no text adds to the methods

	resourceReads cty.Value // allow_resource_reads, which may be unknown
}

// configure puts the provider block to work. With a nil env, it reads no
// environment; unknown values are kept as such until something needs them.
func (c catalog) configure(block cty.Value, env attr.LookupEnv) (*configured, []problem) {
	if !block.IsKnown() {
		return &configured{unknown: unknownError("the provider block")}, nil
	}
	if !isTrue(block, "use_environment", block.GetAttr("use_environment").IsKnown()) {
		env = nil
	}
	d := decoder{catalog: c, env: env, block: block}
	cfg := d.encryptionConfig()
	out := &configured{env: env, sources: d.openSources(), unknown: d.unknown, resourceReads: block.GetAttr("allow_resource_reads")}
	out.enforced = isTrue(block, "enforced", !block.GetAttr("enforced").IsKnown())
	if cfg == nil {
		cfg = &config.Config{} // methods without settings work all the same
	}
	out.enforced = out.enforced || cfg.State != nil && cfg.State.Enforced
	cfg.LookupEnv = env
	cfg.AllowExternal = isTrue(block, "allow_external", false)
	var err error
	if out.encryption, err = encryption.New(c.registry, cfg); err != nil {
		d.failAt(path.Empty(), err)
	}
	out.complete = d.places != nil && d.unknown == nil && len(d.problems) == 0
	if out.complete {
		d.checkEntries(cfg, out.encryption)
		if list, _ := blocks(block, "default"); len(list) > 0 {
			d.checkTarget(out.encryption, cfg.RemoteDefault, path.Root("default").AtListIndex(0))
		}
	}
	return out, d.problems
}

// decoder turns the arguments of a block into the settings of the packages
// below. It collects all mistakes.
type decoder struct {
	catalog  catalog
	env      attr.LookupEnv
	block    cty.Value
	places   map[string]path.Path // :: address of a key provider or method → its block; nil if there are none
	problems []problem
	unknown  error // the first thing that is not known yet
}

// problem is a mistake in a block, with its place.
type problem struct {
	path path.Path
	err  error
}

func (d *decoder) fail(p path.Path, format string, args ...any) {
	d.failAt(p, fmt.Errorf(format, args...))
}

func (d *decoder) failAt(p path.Path, err error) { d.problems = append(d.problems, problem{p, err}) }

func (d *decoder) notKnown(what string) {
	if d.unknown == nil {
		d.unknown = unknownError(what)
	}
}

// known returns the blocks of one kind. If they are not known, it says so of
// what, and there are none.
func (d *decoder) known(block cty.Value, name, what string) []cty.Value {
	list, known := blocks(block, name)
	if !known {
		d.notKnown(what)
	}
	return list
}

func unknownError(what string) error {
	return &attr.Error{Unknown: true, Err: fmt.Errorf("%s of the provider configuration is not known yet", what)}
}

// encryptionConfig takes the settings from the blocks or from text, never from
// both.
func (d *decoder) encryptionConfig() *config.Config {
	hasText := !d.block.GetAttr("encryption").IsNull()
	for _, name := range []string{"key_provider", "method", "default"} {
		list, known := blocks(d.block, name)
		if known && len(list) == 0 {
			continue
		}
		if hasText {
			d.fail(path.Empty(), "encryption and %s blocks are mutually exclusive: encryption settings stand in one place", name)
			return nil
		}
		return d.configFromBlocks()
	}
	return d.configFromText()
}

// configFromText merges TF_ENCRYPTION over the encryption argument, as
// OpenTofu merges it over the code.
func (d *decoder) configFromText() *config.Config {
	if !d.block.GetAttr("encryption").IsKnown() {
		d.notKnown("encryption")
		return nil
	}
	options := d.catalog.registry.Options(d.block.GetAttr("encryption_variables"))
	code, err := config.Parse(text(d.block, "encryption"), "encryption", options)
	d.failInText(err)
	layer, err := config.ParseEnvironment(d.env, options)
	d.failInText(err)
	return config.Merge(code, layer)
}

// failInText reports problems without a path: at the path of an argument,
// Terraform prints the source of its value, and this text may hold secrets.
func (d *decoder) failInText(err error) {
	var several attr.Errors
	if err != nil && !errors.As(err, &several) {
		several = attr.Errors{err}
	}
	for _, e := range several {
		d.failAt(path.Empty(), e)
	}
}

func (d *decoder) configFromBlocks() *config.Config {
	options := d.catalog.registry.Options(cty.NilVal)
	d.places = map[string]path.Path{}
	cfg := &config.Config{
		KeyProviders: d.entries("key_provider", options.KeyProviders),
		Methods:      d.entries("method", options.Methods),
	}
	list := d.known(d.block, "default", "default")
	if d.unknown == nil && len(d.problems) == 0 {
		d.writeOut(cfg)
	}
	if len(list) == 1 {
		cfg.RemoteDefault = d.target(list[0], path.Root("default").AtListIndex(0), cfg.RemoteDefault)
	}
	return cfg
}

// entries reads all key_provider or method blocks.
func (d *decoder) entries(what string, tables []attr.Table) map[string]*attr.Entry {
	out := map[string]*attr.Entry{}
	for i, group := range d.known(d.block, what, what) {
		for _, table := range tables {
			for j, entry := range d.known(group, table.Name, what+"."+table.Name) {
				d.entry(out, what, table, entry, path.Root(what).AtListIndex(i).AtName(table.Name).AtListIndex(j))
			}
		}
	}
	return out
}

func (d *decoder) entry(into map[string]*attr.Entry, what string, table attr.Table, entry cty.Value, p path.Path) {
	if !entry.GetAttr("name").IsKnown() {
		d.notKnown(what + "." + table.Name)
		return
	}
	name := onlyName
	if !entry.GetAttr("name").IsNull() {
		name = text(entry, "name")
	}
	address := what + "." + table.Name + "." + name
	switch {
	case !syntax.IsName(name):
		d.fail(p.AtName("name"), "a name of letters, digits, underscores and dashes is required")
	case into[address] != nil:
		d.fail(p.AtName("name"), "%s is configured twice: give each a name of its own, such as name = \"old\"", address)
	default:
		d.places[address] = p
		values := blockValues(entry)
		delete(values, "name") // which is in the address
		into[address] = attr.NewEntry(address, table, values)
	}
}

// blockValues returns the arguments of a block. A nested block is a list of at
// most one object, and becomes that object.
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

// target reads a method with its fallbacks: the default block, or a data
// source. It returns nil when no method is set, nor has the default one.
func (d *decoder) target(block cty.Value, p path.Path, only *config.Target) *config.Target {
	fallbacks, known := blocks(block, "fallback")
	if !known || !block.GetAttr("method").IsKnown() {
		d.notKnown("method or fallback of " + p.String())
		return nil
	}
	method := text(block, "method")
	switch {
	case method == "" && only != nil:
		method = only.Method
	case method == "" && !p.Equal(path.Empty()):
		d.fail(p.AtName("method"), "this argument is required, unless exactly one method is configured that decrypts")
		return nil
	case method == "" && len(fallbacks) > 0:
		d.fail(p.AtName("method"), "a fallback requires a method beside it, such as method = \"method.aes_gcm.main\"; "+
			"to use the fallbacks of the provider's default block, leave out both")
		return nil
	case method == "":
		return nil
	}
	d.checkMethod(method, p.AtName("method"))
	t := &config.Target{Method: method}
	for i, f := range fallbacks {
		at := p.AtName("fallback").AtListIndex(i).AtName("method")
		if !f.GetAttr("method").IsKnown() {
			d.notKnown(at.String())
			continue
		}
		d.checkMethod(text(f, "method"), at)
		t.Fallbacks = append(t.Fallbacks, text(f, "method"))
	}
	return t
}

func (d *decoder) checkMethod(address string, p path.Path) {
	isKind := func(b encryption.Block[encryption.Method]) bool { return b.Name == address }
	if !syntax.IsMethodAddress(address) && !slices.ContainsFunc(d.catalog.registry.Methods, isKind) {
		d.fail(p, "the address of a method is required, such as method.aes_gcm.main, or a kind without settings, "+
			"such as sops or unencrypted")
	}
}

// openSources starts every kind of source with its credentials.
func (d *decoder) openSources() map[string]source.Open {
	groups := d.known(d.block, "credentials", "credentials")
	out := map[string]source.Open{}
	for _, kind := range d.catalog.sources {
		credentials := source.Credentials{Table: kind.Credentials, Env: d.env}
		if kind.Credentials.Name != "" {
			credentials.Entries = d.credentials(groups, kind.Credentials)
		}
		out[kind.Name] = kind.Start(source.Settings{Credentials: credentials, LookupEnv: d.env})
	}
	return out
}

func (d *decoder) credentials(groups []cty.Value, table attr.Table) []*attr.Entry {
	var out []*attr.Entry
	for i, group := range groups {
		for j, entry := range d.known(group, table.Name, "credentials."+table.Name) {
			address := fmt.Sprintf("credentials[%d].%s[%d]", i, table.Name, j)
			out = append(out, attr.NewEntry(address, table, blockValues(entry)))
		}
	}
	return out
}
