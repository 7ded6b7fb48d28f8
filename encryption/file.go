package encryption

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// FileKind is the kind of a file, as far as it can be recognized without a key.
type FileKind int

// These are the kinds of files.
const (
	KindUnknown       FileKind = iota // any other file, perhaps in a method's own format
	KindEmpty                         // no bytes at all
	KindEncrypted                     // an OpenTofu envelope
	KindState                         // a plaintext state
	KindPlan                          // a plaintext plan
	KindBackendRecord                 // .terraform/terraform.tfstate, which says where the state is
)

// String returns a short description for users, such as "plaintext state".
func (k FileKind) String() string {
	names := []string{"file of an unknown kind", "empty file", "encrypted file", "plaintext state", "plaintext plan", "record of a backend"}
	if k > KindUnknown && int(k) < len(names) {
		return names[k]
	}
	return names[KindUnknown]
}

// isPlain reports whether the file is a plaintext state or plan.
func (k FileKind) isPlain() bool { return k == KindState || k == KindPlan }

// content returns "state" or "plan" for a plaintext kind.
func (k FileKind) content() string { return strings.TrimPrefix(k.String(), "plaintext ") }

// Info is the part of a file that is readable without a key. It is not authenticated: anyone who
// can write the file can change it.
type Info struct {
	Kind         FileKind
	Version      string   // encryption_version of an envelope; "" for any other kind
	Serial       *int64   // the serial of an envelope; nil if absent
	Lineage      string   // the lineage of an envelope; "" if absent
	KeyProviders []string // names in the metadata of an envelope, sorted
}

// Inspect describes a file without a key. It reads the whole file, but copies only its small
// members. It returns [ErrDamaged] for a damaged envelope, and for broken JSON or a broken archive.
// It returns another error for an envelope of an unknown version. [Target.Decrypt] returns the same
// errors, unless it has a method for such a file. If the file is damaged, Info still has the kind
// that the file had before, because plaintext in it may still be readable.
//
// Use Inspect to show information about a file, not to decide how to read it. Pass every file to
// [Target.Decrypt], even one that looks like plaintext: only Decrypt obeys enforced settings and
// knows the formats of other tools.
func Inspect(file []byte) (Info, error) {
	kind, env, err := identify(file)
	if kind == KindUnknown {
		if kind = remains(file); kind != KindUnknown || isBroken(file) {
			err = unreadable(file)
		}
	}
	if err != nil || env == nil {
		return Info{Kind: kind}, err
	}
	if err := env.verify(); err != nil {
		return Info{Kind: kind}, damaged(err)
	}
	return Info{
		Kind: kind, Version: env.Version, Serial: env.Serial, Lineage: env.Lineage,
		KeyProviders: slices.Sorted(maps.Keys(env.Meta)),
	}, nil
}

// envelope is OpenTofu's format for encrypted states and plans. Its member names come from base.go
// and state.go in opentofu/internal/encryption. The order of the fields is the order in which
// OpenTofu writes them.
type envelope struct {
	Serial  *int64            `json:"serial,omitempty"`  // cleartext copy; absent in plans
	Lineage string            `json:"lineage,omitempty"` // cleartext copy; absent in plans
	Meta    map[string][]byte `json:"meta"`              // JSON documents by key provider alias or address
	Data    []byte            `json:"encrypted_data"`
	Version string            `json:"encryption_version"`

	// encoded is the encrypted data of a file that was read, still as a JSON string. It is a slice
	// of the file, and is decoded only when a method needs the data. In such an envelope, Data is
	// empty.
	encoded json.RawMessage
}

const envelopeVersion = "v0"

