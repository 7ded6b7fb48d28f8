// Package driver is what key providers and methods are made of. It is for their authors;
// programs that open files need package encryption alone.
//
// A kind is a [Block]: a table of attributes, and a Build that makes a [KeyProvider] or a
// [Method] of their values. What it can do beyond that, it says by implementing more of
// the interfaces here. A program adds the kind to the list of its registry. Package
// encryptiontest has the test that each must pass.
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
// Errors become part of one line: they have no control characters, at most 3,000 bytes, and
// nothing that is secret.
type KeyProvider interface {
	// Key returns the key that a file was sealed with. The key belongs to the caller, who
	// overwrites it: return a copy of one that is kept. Stored is the JSON that
	// the key provider put into that file when it was sealed; nil if there is
	// none. Stored comes from outside, and is not to be changed: treat every number in it
	// as hostile until checked. Keys gives the keys of other key providers of the same
	// file, and is called with ctx or a context made of it. An error that wraps [ErrNoKey]
	// means that this is not the right key provider for the file, which is also so if
	// stored is nil for one that stores something, or if the key is empty. Anything else is
	// final, such as the error of ctx. Beside an error, there is no key.
	Key(ctx context.Context, keys Keys, stored json.RawMessage) ([]byte, error)
}

// Method turns encrypted data into plaintext. Its methods are called from several
// goroutines at once.
type Method interface {
	// Decrypt opens data, which it may overwrite. An error that wraps
	// [ErrNoKey] means that the key does not fit; anything else is final.
	Decrypt(ctx context.Context, keys Keys, data []byte) ([]byte, error)
}

// Keys returns the key of the key provider at an address, for the file that is
// being opened or sealed. The result belongs to the caller. An error says
// which key provider failed, and is to be returned as it is.
type Keys func(ctx context.Context, address string) ([]byte, error)

// These are optional abilities of key providers and methods, found by type
// assertion.

// KeyMaker is a key provider that can make keys for new files. Others open files
// only.
type KeyMaker interface {
	// NewKey returns a fresh key, which belongs to the caller, and what to store in the
	// file, as a JSON document, so that Key finds the same key again. It is stored in
	// cleartext. Store is nil if nothing needs to be stored. Any error ends the sealing.
	NewKey(ctx context.Context, keys Keys) (key []byte, store json.RawMessage, err error)
}

// Encrypter is a method that can seal.
type Encrypter interface {
	// Encrypt seals plain, which it may overwrite. Behind plain, up to its
	// capacity, there is often room to seal it in place. Any error ends the
	// sealing.
	Encrypt(ctx context.Context, keys Keys, plain []byte) ([]byte, error)
}

// Recognizer is a key provider that knows its own metadata by its shape. So it
// still opens its files after it was renamed in the settings.
type Recognizer interface {
	// Recognizes reports whether stored has the shape of what NewKey stores. It
	// comes from outside, and may be of any other key provider.
	Recognizes(stored json.RawMessage) bool
}

// Closer is a key provider or a method that holds something between its calls, such
// as connections, a session or keys.
type Closer interface {
	// Close gives up what is held. The program calls it at any time: calls
	// of other methods that are under way end as if nothing had happened, and
	// those that follow open anew what they need. So it may be called again.
	Close()
}

// Warner is a method whose encryption is weak, or a key provider whose
// connection is not protected.
type Warner interface {
	// Warning says what is weak and what to use instead; it is zero if nothing
	// is. It is called each time the method or the key provider has opened a file.
	Warning() Warning
}

// Warning is something to know about a file that was opened.
type Warning struct {
	Title string // a few words, such as "Weak encryption"
	Text  string // complete sentences; the program sees them after the address of what warns
}

// Deriver is a key provider whose keys may serve other uses than opening
// files.
type Deriver interface {
	// Stored returns metadata from which Key gives the same key each time. It
	// is made from salt or is wrapped, whichever the kind needs; the other must
	// be nil. Metadata that is too weak is an error.
	Stored(salt []byte, wrapped json.RawMessage) (json.RawMessage, error)
}

// Block is one kind of key provider or method: its attributes, and how to
// build one from them.
type Block[T any] struct {
	attr.Table

	// Build is pure: no I/O, no environment. What it checks is reported when
	// the entry is used, and by Encryption.Check. [attr.Values.Errorf] makes its errors.
	Build func(attr.Values) (T, error)

	// OwnFormat is for methods with a file format of their own: Decrypt gets whole
	// files, and not the data of OpenTofu envelopes, which methods without it get,
	// unless that data begins a file of the format, and the kind is not Vague. It
	// reports whether a file, of any kind and size, can have the format, and leaves
	// the file as it is. Each method has the attribute then, the address of the
	// method for the file inside the file, in addition to those of the table.
	OwnFormat func(file []byte) bool

	// MetadataKind is the kind in the name under which key providers of this kind store
	// their metadata: that of another key provider, in a program that has none of
	// this kind. "" is the kind itself.
	MetadataKind string

	// Vague says that files of other formats are recognized as well. So a file is
	// said to have this one only if a method of the kind is selected.
	Vague bool
}

// These are the reasons that a kind gives. Programs that open files know them as those of
// package encryption.
var (
	// ErrNoKey means that this is not the key provider or the method for the file, or that
	// a key service denies the key, has disabled it or does not know it. The next method
	// may be tried. A timeout, a network failure or a wrong setting must not wrap it.
	ErrNoKey = errors.New("no key for this file")

	// ErrDamaged means that the file, or what was decrypted, is not in the form that it
	// should have.
	ErrDamaged = errors.New("the file is damaged")
)
