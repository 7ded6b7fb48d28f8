package encryption

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// providerError names the key provider that failed: the innermost one of a chain.
type providerError struct {
	address string // such as key_provider.pbkdf2.main
	err     error  // its own error; it wraps ErrNoKey if the next method may be tried
}

func (e *providerError) Error() string {
	if c, ok := errors.AsType[*attr.Error](e.err); ok && c.Address != "" {
		return e.err.Error() // the error names the address and the argument
	}
	return e.address + ": " + e.err.Error()
}

func (e *providerError) Unwrap() error { return e.err }

// fileKeys finds the keys of one file that is being opened.
type fileKeys struct {
	encryption *Encryption
	meta       map[string][]byte        // stored JSON documents by the alias or the address of the key provider
	warners    map[string]driver.Warner // key providers that take part, by address; nil if they are not needed
	methods    []string                 // the selected methods
}

// key implements [driver.Keys] for the file.
func (k fileKeys) key(ctx context.Context, address string) ([]byte, error) {
	if _, literal, ok := k.encryption.config.Literal(address); ok {
		if literal == nil {
			return nil, &providerError{address, fmt.Errorf("%w: the literal key has no decryption_key", ErrNoKey)}
		}
		return literal, nil
	}
	identity, err := k.identity(address, nil)
	if err != nil {
		return nil, err
	}
	k.warners = nil // identity has noted all key providers that take part
	key, err := k.encryption.derived.Do(ctx, identity, func(ctx context.Context) ([]byte, error) { return k.ask(ctx, address) })
	if err != nil {
		return nil, keyError(address, err)
	}
	return key, nil
}

func (k fileKeys) ask(ctx context.Context, address string) ([]byte, error) {
	provider, err := k.encryption.keyProvider(address)
	if err != nil {
		return nil, err
	}
	key, err := provider.Key(ctx, k.key, k.stored(address, provider))
	if err == nil && len(key) == 0 {
		err = ErrNoKey
	}
	return key, err
}

// Close overwrites and forgets every key that was derived or unwrapped for a file, except the keys
// of [Target.KeepKeys], and releases the resources of key providers and methods, such as idle
// connections; see [driver.Closer].
// Values of the settings, such as a passphrase, stay in memory. A program that loads settings
// more than once calls Close when it has finished with each. The Encryption remains usable:
// later calls derive keys and open connections again.
func (e *Encryption) Close() {
	if e == nil || e.derived == nil {
		return // a zero Encryption
	}
	e.derived.Clear()
	e.closers.close()
}

// closers collects the key providers and methods that hold resources.
type closers struct {
	mu  sync.Mutex
	all []driver.Closer
}

func (c *closers) add(built any) {
	if closer, ok := built.(driver.Closer); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, closer)
	}
}

// close closes all closers without holding the lock, because a Closer may take long while other
// entries are built.
func (c *closers) close() {
	c.mu.Lock()
	all := slices.Clone(c.all)
	c.mu.Unlock()
	for _, closer := range all {
		closer.Close()
	}
}

// keyError returns err with the address, unless err names a key provider already: in a chain, the
// innermost one failed.
func keyError(address string, err error) error {
	if e, ok := err.(*providerError); ok {
		return e
	}
	return &providerError{address, err}
}

// identity returns a text that identifies the key of address for this file: the address and a
// digest of the stored metadata of each key provider that the key is built from. Equal
// identities mean equal keys. It returns an error for a circle of key providers, in which a
// call would wait for itself.
func (k fileKeys) identity(address string, path []string) (string, error) {
	path = append(path, address)
	if slices.Contains(path[:len(path)-1], address) {
		return "", k.encryption.circle(path)
	}
	if _, _, literal := k.encryption.config.Literal(address); literal {
		return address + "\n", nil
	}
	provider, err := k.encryption.keyProvider(address)
	if err != nil {
		return "", &providerError{address, err}
	}
	if w, ok := provider.KeyProvider.(driver.Warner); ok && k.warners != nil {
		k.warners[address] = w
	}
	id := fmt.Sprintf("%s %x\n", address, sha256.Sum256(k.stored(address, provider)))
	for _, upstream := range provider.references {
		part, err := k.identity(upstream, path)
		if err != nil {
			return "", err
		}
		id += part
	}
	return id, nil
}

// stored returns the metadata that a key provider stored in the file: under its alias, under its
// address or, if the key provider was renamed, in the only entry that it recognizes among the
// entries whose names no configured key provider uses. If there is none, it looks among the entries
// with the names of configured key providers that no selected method uses, because another module
// may use that name for this key. It returns nil if several entries fit.
func (k fileKeys) stored(address string, provider keyProvider) json.RawMessage {
	if doc, ok := k.meta[provider.metadataKey]; ok {
		return doc
	}
	if doc, ok := k.meta[address]; ok {
		return doc
	}
	recognizer, ok := provider.KeyProvider.(driver.Recognizer)
	if !ok {
		return nil
	}
	only := func(may func(name string) bool) (found json.RawMessage, several bool) {
		for name, doc := range k.meta {
			if may(name) && recognizer.Recognizes(doc) {
				found, several = doc, found != nil
			}
		}
		return found, several
	}
	found, several := only(func(name string) bool { return k.encryption.claimant(name) == "" })
	if found == nil && len(k.methods) > 0 {
		used := k.encryption.used(k.methods)
		found, several = only(func(name string) bool {
			claimant := k.encryption.claimant(name)
			return claimant != "" && !slices.Contains(used, claimant)
		})
	}
	if several {
		return nil
	}
	return found
}