// decode returns the encrypted data of a file that was read. It writes the data over the file, or into other memory, if
// it may, which saves a copy nearly as large as the file.
func (env *envelope) decode(in room) ([]byte, error) {
	if len(env.encoded) == 0 {
		return nil, nil
	}
	text, ok := env.digits()
	if !ok {
		var data []byte
		err := json.Unmarshal(env.encoded, &data)
		return data, err
	}
	into, size := text, base64.StdEncoding.DecodedLen(len(text))
	switch {
	case in.inPlace:
	case cap(in.memory) >= size:
		into = in.memory[:size]
	default:
		into = make([]byte, size)
	}
	// Decoding in place is safe: every eight digits are read before their six bytes are written.
	n, err := base64.StdEncoding.Decode(into, text)
	if err == nil && base64.StdEncoding.EncodedLen(n) != len(text) {
		err = base64.CorruptInputError(0) // Decode skips line breaks, which a JSON string cannot contain
	}
	return into[:n], err
}

// verify returns an error if the encrypted data of a file is not base64. It decodes the data in
// small parts.
func (env *envelope) verify() error {
	text, ok := env.digits()
	if !ok {
		_, err := env.decode(room{})
		return err
	}
	var into [3 << 10]byte
	for len(text) > 0 {
		part := text[:min(len(text), base64.StdEncoding.EncodedLen(len(into)))]
		n, err := base64.StdEncoding.Decode(into[:], part)
		if err != nil {
			return err
		}
		text = text[len(part):]
		if base64.StdEncoding.EncodedLen(n) != len(part) || len(text) > 0 && n < len(into) { // padding must be at the end
			return base64.CorruptInputError(0)
		}
	}
	return nil
}

// digits returns the base64 text of the encrypted data, as a slice of the file that was read. It
// returns false if the value is not a string, or contains escapes, which no tool writes.
func (env *envelope) digits() ([]byte, bool) {
	if len(env.encoded) == 0 || env.encoded[0] != '"' || bytes.ContainsRune(env.encoded, '\\') {
		return nil, false
	}
	return env.encoded[1 : len(env.encoded)-1], true
}

// start returns the first bytes of the encrypted data of a file that was read.
func (env *envelope) start() []byte {
	const digits = 128
	text := bytes.TrimPrefix(env.encoded, []byte{'"'})
	text = text[:min(len(text), digits)]
	data := make([]byte, base64.StdEncoding.DecodedLen(digits))
	n, _ := base64.StdEncoding.Decode(data, text) // n counts the bytes before any error
	return data[:n]
}

// identify returns the kind of a file, and its envelope if the file is encrypted. It does not
// change the file.
func identify(file []byte) (FileKind, *envelope, error) {
	switch {
	case len(file) == 0:
		return KindEmpty, nil, nil
	case isPlan(file):
		return KindPlan, nil, nil
	}
	var encoded, backend, modules json.RawMessage
	isState, isOther := false, false // files of other programs may have a version, too
	small, err := jsonwalk.Pick(file, func(name string, value []byte) bool {
		name = jsonwalk.Fold(name)
		isState = isState || isOfState(name)
		isOther = isOther || !isOfState(name) && name != "version"
		switch name {
		case "encrypted_data":
			encoded = value
		case "backend", "state_store":
			backend = value
		case "modules":
			modules = value
		case "serial", "lineage", "meta", "encryption_version", "version":
			return true
		}
		return false
	})
	if err != nil {
		return KindUnknown, nil, nil //nolint:nilerr // the file may be in a method's own format
	}
	var header struct {
		envelope
		StateVersion json.RawMessage `json:"version"`
	}
	// If a value has the wrong type, Unmarshal returns an error but decodes all others.
	err = json.Unmarshal(small, &header)
	header.encoded = encoded
	if _, broken := errors.AsType[*json.SyntaxError](err); broken {
		return KindUnknown, nil, nil
	}
	switch {
	case header.Version == envelopeVersion && err != nil:
		return KindEncrypted, nil, damaged(err)
	case header.Version == envelopeVersion && len(encoded) == 0:
		return KindEncrypted, nil, edited("the file has metadata but no encrypted_data, so it was edited or truncated")
	case header.Version == envelopeVersion:
		return KindEncrypted, &header.envelope, nil
	case header.Version != "":
		return KindEncrypted, nil, fault.With(fmt.Errorf("encryption_version %s is not supported: the file is newer than this "+
			"release of statecrypt, or it is damaged", quoted(header.Version)), "install a newer release")
	case string(header.StateVersion) == "3" && isRecord(backend, modules):
		return KindBackendRecord, nil, nil
	case isNumber(header.StateVersion) && (isState || !isOther):
		return KindState, nil, nil
	}
	return KindUnknown, nil, nil
}

