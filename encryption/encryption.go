// Package encryption opens and seals files in the format of OpenTofu's state and plan encryption. A
// program that reads plaintext states can also read encrypted ones if it adds the first of these
// lines:
//
//	opened, err := encryption.Open(ctx, light.Registry(), file, encryption.Environment(os.LookupEnv))
//	state, err := tfstate.Parse(opened.Data)
//	vpc, err := state.Outputs["vpc_id"].Value()
//
// A program that changes a state writes it back with [Opened.Reseal]. A program that opens many
// files calls [Load] once and gets a [Target] from the result.
//
// Settings come in layers: [Environment], [Code], [Module] and [Passphrase]. Without settings,
// plaintext opens, and opening an encrypted file returns [ErrNotConfigured]. With settings,
// plaintext opens only with the unencrypted method.
//
// A [Registry] lists the kinds of key providers and methods. Package builtin has a registry of all
// kinds, and package light has one of the kinds that need no SDK. Package driver defines the
// interfaces for new kinds.
//
// The library, the provider and the command share one version, v0.x. The Go API may change between
// minor releases. The file formats do not change: later versions open every file that an earlier
// version opened.
package encryption

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Registry lists the kinds of key providers and methods that settings may name. Each kind appears
// once, in any order. Settings that are loaded with the same registry share the keys derived from
// the same passphrase and salt.
type Registry struct {
	KeyProviders []driver.Block[driver.KeyProvider]
	Methods      []driver.Block[driver.Method]
}

// KeyProvider returns the kind of key provider with this name, such as "pbkdf2", or false if there
// is none. Programs use it to build a registry of selected kinds.
func (r Registry) KeyProvider(kind string) (driver.Block[driver.KeyProvider], bool) {
	return named(r.KeyProviders, kind)
}

// Method returns the kind of method with this name, such as "aes_gcm", or false if there is none.
func (r Registry) Method(kind string) (driver.Block[driver.Method], bool) {
	return named(r.Methods, kind)
}

func named[T any](blocks []driver.Block[T], kind string) (driver.Block[T], bool) {
	if i := slices.IndexFunc(blocks, func(b driver.Block[T]) bool { return b.Name == kind }); i >= 0 {
		return blocks[i], true
	}
	return driver.Block[T]{}, false
}

func areSettings(c *config.Config) bool {
	return len(c.KeyProviders)+len(c.Methods)+len(c.Remote) > 0 || c.State != nil || c.Plan != nil || c.RemoteDefault != nil
}

// Encryption opens and seals files with the settings that [Load] read. It is safe for concurrent
// use. It builds a key provider or a method when a file first needs it. It caches the last 1,000
// keys, so that it asks a key provider only once for all files that store the same metadata.
// [Encryption.Close] forgets these keys.
//
// All files that it seals with a key provider such as pbkdf2 share a salt, and therefore a key; see
// [Target.Separate]. The salt is made when the first file is sealed. At most 2^32 files may be
// sealed with one key. A program that seals more must load its settings again.
type Encryption struct {
	config       config.Config
	kinds        map[string]driver.Block[driver.Method]      // nil in a zero Encryption
	keyKinds     map[string]driver.Block[driver.KeyProvider] // nil in a zero Encryption
	keyProviders map[string]func() (keyProvider, error)      // functions by key provider address; each builds its key provider once
	methods      map[string]func() (method, error)           // functions by method address or kind; each builds its method once
	derived      *memo.Secrets                               // keys by the string that fileKeys.identity returns
	closers      *closers                                    // closers of all built entries; nil in a zero Encryption
}

type keyProvider struct {
	driver.KeyProvider
	metadataKey string // the name under which its metadata is stored: alias or address
	exportable  bool
	references  []string // addresses of the key providers that it builds on
	values      attr.Values
	document    func() json.RawMessage // returns the same document each time; nil unless the key provider is a [driver.Salter]
}

type method struct {
	driver.Method

	address    string
	kind       driver.Block[driver.Method] // zero if the registry lacks the kind
	plaintext  bool                        // whether the method reads unencrypted data
	then       string                      // address of the method that opens the decrypted file; "" if that is plaintext
	references []string                    // addresses of the key providers that the method uses
	values     attr.Values
}

const maxKeys = 1000 // maximum number of keys that an Encryption caches

