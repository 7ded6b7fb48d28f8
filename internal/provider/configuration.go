package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// configured is the provider after Configure: what one provider block says,
// and what its data sources and ephemeral resources share.
type configured struct {
	encryption *encryption.Encryption
	env        attr.LookupEnv // nil when the environment is not to be used
	enforced   bool
	sources    map[string]source.Open          // :: kind of source → how to open one
	states     memo.Memo[string, *openedState] // :: see stateRequest.identity → state
	unknown    error                           // what of the provider block is not known yet

	resourceReads cty.Value // allow_resource_reads, which may be unknown
}

// problem is a mistake in a block, with its place.
type problem struct {
	path path.Path
	err  error
}

// configure puts the provider block to work. With a nil env, it reads no
// environment; unknown values are kept as such until something needs them.
func (c catalog) configure(raw tftypes.Value, env attr.LookupEnv) (*configured, []problem) {
	block, err := toCty(raw)
	if err != nil {
		return nil, []problem{{err: err}}
	}
	if !block.IsKnown() || block.IsNull() {
		return &configured{unknown: unknownError("the provider block")}, nil
	}
	if !isTrue(block, "use_environment", block.GetAttr("use_environment").IsKnown()) {
		env = nil
	}
	d := decoder{catalog: c, env: env}
	cfg := d.encryptionConfig(block)
	out := &configured{
		env:     env,
		sources: d.openSources(block),
		unknown: d.unknown,

		resourceReads: block.GetAttr("allow_resource_reads"),
	}
	enforced := block.GetAttr("enforced")
	out.enforced = isTrue(block, "enforced", !enforced.IsKnown()) || cfg != nil && cfg.State != nil && cfg.State.Enforced
	if cfg != nil {
		cfg.LookupEnv = env
		cfg.AllowExternal = isTrue(block, "allow_external", false)
	}
	if out.encryption, err = encryption.New(c.registry, cfg); err != nil {
		d.problems = append(d.problems, problem{err: err})
	}
	return out, d.problems
}

// decoder turns the provider block into the settings of the packages below.
type decoder struct {
	catalog  catalog
	env      attr.LookupEnv
	problems []problem
	unknown  error // the first thing that is not known yet
}

func (d *decoder) fail(p path.Path, format string, args ...any) {
	d.problems = append(d.problems, problem{p, fmt.Errorf(format, args...)})
}

func (d *decoder) notKnown(what string) {
	if d.unknown == nil {
		d.unknown = unknownError(what)
	}
}

func unknownError(what string) error {
	return &attr.Error{Unknown: true, Err: fmt.Errorf("%s of the provider configuration is not known yet", what)}
}

// encryptionConfig takes the settings from the blocks or from text, never from
// both.
func (d *decoder) encryptionConfig(block cty.Value) *config.Config {
	hasText := !block.GetAttr("encryption").IsNull()
	for _, name := range []string{"key_provider", "method", "default"} {
		list, known := blocks(block, name)
		if known && len(list) == 0 {
			continue
		}
		if hasText {
			d.fail(path.Empty(), "encryption and %s blocks exclude one another: encryption settings stand in one place", name)
			return nil
		}
		return d.configFromBlocks(block)
	}
	return d.configFromText(block)
}

// configFromText merges TF_ENCRYPTION over the encryption argument, as
// OpenTofu merges it over the code.
func (d *decoder) configFromText(block cty.Value) *config.Config {
	if !block.GetAttr("encryption").IsKnown() {
		d.notKnown("encryption")
		return nil
	}
	options := d.catalog.registry.Options(block.GetAttr("encryption_variables"))
	code, err := config.Parse(text(block, "encryption"), "encryption", options)
	if err != nil {
		d.problems = append(d.problems, textProblems(err)...)
	}
	layer, err := config.ParseEnvironment(d.env, options)
	if err != nil {
		d.problems = append(d.problems, textProblems(err)...)
	}
	return config.Merge(code, layer)
}

// textProblems have no path: at the path of an argument, Terraform prints the
// source of its value, and this text may hold secrets.
func textProblems(err error) []problem {
	var several attr.Errors
	if !errors.As(err, &several) {
		several = attr.Errors{err}
	}
	var out []problem
	for _, e := range several {
		out = append(out, problem{path.Empty(), e})
	}
	return out
}

func (d *decoder) configFromBlocks(block cty.Value) *config.Config {
	options := d.catalog.registry.Options(cty.NilVal)
	cfg := &config.Config{
		KeyProviders: d.entries(block, "key_provider", options.KeyProviders),
		Methods:      d.entries(block, "method", options.Methods),
	}
	if list, known := blocks(block, "default"); !known {
		d.notKnown("default")
	} else if len(list) == 1 {
		cfg.RemoteDefault = d.target(list[0], path.Root("default").AtListIndex(0))
	}
	return cfg
}