// isOfState reports whether a state has a member with this name. It returns false for version,
// which other files have, too.
func isOfState(name string) bool {
	switch name {
	case "terraform_version", "serial", "lineage", "outputs", "resources", "check_results", "modules", "backend", "state_store":
		return true
	}
	return false
}

// remains returns the original kind of a damaged file. It recognizes a plaintext state that was
// truncated, or that has a byte order mark before it or other bytes after it, and a plan that was
// truncated or has other bytes after it.
func remains(file []byte) FileKind {
	hasVersion, isState := false, false
	_ = jsonwalk.Members(bytes.TrimPrefix(file, []byte("\xef\xbb\xbf")), func(name string, value []byte) (bool, error) {
		name = jsonwalk.Fold(name)
		hasVersion = hasVersion || name == "version" && isNumber(value)
		isState = isState || isOfState(name)
		return true, nil
	}) // stops at the first syntax error
	switch {
	case hasVersion && isState:
		return KindState
	case beginsAsPlan(file):
		return KindPlan
	}
	return KindUnknown
}

// isBroken reports whether a file of unknown kind begins like a zip archive, or begins like a JSON
// object but is not valid JSON. Other files may be in a method's own format.
func isBroken(file []byte) bool {
	if beginsAsArchive(file) {
		return true
	}
	const space = " \t\r\n"
	begin, isObject := bytes.CutPrefix(bytes.TrimLeft(file, space), []byte("{"))
	begin = bytes.TrimLeft(begin, space)
	return isObject && (len(begin) == 0 || begin[0] == '"') && !json.Valid(file)
}

// unreadable returns the error for a file of an unknown kind that no method recognizes.
func unreadable(file []byte) error {
	return because(ErrDamaged, "%s: %w", neither, describeOther(file))
}

// describeOther explains, for an error message, what kind of file this is. The file is neither a
// state nor a plan.
func describeOther(file []byte) error {
	if what := recognize.File(file); what != nil {
		return what
	}
	err := json.Unmarshal(file, &struct{}{})
	if jsonwalk.IsCutOff(err) && len(bytes.TrimSpace(file)) > 0 {
		return recognize.Is("it is truncated JSON", "fetch it again, or restore a copy")
	}
	if err != nil {
		return recognize.Is(describeJSON(err).Error(), "check that this is the right file, or restore an intact copy")
	}
	const beginning = 1 << 10
	if bytes.Contains(file[:min(len(file), beginning)], []byte(`"encrypted_data"`)) {
		return recognize.Is("it has encrypted_data but no encryption_version, so it is only part of an encrypted state, or it was "+
			"edited",
			"give the whole file")
	}
	return recognize.Is("it contains other JSON", "check that this is the right file")
}

// isEmpty explains an empty file in error messages. Terraform and OpenTofu never write one.
const isEmpty = "the file is empty, perhaps because > in a shell truncated it"

const neither = "the file is neither an encrypted nor a plaintext state"

// notOurs returns the error for decrypted data that is neither a state nor a plan.
func notOurs() error {
	return fault.With(because(ErrDamaged, "the decrypted data is neither a state nor a plan"), "check that this is the right file")
}

func damaged(err error) error { return edited("the encrypted file is damaged: %w", describeJSON(err)) }

// edited returns the error for a file that was edited or cut off.
func edited(format string, args ...any) error {
	return fault.With(because(ErrDamaged, format, args...), "restore an intact copy")
}