// newEncryption makes an Encryption from settings. Cfg is nil if there are none. It returns an
// error if the registry lists a kind twice or without Build, or has an invalid table. Mistakes in
// an entry are reported when a file needs the entry.
func newEncryption(registry Registry, cfg *config.Config) (*Encryption, error) {
	cfg = config.Merge(&config.Config{}, cfg)
	kinds, err := byName(registry.KeyProviders)
	if err != nil {
		return nil, err
	}
	methodKinds, err := byName(registry.Methods)
	if err != nil {
		return nil, err
	}
	e := &Encryption{
		config:       *cfg,
		kinds:        methodKinds,
		keyKinds:     kinds,
		keyProviders: map[string]func() (keyProvider, error){},
		methods:      map[string]func() (method, error){},
		derived:      memo.NewSecrets(maxKeys),
		closers:      &closers{},
	}
	newMethod := func(entry *entries.Entry) func() (method, error) {
		return sync.OnceValues(func() (method, error) {
			m, err := buildMethod(entry, methodKinds, cfg)
			e.closers.add(m.Method)
			return m, err
		})
	}
	for address, entry := range cfg.KeyProviders {
		e.keyProviders[address] = sync.OnceValues(func() (keyProvider, error) {
			p, err := buildKeyProvider(entry, kinds, cfg)
			e.closers.add(p.KeyProvider)
			return p, err
		})
	}
	for address, entry := range cfg.Methods {
		e.methods[address] = newMethod(entry)
	}
	for kind, block := range methodKinds {
		if kind == syntax.Unencrypted || !needsSettings(block.Table) && len(configured(cfg.Methods, kind)) == 0 {
			e.methods[kind] = alone(kind, newMethod(&entries.Entry{Address: kind, Kind: kind}))
		}
	}
	return e, nil
}

// alone wraps the build function of a method that the settings name by its kind, without a block.
// If the function fails, the error advises the user to write a block with settings.
func alone(kind string, build func() (method, error)) func() (method, error) {
	return func() (method, error) {
		m, err := build()
		if err != nil {
			err = fault.With(err, ownBlock(kind))
		}
		return m, err
	}
}

// ownBlock returns the advice for a method that is named by its kind although the kind needs
// settings.
func ownBlock(kind string) string {
	return fmt.Sprintf("configure a method of this kind, and use its address, for example method.%s.main", kind)
}

// needsSettings reports whether a kind has a required argument that no environment variable can
// set. Such a kind needs a block.
func needsSettings(t attr.Table) bool {
	return slices.ContainsFunc(t.Attrs, func(a attr.Attr) bool { return a.Required && len(a.Env) == 0 })
}

// configured returns the sorted addresses of the entries of a kind.
func configured(entries map[string]*entries.Entry, kind string) []string {
	return slices.DeleteFunc(addresses(entries), func(address string) bool { return entries[address].Kind != kind })
}

func byName[T any](blocks []driver.Block[T]) (map[string]driver.Block[T], error) {
	m := map[string]driver.Block[T]{}
	for _, b := range blocks {
		if _, twice := m[b.Name]; twice {
			return nil, fmt.Errorf("the registry lists %q twice", b.Name)
		}
		if b.Build == nil {
			return nil, fmt.Errorf("the registry lists %q without Build", b.Name)
		}
		if err := entries.CheckTable(b.Table); err != nil {
			return nil, fmt.Errorf("the registry entry %q is invalid: %w", b.Name, err)
		}
		m[b.Name] = b
	}
	return m, nil
}

func buildKeyProvider(entry *entries.Entry, kinds map[string]driver.Block[driver.KeyProvider], cfg *config.Config) (keyProvider, error) {
	built, values, err := build(entry, "key_provider", kinds, entries.KeyProviderAttrs(), cfg)
	if err != nil {
		return keyProvider{values: values}, err
	}
	provider := keyProvider{
		KeyProvider: built,
		metadataKey: metadataKey(entry, kinds),
		exportable:  values.Bool("exportable"),
		references:  references(values),
		values:      values,
	}
	if salter, ok := built.(driver.Salter); ok {
		provider.document = sync.OnceValue(salter.NewDocument)
	}
	return provider, nil
}

func buildMethod(entry *entries.Entry, kinds map[string]driver.Block[driver.Method], cfg *config.Config) (method, error) {
	m := method{address: entry.Address, kind: kinds[entry.Kind], plaintext: entry.Kind == syntax.Unencrypted}
	var common []attr.Attr
	if m.kind.OwnFormat != nil {
		common = entries.FileMethodAttrs()
	}
	built, values, err := build(entry, "method", kinds, common, cfg)
	m.values = values
	if err != nil {
		return m, err
	}
	m.Method, m.references = built, references(values)
	if m.kind.OwnFormat != nil {
		m.then = values.String("then")
	}
	return m, nil
}

// methodAt returns the method at a configured address. If the method cannot be built, it returns
// only the parts that are known from the settings.
func (e *Encryption) methodAt(address string) method {
	m, _ := e.methods[address]()
	return m
}

// opensFiles reports whether the method gets the whole file instead of the data in an envelope.
func (m method) opensFiles() bool { return m.kind.OwnFormat != nil || m.plaintext }

func references(values attr.Values) (addresses []string) {
	for _, given := range entries.KeyProviders(values) {
		addresses = append(addresses, given.Address())
	}
	return addresses
}