// claimant returns the address of the configured key provider that stores its metadata under name,
// the first of several in alphabetical order, and "" if there is none.
func (e *Encryption) claimant(name string) (found string) {
	for address, entry := range e.config.KeyProviders {
		stores := metadataKey(entry, e.keyKinds) == name || address == name
		if stores && (found == "" || address < found) {
			found = address
		}
	}
	return found
}

func (e *Encryption) keyProvider(address string) (keyProvider, error) {
	build, ok := e.keyProviders[address]
	if !ok {
		near := syntax.Nearest(address, addresses(e.config.KeyProviders))
		if entry := e.config.KeyProviders[near]; entry != nil && e.keyKinds[entry.Kind].Build == nil {
			return e.keyProviders[near]() // the entry is misspelt, and not this reference
		}
		return keyProvider{}, fault.Known(fmt.Errorf("this key provider is not configured%s",
			syntax.Configured(address, addresses(e.config.KeyProviders))), fault.NotConfigured{Address: address})
	}
	return build()
}

func (e *Encryption) circle(path []string) error {
	start := slices.Index(path, path[len(path)-1])
	var pos attr.Pos
	if entry, ok := e.config.KeyProviders[path[len(path)-2]]; ok {
		pos = entry.Pos
	}
	return &providerError{path[len(path)-1], &attr.Error{Pos: pos, Err: fault.Known(fault.With(
		fmt.Errorf("the key providers build on one another in a circle: %s", strings.Join(path[start:], " → ")),
		"let one of them have a key of its own"), fault.Lasting{})}}
}

func addresses(entries map[string]*entries.Entry) []string { return slices.Sorted(maps.Keys(entries)) }

// newKeys makes the keys of one file that is being sealed. It is not safe for
// concurrent use.
type newKeys struct {
	encryption *Encryption
	separate   bool
	rehearses  map[string]json.RawMessage // the metadata of a rehearsal, see [Target]; nil otherwise
	path       []string
	made       map[string][]byte // keys by the address of the key provider
	meta       map[string][]byte // JSON documents to store, by alias or address
}

func (k *newKeys) key(ctx context.Context, address string) ([]byte, error) {
	if literal, _, ok := k.encryption.config.Literal(address); ok {
		if literal == nil {
			return nil, &providerError{address, fmt.Errorf("the literal key has no encryption_key")}
		}
		return literal, nil
	}
	if key, ok := k.made[address]; ok {
		return bytes.Clone(key), nil
	}
	if slices.Contains(k.path, address) {
		return nil, k.encryption.circle(append(k.path, address))
	}
	k.path = append(k.path, address)
	defer func() { k.path = k.path[:len(k.path)-1] }()

	key, err := k.make(ctx, address)
	if err != nil {
		return nil, keyError(address, err)
	}
	k.made[address] = key
	return bytes.Clone(key), nil
}

func (k *newKeys) make(ctx context.Context, address string) ([]byte, error) {
	provider, err := k.encryption.keyProvider(address)
	if err != nil {
		return nil, err
	}
	maker, ok := provider.KeyProvider.(driver.KeyMaker)
	if !ok {
		return nil, fault.With(errors.New("this kind of key provider can open files, but not encrypt them"), "choose another to encrypt")
	}
	var key []byte
	var store json.RawMessage
	if salter, ok := maker.(driver.Salter); ok {
		key, store, err = k.salted(ctx, address, provider, salter)
	} else {
		key, store, err = maker.NewKey(ctx, k.key)
	}
	if err != nil || store == nil {
		return key, err
	}
	if _, taken := k.meta[provider.metadataKey]; taken {
		return nil, fault.With(fmt.Errorf("another key provider stores its metadata under %q as well", provider.metadataKey),
			"give one of them another encrypted_metadata_alias")
	}
	k.meta[provider.metadataKey] = store
	return key, nil
}

// keptKeys keeps the keys of the last file that each method sealed.
type keptKeys struct {
	mu   sync.Mutex
	last map[string]newKeys
}

// keep stores the keys of a file that method sealed. A nil *keptKeys stores nothing.
func (k *keptKeys) keep(method string, keys *newKeys) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		k.last = map[string]newKeys{}
	}
	k.last[method] = *keys
}

// of returns a copy of the keys of the last file that method sealed, and nil if there are none.
func (k *keptKeys) of(method string) *newKeys {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	last, ok := k.last[method]
	if !ok {
		return nil
	}
	return &newKeys{encryption: last.encryption, made: maps.Clone(last.made), meta: maps.Clone(last.meta)}
}