// isRecord reports whether a file of version 3 is a backend record. Up to Terraform 1.8, a record
// looks like a state with an empty root module. A file with outputs or resources is a state, such
// as the copy of a remote state that Terraform 0.8 kept in the same place.
func isRecord(backend, modules json.RawMessage) bool {
	if len(backend) == 0 || backend[0] != '{' {
		return false
	}
	var empty []struct{ Outputs, Resources map[string]struct{} }
	const most = 1000 // bytes; an empty root module takes about 100
	if len(modules) > most || len(modules) > 0 && json.Unmarshal(modules, &empty) != nil {
		return false
	}
	return !slices.ContainsFunc(empty, func(m struct{ Outputs, Resources map[string]struct{} }) bool {
		return len(m.Outputs) > 0 || len(m.Resources) > 0
	})
}

func isNumber(raw json.RawMessage) bool {
	var n json.Number
	return len(raw) > 0 && raw[0] != '"' && json.Unmarshal(raw, &n) == nil && n != ""
}

// check returns the kind of the plaintext. It compares the serial and lineage in the envelope with
// the values in the plaintext, because nothing else protects the envelope's copies. An envelope
// without copies is accepted, because pre-releases of OpenTofu 1.7 wrote none. A copy of a value
// that the plaintext lacks is an error.
func (env *envelope) check(plain []byte) (FileKind, error) {
	if env.Serial == nil && env.Lineage == "" && isPlan(plain) {
		return KindPlan, nil
	}
	var inner struct {
		Version json.RawMessage
		Serial  *int64
		Lineage string
	}
	found := 0
	if err := jsonwalk.Members(plain, func(name string, value []byte) (bool, error) {
		var err error
		switch name {
		case "version":
			inner.Version = value
			found++
		case "serial":
			err = json.Unmarshal(value, &inner.Serial)
			found++
		case "lineage":
			err = json.Unmarshal(value, &inner.Lineage)
			found++
		}
		return found < 3, err // stops early, because the rest may be large
	}); err != nil {
		return KindUnknown, fault.With(because(ErrDamaged, "the decrypted data is not a state: %w", describeJSON(err)),
			"check that this is the right file")
	}
	if !isNumber(inner.Version) {
		return KindUnknown, notOurs()
	}
	switch {
	case env.Serial != nil && inner.Serial == nil:
		return KindUnknown, edited("the serial (%d) is missing inside the encrypted data: someone changed the file",
			*env.Serial)
	case env.Serial != nil && *env.Serial != *inner.Serial:
		return KindUnknown, edited("the serial outside the encrypted data (%d) differs from the one inside (%d): someone changed "+
			"the file", *env.Serial, *inner.Serial)
	case env.Lineage != "" && inner.Lineage == "":
		return KindUnknown, edited("the lineage is missing inside the encrypted data: someone changed the file")
	case env.Lineage != "" && env.Lineage != inner.Lineage:
		return KindUnknown, edited("the lineage outside the encrypted data differs from the one inside: someone changed the file")
	}
	return KindState, nil
}

// describeJSON describes the position and the kind of a JSON error. Unlike the messages of
// encoding/json, its result repeats no part of the file.
func describeJSON(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		if strings.Contains(syntax.Error(), "max depth") { // this error can only be recognized by its text
			return errors.New("it is nested too deeply")
		}
		return fmt.Errorf("it stops being JSON at byte %d", syntax.Offset)
	}
	if syntax, ok := errors.AsType[*jsonwalk.SyntaxError](err); ok {
		return syntax
	}
	_, notBase64 := errors.AsType[base64.CorruptInputError](err) // Go 1.27 wraps it in an UnmarshalTypeError
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && !notBase64 {
		if kind.Field == "" {
			return errors.New("its JSON is not an object")
		}
		name := strings.TrimPrefix(kind.Field, "envelope.") // the name of the embedded Go struct comes first
		return fmt.Errorf("%s is not %s", quoted(name), jsonwalk.Expected(kind))
	}
	return errors.New("a value is not base64")
}

const maxName = 100 // maximum length of a name in a message, in bytes

func quoted(name string) string { return outside.Quoted(name, maxName) }