func build[T any](
	entry *entries.Entry, what string, kinds map[string]driver.Block[T], common []attr.Attr, cfg *config.Config,
) (built T, values attr.Values, err error) {
	if entry.Err != nil {
		return built, values, entry.Err
	}
	kind, ok := kinds[entry.Kind]
	if !ok {
		var tables []attr.Table
		for _, name := range slices.Sorted(maps.Keys(kinds)) {
			tables = append(tables, kinds[name].Table)
		}
		return built, values, entries.UnknownKind(entry.Address, what, entry.Kind, entry.Pos, tables)
	}
	kind.Attrs = slices.Concat(kind.Attrs, common)
	if err = unexpected(entry, kind.Table); err != nil {
		return built, values, err
	}
	if values, err = entry.Resolve(kind.Table, entries.Scope{Lookup: cfg.LookupEnv, AllowCommands: cfg.AllowCommands}); err != nil {
		return built, values, err
	}
	built, err = kind.Build(values)
	if err == nil && any(built) == nil {
		err = fmt.Errorf("the registry entry %q is invalid: its Build returns neither a %s nor an error", entry.Kind,
			strings.ReplaceAll(what, "_", " "))
	}
	return built, values, err
}

// unexpected returns an error for a setting that the table does not declare, such as a name that a
// program misspelled. The parser finds names that are misspelled in text.
func unexpected(entry *entries.Entry, table attr.Table) error {
	var names []string
	for _, a := range table.Attrs {
		names = append(names, a.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(entry.Settings)) {
		if !slices.Contains(names, name) {
			return &attr.Error{Address: entry.Address, Pos: entry.Settings[name].Pos, Err: fmt.Errorf(
				"an argument named %s is not expected here%s", quoted(name), syntax.Configured(name, names))}
		}
	}
	return nil
}

// metadataKey returns the name under which a key provider stores its metadata in a file. The name
// is the encrypted_metadata_alias, if one is set. Otherwise, it is the address, with the kind
// replaced by MetadataKind if there is one.
func metadataKey(entry *entries.Entry, kinds map[string]driver.Block[driver.KeyProvider]) string {
	alias := entry.Settings["encrypted_metadata_alias"].Value
	if alias.IsKnown() && !alias.IsNull() && alias.Type() == cty.String && alias.AsString() != "" {
		return alias.AsString()
	}
	if kind := kinds[entry.Kind].MetadataKind; kind != "" {
		return strings.Replace(entry.Address, "."+entry.Kind+".", "."+kind+".", 1)
	}
	return entry.Address
}

// State returns the target for state files, with the methods of the state block. Without a state
// block, the target opens no file. Without any settings, it opens plaintext.
func (e *Encryption) State() Target { return e.target(KindState, "state", e.settings().State) }

// Plan returns the target for plan files, with the methods of the plan block. If that block is
// missing, the rules of [Encryption.State] apply. A plan is a zip archive with a member called
// tfplan.
func (e *Encryption) Plan() Target { return e.target(KindPlan, "plan", e.settings().Plan) }

// RemoteState returns the target for states of other configurations. It has the methods of the
// remote_state_data_source block called name. If there is no such block, it has the methods of the
// default block in remote_state_data_sources, as in OpenTofu. If that is missing, too, the rules of
// [Encryption.State] apply.
func (e *Encryption) RemoteState(name string) Target {
	settings := e.settings()
	if t := settings.Remote[name]; t != nil {
		return e.target(KindState, "remote_state_data_source "+name, t)
	}
	return e.target(KindState, "remote_state_data_sources.default", settings.RemoteDefault)
}

// Use returns a target with the methods at these addresses: the primary method, then the fallbacks
// in order. The target opens and seals both states and plans. It opens plaintext only with the
// unencrypted method, even if there are no settings. It ignores enforced = true in the settings;
// call [Target.Enforce] instead.
//
// Use returns an [*Error] with [StepConfiguration] if an address is not configured, or if the
// "then" argument of a method is wrong.
func (e *Encryption) Use(methods ...string) (Target, error) {
	t := Target{encryption: e, methods: slices.Clone(methods)}
	if err := t.check(); err != nil {
		return Target{}, err
	}
	return t, nil
}

// settings returns the settings of e, or empty settings if e is nil. The targets of a nil
// Encryption return [ErrNotConfigured].
func (e *Encryption) settings() config.Config {
	if e == nil {
		return config.Config{}
	}
	return e.config
}

func (e *Encryption) target(kind FileKind, name string, t *config.Target) Target {
	if t == nil {
		return Target{encryption: e, kind: kind, name: name, passes: e != nil && !areSettings(&e.config)}
	}
	methods := slices.Concat([]string{t.Method}, t.Fallbacks)
	return Target{encryption: e, kind: kind, name: name, methods: methods, enforced: t.Enforced, pos: t.Pos}
}
