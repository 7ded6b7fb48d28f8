// Package driver defines the interfaces that authors of key providers and methods implement.
// Programs that only open and seal files use package encryption.
//
// A kind is a [Block]: a table of attributes, and a Build function that makes a [KeyProvider] or a
// [Method] from their values. A kind with more abilities implements more interfaces of this
// package. A program adds the kind to its registry. Package encryptiontest has the test that each
// kind must pass.
package driver

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// KeyProvider returns the key of a file. It is built once for each set of settings, when a file
// first needs it. Its methods are called from several goroutines at once.
//
// Errors become part of a single line. They must not contain control characters or secrets, and
// must not exceed 3,000 bytes.
type KeyProvider interface {
	// Key returns the key that a file was sealed with. The caller owns the key and overwrites it,
	// so an implementation that keeps a key must return a copy.
	//
	// Stored is the JSON document that the key provider put into the file when it was sealed, or
	// nil if there is none. It is untrusted input: check every number in it, and do not change it.
	// Keys returns the keys of other key providers for the same file; call it with ctx or a context
	// derived from ctx.
	//
	// An error that wraps [ErrNoKey] means that this is not the right key provider for the file. An
	// empty key without an error means the same. A key provider that stores a document must return
	// such an error if stored is nil. All other errors, such as the error of ctx, are final. If
	// there is an error, the key is nil.
	Key(ctx context.Context, keys Keys, stored json.RawMessage) ([]byte, error)
}

// Method decrypts data. It is called from several goroutines at once.
type Method interface {
	// Decrypt decrypts data, which it may overwrite. An error that wraps [ErrNoKey] means that the
	// key does not fit. Any other error is final.
	Decrypt(ctx context.Context, keys Keys, data []byte) ([]byte, error)
}

// Keys returns the key of the key provider at address, for the file that is being opened or sealed.
// The caller owns the key. The error names the key provider that failed; return it unchanged.
type Keys func(ctx context.Context, address string) ([]byte, error)

// The interfaces below are optional abilities of key providers and methods. They are found by type
// assertion.

// KeyMaker is a key provider that can make keys for new files. Other key providers only open files.
type KeyMaker interface {
	// NewKey returns a fresh key, which the caller owns, and a JSON document from which Key finds
	// the same key again. The document is stored in the file in cleartext; if it is nil, nothing is
	// stored. Any error ends the sealing.
	NewKey(ctx context.Context, keys Keys) (key []byte, store json.RawMessage, err error)
}

// Salter is a KeyMaker that derives its keys from the settings and a random salt, which is stored
// in the file. It needs nothing else except the key providers that it builds on. All files sealed
// with the same settings in one run share a salt, so that one derivation opens all of them.
type Salter interface {
	KeyMaker
	// NewDocument returns a document with a new salt, like the one that NewKey returns.
	NewDocument() json.RawMessage
	// IsCurrent reports whether stored differs from a new document only in its salt.
	IsCurrent(stored json.RawMessage) bool
}

// Encrypter is a method that can seal files.
type Encrypter interface {
	// Encrypt seals plain, which it may overwrite. The capacity of plain is often large enough to
	// seal it in place. Any error ends the sealing.
	Encrypt(ctx context.Context, keys Keys, plain []byte) ([]byte, error)
}

// Recognizer is a key provider that recognizes its own metadata by its shape. It can open its files
// even after it was renamed in the settings.
type Recognizer interface {
	// Recognizes reports whether stored has the shape of the documents that NewKey returns. The
	// document is untrusted input, and any other key provider may have written it.
	Recognizes(stored json.RawMessage) bool
}

// Closer is a key provider or a method that holds resources between its calls, such as
// connections, a session or keys.
type Closer interface {
	// Close releases the resources. It may be called at any time, and more than once. Calls in
	// progress end as usual, and later calls acquire the resources again.
	Close()
}

// Warner is a method whose encryption is weak, or a key provider whose connection is not
// protected.
type Warner interface {
	// Warning names the weakness and a remedy, or returns the zero value if there is no weakness.
	// It is called each time the method or the key provider has opened a file.
	Warning() Warning
}

// Warning is a weakness that users of an opened file should know about.
type Warning struct {
	Title string // a few words, such as "Weak encryption"
	Text  string // complete sentences; programs put the entry's address before them
}

// Deriver is a key provider whose keys may serve purposes other than opening files.
type Deriver interface {
	// Stored returns metadata from which Key returns the same key each time. A kind either makes
	// the metadata from salt, or returns wrapped. In both cases, it requires that the other
	// argument is nil. Weak metadata, such as a short salt, is an error.
	Stored(salt []byte, wrapped json.RawMessage) (json.RawMessage, error)
}

// Block is one kind of key provider or method: its attributes, and a function that builds it from
// them.
type Block[T any] struct {
	attr.Table

	// Build makes the key provider or the method. It does no I/O and looks up no environment
	// variables. Its errors, which it makes with [attr.Values.Errorf], are reported when the entry
	// is used, and by Encryption.Check.
	Build func(attr.Values) (T, error)

	// OwnFormat reports whether a file, of any kind and size, may be in the method's own format. It
	// must not change the file.
	//
	// A method with OwnFormat receives the whole file; all others receive the ciphertext of an
	// OpenTofu envelope. If the ciphertext itself looks like the method's format and Vague is not set, a
	// method with OwnFormat receives the ciphertext. A method with OwnFormat also gets an
	// attribute called "then", the address of the method for a file inside the file.
	OwnFormat func(file []byte) bool

	// MetadataKind replaces the kind in the name under which key providers of this kind store their
	// metadata. If OpenTofu lacks the kind, MetadataKind is the kind with which OpenTofu opens the
	// files. If it is "", nothing is replaced.
	MetadataKind string

	// Vague means that OwnFormat also accepts files in other formats. A file counts as being in
	// this format only if a method of this kind is selected.
	Vague bool
}

// A kind returns errors that wrap one of these reasons. Package encryption exports the same errors.
var (
	// ErrNoKey means that this is not the key provider or the method for the file, or that a key
	// service denies the key, has disabled it or does not know it. The next method may then be
	// tried. A timeout, a network failure or a wrong setting must therefore not wrap it.
	ErrNoKey = errors.New("no key for this file")

	// ErrDamaged means that the file or its plaintext is malformed.
	ErrDamaged = errors.New("the file is damaged")
)
