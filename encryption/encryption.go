// Package encryption opens and seals files in the format of OpenTofu's state and plan
// encryption. A program that reads plaintext states reads encrypted ones, too, if it adds the
// first of these lines:
//
//	opened, err := encryption.Open(ctx, light.Registry(), file, encryption.Environment(os.LookupEnv))
//	state, err := tfstate.Parse(opened.Data)
//	vpc, err := state.Outputs["vpc_id"].Value()
//
// A program that changes a state writes it back with [Opened.Reseal]. A program that opens
// many files calls [Load] once, and gets a [Target] from the result.
//
// Settings come in layers: [Environment], [Code], [Module], [Passphrase]. Without settings,
// plaintext opens, and an encrypted file is [ErrNotConfigured]. With settings, plaintext opens
// only by the method unencrypted.
//
// A [Registry] lists the kinds of key providers and methods. Package builtin has a registry
// of all kinds, package light one of the kinds that need no SDK. Package driver has the
// interfaces of a new kind.
//
// Library, provider and command have one version, v0.x: the Go API may change between
// minor releases. The formats do not change: later versions open every file that an earlier
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

// Registry lists the kinds of key providers and methods that settings may name,
// each once, in any order. Settings that are loaded with one registry share the keys that are derived from the same
// passphrase and salt.
type Registry struct {
	KeyProviders []driver.Block[driver.KeyProvider]
	Methods      []driver.Block[driver.Method]
}

// KeyProvider returns the kind of key provider called kind, such as "pbkdf2", and false if
// there is none. Programs use it to make a registry of some of the kinds.
func (r Registry) KeyProvider(kind string) (driver.Block[driver.KeyProvider], bool) {
	return named(r.KeyProviders, kind)
}

// Method returns the kind of method called kind, such as "aes_gcm", and false if there is none.
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

// Encryption opens and seals files with the settings that [Load] read. It is safe for
// concurrent use. It builds an entry when a file first needs it, and keeps the last 1,000 keys
// by the stored metadata, so that it calls a key provider once for all files that share a key.
// [Encryption.Close] forgets these keys.
//
// The files that it seals with a key provider such as pbkdf2 share a salt, which it makes when it
// seals the first of them, and therefore a key; see [Target.Separate]. With one key, at most 2^32
// files may be sealed. A program that seals as many loads its settings again.
type Encryption struct {
	config       config.Config
	kinds        map[string]driver.Block[driver.Method]      // nil in a zero Encryption
	keyKinds     map[string]driver.Block[driver.KeyProvider] // nil in a zero Encryption
	keyProviders map[string]func() (keyProvider, error)      // key providers by address, each built once
	methods      map[string]func() (method, error)           // methods by address or kind, each built once
	derived      *memo.Secrets                               // keys by the text that [fileKeys.identity] returns
	closers      *closers                                    // closers of all built entries; nil in a zero Encryption
}

type keyProvider struct {
	driver.KeyProvider
	metadataKey string // the name that its metadata is stored under: alias or address
	exportable  bool
	references  []string // addresses of the key providers that it builds on
	values      attr.Values
	document    func() json.RawMessage // returns the same document each time; nil unless the kind is a [driver.Salter]
}

type method struct {
	driver.Method

	address    string
	kind       driver.Block[driver.Method] // zero if the registry lacks it
	plaintext  bool                        // whether it reads unencrypted data
	then       string                      // the address of the method for the decrypted file; "" if it is plaintext
	references []string                    // addresses of the key providers that it uses
	values     attr.Values
}

const maxKeys = 1000 // keys that an Encryption keeps

// newEncryption makes an Encryption of settings, which are nil if there are none. It returns
// an error if the registry lists a kind twice or without Build, or has an invalid table.
// Mistakes in an entry are reported when a file needs the entry.
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

// alone wraps the build function of a method that the settings name by its kind, without a
// block. Its errors advise adding a block with settings.
func alone(kind string, build func() (method, error)) func() (method, error) {
	return func() (method, error) {
		m, err := build()
		if err != nil {
			err = fault.With(err, ownBlock(kind))
		}
		return m, err
	}
}

// ownBlock returns the advice for a method that is named by its kind, and needs settings.
func ownBlock(kind string) string {
	return fmt.Sprintf("configure a method of this kind, and name its address, such as method.%s.main", kind)
}

// needsSettings reports whether a kind requires a block, because it has a required argument
// that no environment variable sets.
func needsSettings(t attr.Table) bool {
	return slices.ContainsFunc(t.Attrs, func(a attr.Attr) bool { return a.Required && len(a.Env) == 0 })
}

// configured returns the addresses of the entries of a kind, sorted.
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
			return nil, fmt.Errorf("the registry is wrong about %s: %w", b.Name, err)
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

// methodAt returns the method at a configured address. A method that cannot be built has only the
// parts that its settings give.
func (e *Encryption) methodAt(address string) method {
	m, _ := e.methods[address]()
	return m
}

// opensFiles reports whether the method is given the whole file, and not the data of an envelope.
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
		err = fmt.Errorf("the registry is wrong about %s: its Build returns neither a %s nor an error", entry.Kind,
			strings.ReplaceAll(what, "_", " "))
	}
	return built, values, err
}

// unexpected returns an error for a setting that the table does not declare, such as a name
// that a program misspelled. Misspelled names in text are found by parsing.
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

// metadataKey returns the name under which a file stores a key provider's metadata: its
// encrypted_metadata_alias, or else its address, in which MetadataKind replaces the kind.
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

// State returns the target for state files, with the methods of the state block. Without that
// block, it opens no file; without any settings, it opens plaintext.
func (e *Encryption) State() Target { return e.target(KindState, "state", e.settings().State) }

// Plan returns the target for plan files, with the methods of the plan block, under the rules
// of [Encryption.State]. A plan is a zip archive with a member called tfplan.
func (e *Encryption) Plan() Target { return e.target(KindPlan, "plan", e.settings().Plan) }

// RemoteState returns the target for the states of other configurations. It has the methods
// of the remote_state_data_source called name or, if no block has that name, of the default in
// remote_state_data_sources, as in OpenTofu. Without a default, the rules of
// [Encryption.State] for a missing block apply.
func (e *Encryption) RemoteState(name string) Target {
	settings := e.settings()
	if t := settings.Remote[name]; t != nil {
		return e.target(KindState, "remote_state_data_source "+name, t)
	}
	return e.target(KindState, "remote_state_data_sources.default", settings.RemoteDefault)
}

// Use returns a target of the methods at these addresses: the primary, then the fallbacks in
// order. It opens and seals states and plans. It opens plaintext only with the method
// unencrypted, even without any settings. It ignores enforced in the settings; call
// [Target.Enforce] in its place.
//
// An error is an [*Error] of [StepConfiguration]: an address that is not configured, or
// a then that leads nowhere.
func (e *Encryption) Use(methods ...string) (Target, error) {
	t := Target{encryption: e, methods: slices.Clone(methods)}
	if err := t.check(); err != nil {
		return Target{}, err
	}
	return t, nil
}

// settings returns the settings of e, and empty ones if e is nil. Targets of a nil Encryption
// return [ErrNotConfigured].
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
