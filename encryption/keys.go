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

// providerError is the error of a key provider. If key providers build on each other, it names the
// innermost one that failed.
type providerError struct {
	address string // such as key_provider.pbkdf2.main
	err     error  // the reason; it wraps ErrNoKey if the next method may be tried
}

func (e *providerError) Error() string {
	if c, ok := errors.AsType[*attr.Error](e.err); ok && c.Address != "" {
		return e.err.Error() // the message already has the address and the argument
	}
	return e.address + ": " + e.err.Error()
}

func (e *providerError) Unwrap() error { return e.err }

// fileKeys finds the keys to open one file.
type fileKeys struct {
	encryption *Encryption
	meta       map[string][]byte        // stored JSON documents by key provider alias or address
	warners    map[string]driver.Warner // collects the key providers that are used, by address; nil if not needed
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
	k.warners = nil // identity has already collected the key providers
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
// of [Target.KeepKeys]. It also releases the resources of key providers and methods, such as idle
// connections; see [driver.Closer]. Values of the settings, such as a passphrase, stay in memory.
//
// A program that loads settings more than once should close each Encryption when it has finished
// with it. The Encryption remains usable: later calls derive keys and open connections again.
func (e *Encryption) Close() {
	if e == nil || e.derived == nil {
		return // there is nothing to close
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

// close closes every closer. It does not hold the lock while it does so, because a closer may take
// a long time and other entries may be built meanwhile.
func (c *closers) close() {
	c.mu.Lock()
	all := slices.Clone(c.all)
	c.mu.Unlock()
	for _, closer := range all {
		closer.Close()
	}
}

// keyError adds the address to err, unless err already names a key provider. If key providers build
// on each other, the innermost one is the one that failed.
func keyError(address string, err error) error {
	if e, ok := err.(*providerError); ok {
		return e
	}
	return &providerError{address, err}
}

// identity returns a string that identifies the key of address for this file. For each key provider
// that the key is built from, it contains the address and a digest of the stored metadata. Equal
// identities mean equal keys. identity returns an error if key providers form a cycle, because a
// call would then wait for itself.
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

// stored returns the metadata that a key provider stored in the file. It looks for metadata under
// the alias of the key provider, and then under its address.
//
// If the key provider was renamed, stored looks for the only entry that the key provider
// recognizes. It considers entries whose names no configured key provider uses. If none of them
// fits, it considers entries with the names of configured key providers that no selected method
// uses, because another module may use such a name for this key. It returns nil if no entry or more
// than one fits.
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
// or "" if there is none. If there are several, it returns the first one in alphabetical order.
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
			return e.keyProviders[near]() // the reference is right, but the entry has an unknown kind
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
		fmt.Errorf("these key providers are chained in a cycle: %s", strings.Join(path[start:], " → ")),
		"give one of these key providers a key of its own"), fault.Lasting{})}}
}

func addresses(entries map[string]*entries.Entry) []string { return slices.Sorted(maps.Keys(entries)) }

// newKeys makes the keys to seal one file. It is not safe for concurrent use.
type newKeys struct {
	encryption *Encryption
	separate   bool
	rehearses  map[string]json.RawMessage // metadata by key provider address in a rehearsal; see [Opened.Rehearsal]
	path       []string
	made       map[string][]byte // keys by key provider address
	meta       map[string][]byte // JSON documents to store, by key provider alias or address
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
		return nil, fault.With(errors.New("this kind of key provider can only open files, not encrypt them"), "choose another kind "+
			"to encrypt files")
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
		return nil, fault.With(fmt.Errorf("another key provider also stores its metadata as %q", provider.metadataKey),
			"set another encrypted_metadata_alias in one of them")
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

// of returns a copy of the keys of the last file that method sealed, or nil if there are none.
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
