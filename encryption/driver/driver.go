// Package driver defines the interfaces that authors of key providers and methods implement.
// Programs that only open and seal files use package encryption.
//
// A kind is a [Block]: a table of attributes, and a Build function that makes a [KeyProvider]
// or a [Method] of their values. A kind with further abilities implements more of the
// interfaces of this package. A program adds the kind to the list of its registry. Package
// encryptiontest has the test that each kind must pass.
package driver

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// KeyProvider gives the key of a file. It is built once for each set of settings, when a
// file first needs it, and its methods are called from several goroutines at once.
//
// Errors become part of one line, so they must not contain control characters or secrets, nor
// exceed 3,000 bytes.
type KeyProvider interface {
	// Key returns the key that a file was sealed with. The caller owns the key and overwrites
	// it, so an implementation that keeps a key returns a copy.
	//
	// Stored is the JSON document that the key provider put into the file when it was sealed,
	// nil if there is none. It comes from outside: check every number in it, and do not change
	// it. Keys gives the keys of other key providers of the same file; call it with ctx or a
	// context derived from ctx.
	//
	// An error that wraps [ErrNoKey] means that this is not the right key provider for the
	// file. That includes an empty key, and a nil document for a key provider that stores one.
	// All other errors, such as the error of ctx, are final. The key is nil beside an error.
	Key(ctx context.Context, keys Keys, stored json.RawMessage) ([]byte, error)
}

// Method turns encrypted data into plaintext. Its methods are called from several
// goroutines at once.
type Method interface {
	// Decrypt opens data, which it may overwrite. An error that wraps [ErrNoKey] means that the key
	// does not fit; any other error is final.
	Decrypt(ctx context.Context, keys Keys, data []byte) ([]byte, error)
}

// Keys returns the key of the key provider at an address, for the file that is being opened
// or sealed. The caller owns the key. The error names the key provider that failed: return it
// unchanged.
type Keys func(ctx context.Context, address string) ([]byte, error)

// The interfaces below are optional abilities of key providers and methods, which are found
// by type assertion.

// KeyMaker is a key provider that can make keys for new files. Other key providers only open files.
type KeyMaker interface {
	// NewKey returns a fresh key, which the caller owns, and a JSON document from which Key
	// finds the same key again. The document is stored in the file in cleartext; nil stores
	// nothing. Any error ends the sealing.
	NewKey(ctx context.Context, keys Keys) (key []byte, store json.RawMessage, err error)
}

// Salter is a KeyMaker that derives its keys from the settings and a random salt, which the file
// stores, and that asks only the key providers that it builds on. All files that are sealed with
// the same settings in one run share a salt, so that one derivation opens all of them.
type Salter interface {
	KeyMaker
	// NewDocument returns a document like NewKey, with a new salt.
	NewDocument() json.RawMessage
	// IsCurrent reports whether stored differs from a document of NewDocument only in the salt.
	IsCurrent(stored json.RawMessage) bool
}

// Encrypter is a method that can seal files.
type Encrypter interface {
	// Encrypt seals plain, which it may overwrite. The capacity of plain often has room to seal it
	// in place. Any error ends the sealing.
	Encrypt(ctx context.Context, keys Keys, plain []byte) ([]byte, error)
}

// Recognizer is a key provider that knows its own metadata by its shape. It opens its files
// even after it was renamed in the settings.
type Recognizer interface {
	// Recognizes reports whether stored has the shape of the documents that NewKey returns.
	// The document comes from outside, and any other key provider may have written it.
	Recognizes(stored json.RawMessage) bool
}

// Closer is a key provider or a method that holds resources between its calls, such as
// connections, a session or keys.
type Closer interface {
	// Close releases the resources. The program may call it at any time, and more than once:
	// calls under way end as usual, and later calls acquire the resources again.
	Close()
}

// Warner is a method whose encryption is weak, or a key provider whose connection is not
// protected.
type Warner interface {
	// Warning names the weakness and a remedy; it returns the zero value if there is no
	// weakness. The program calls it each time the method or the key provider opened a file.
	Warning() Warning
}

// Warning is a weakness that users of an opened file should know.
type Warning struct {
	Title string // a few words, such as "Weak encryption"
	Text  string // complete sentences; programs put the address of the entry before them
}

// Deriver is a key provider whose keys may serve other purposes than opening files.
type Deriver interface {
	// Stored returns metadata from which Key gives the same key each time. A kind either makes
	// it from salt, or returns the argument wrapped; it requires that the other argument is nil.
	// Weak metadata, such as a short salt, is an error.
	Stored(salt []byte, wrapped json.RawMessage) (json.RawMessage, error)
}

// Block is one kind of key provider or method: its attributes, and the function that builds it from
// them.
type Block[T any] struct {
	attr.Table

	// Build makes the key provider or the method. It does no I/O, and looks up no environment
	// variables. Its errors, made by [attr.Values.Errorf], are reported when the entry is
	// used, and by Encryption.Check.
	Build func(attr.Values) (T, error)

	// OwnFormat reports whether a file, of any kind and size, may be in the method's own
	// format. It must not change the file. Methods that set it receive the whole file; others
	// receive the ciphertext of an OpenTofu envelope. If that ciphertext itself starts with
	// this format, the method receives the ciphertext, unless Vague is set. Methods that set
	// it also get an attribute called "then": the address of the method for a file inside the
	// file.
	OwnFormat func(file []byte) bool

	// MetadataKind replaces the name of the kind in the name under which key providers of this
	// kind store their metadata. If OpenTofu lacks the kind, it is the kind with which OpenTofu
	// opens its files. "" stands for the name of the kind itself.
	MetadataKind string

	// Vague tells that OwnFormat also accepts files of other formats. A file counts as one
	// of this format only if a method of this kind is selected.
	Vague bool
}

// These are the reasons that a kind gives. Package encryption exports the same errors.
var (
	// ErrNoKey means that this is not the key provider or the method for the file, or that
	// a key service denies the key, has disabled it or does not know it. The next method
	// may be tried. A timeout, a network failure or a wrong setting must not wrap it.
	ErrNoKey = errors.New("no key for this file")

	// ErrDamaged means that the file, or its plaintext, does not have the form that it should
	// have.
	ErrDamaged = errors.New("the file is damaged")
)