// entries reads all key_provider or method blocks.
func (d *decoder) entries(block cty.Value, what string, tables []attr.Table) map[string]*attr.Entry {
	out := map[string]*attr.Entry{}
	outer, known := blocks(block, what)
	if !known {
		d.notKnown(what)
	}
	for i, group := range outer {
		for _, table := range tables {
			inner, known := blocks(group, table.Name)
			if !known {
				d.notKnown(what + "." + table.Name)
			}
			for j, entry := range inner {
				d.entry(out, what, table, entry, path.Root(what).AtListIndex(i).AtName(table.Name).AtListIndex(j))
			}
		}
	}
	return out
}

func (d *decoder) entry(into map[string]*attr.Entry, what string, table attr.Table, entry cty.Value, p path.Path) {
	if !entry.IsKnown() || !entry.GetAttr("name").IsKnown() {
		d.notKnown(what + "." + table.Name)
		return
	}
	name := text(entry, "name")
	address := what + "." + table.Name + "." + name
	switch {
	case !attr.IsName(name):
		d.fail(p.AtName("name"), "a name of letters, digits, underscores and dashes is required")
	case into[address] != nil:
		d.fail(p.AtName("name"), "%s is configured twice", address)
	default:
		into[address] = attr.NewEntry(address, table, blockValues(entry))
	}
}

// blockValues returns the arguments of a block. A nested block is a list of at
// most one object, and becomes that object.
func blockValues(block cty.Value) map[string]cty.Value {
	out := block.AsValueMap()
	for name, v := range out {
		if typ := v.Type(); !typ.IsListType() || !typ.ElementType().IsObjectType() || !v.IsKnown() {
			continue
		}
		if v.IsNull() || v.LengthInt() == 0 {
			delete(out, name)
			continue
		}
		nested := blockValues(v.AsValueSlice()[0])
		for k, inner := range nested {
			if inner.IsNull() {
				delete(nested, k)
			}
		}
		out[name] = cty.ObjectVal(nested)
	}
	return out
}

// target reads a method with its fallbacks: the default block, or a data
// source. It returns nil when no method is set.
func (d *decoder) target(block cty.Value, p path.Path) *config.Target {
	fallbacks, known := blocks(block, "fallback")
	if !known || !block.GetAttr("method").IsKnown() {
		d.notKnown("method or fallback of " + p.String())
		return nil
	}
	method := text(block, "method")
	if method == "" {
		if len(fallbacks) > 0 || !p.Equal(path.Empty()) {
			d.fail(p.AtName("method"), "method is required where there is a fallback or a default block")
		}
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
	if !attr.IsMethodAddress(address) {
		d.fail(p, "the address of a method is required, such as method.aes_gcm.main, or unencrypted")
	}
}

// openSources starts every kind of source with its credentials.
func (d *decoder) openSources(block cty.Value) map[string]source.Open {
	groups, known := blocks(block, "credentials")
	if !known {
		d.notKnown("credentials")
	}
	out := map[string]source.Open{}
	for _, kind := range d.catalog.sources {
		credentials := source.Credentials{Table: kind.Credentials, Env: d.env}
		for i, group := range groups {
			if kind.Credentials.Name == "" {
				continue
			}
			list, known := blocks(group, kind.Credentials.Name)
			if !known {
				d.notKnown("credentials." + kind.Credentials.Name)
			}
			for j, entry := range list {
				address := fmt.Sprintf("credentials[%d].%s[%d]", i, kind.Credentials.Name, j)
				credentials.Entries = append(credentials.Entries, attr.NewEntry(address, kind.Credentials, blockValues(entry)))
			}
		}
		out[kind.Name] = kind.Start(source.Settings{Credentials: credentials, LookupEnv: d.env})
	}
	return out
}

// targetFor chooses the methods for one read.
func (c *configured) targetFor(own *config.Target, name string) (encryption.Target, error) {
	var t encryption.Target
	switch {
	case own != nil:
		t = c.encryption.Use(own.Methods()...)
	case name != "" && !c.encryption.HasRemoteState(name):
		return t, fmt.Errorf("there is no remote_state_data_source %q in the encryption text", name)
	case name != "" || c.encryption.HasRemoteState(""):
		t = c.encryption.RemoteState(name)
	default:
		t = c.encryption.State()
	}
	if c.enforced {
		t = t.Enforce()
	}
	return t, nil
}

// chosenSource returns the one kind of source that is set, with its block. The
// kind is empty while it is not known which one that is.
func (c catalog) chosenSource(arguments cty.Value) (source.Kind, cty.Value, error) {
	var kind source.Kind
	var block cty.Value
	var names []string
	allKnown := true
	for _, k := range c.sources {
		names = append(names, k.Name)
		list, known := blocks(arguments, k.Name)
		allKnown = allKnown && known
		if len(list) == 0 {
			continue
		}
		if kind.Name != "" {
			return kind, block, fmt.Errorf("%s and %s exclude one another: exactly one source is read", kind.Name, k.Name)
		}
		kind, block = k, list[0]
	}
	if kind.Name == "" && allKnown {
		return kind, block, fmt.Errorf("exactly one of these blocks is required: %s", strings.Join(names, ", "))
	}
	return kind, block, nil
}
