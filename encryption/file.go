package encryption

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// FileKind is the kind of a file that can be told without a key.
type FileKind int

// The kinds of files.
const (
	KindUnknown       FileKind = iota // none of the others; it may be a format of its own
	KindEmpty                         // no bytes at all
	KindEncrypted                     // an OpenTofu envelope
	KindState                         // a plaintext state
	KindPlan                          // a plaintext plan
	KindBackendRecord                 // .terraform/terraform.tfstate, which says where the state is
)

// String returns a few words for users, such as "plaintext state".
func (k FileKind) String() string {
	names := []string{"empty file", "encrypted file", "plaintext state", "plaintext plan", "record of a backend"}
	for i, name := range names {
		if k == KindUnknown+1+FileKind(i) {
			return name
		}
	}
	return "file of an unknown kind"
}

// content is a state or a plan, without how it is kept.
func (k FileKind) content() string { return strings.TrimPrefix(k.String(), "plaintext ") }

// Info is what a file says without any key. Nothing of it is authenticated:
// whoever can write the file can make it say anything.
type Info struct {
	Kind         FileKind
	Version      string   // encryption_version of an envelope; "" for any other kind
	Serial       *int64   // of an envelope; nil when absent
	Lineage      string   // of an envelope; "" when absent
	KeyProviders []string // names in the metadata of an envelope, sorted
}

// Inspect says what file is, without a key. It goes through all of the file, and
// copies only its small members. An error is [ErrDamaged], for an envelope that is
// damaged and for JSON or an archive that is cut off, or about an envelope of a version
// that is not known here. [Target.Decrypt] gives the same one, unless it has a method
// for such a file. With an error, the kind is what the file has been: the plaintext of a
// state is there to be read, although something was put around it, or cut off.
//
// It is for showing what a file is, not for deciding how to read it. Pass every
// file to [Target.Decrypt], also one that looks like plaintext: only that heeds
// enforced settings, and knows the formats of other tools.
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

// envelope is OpenTofu's format for encrypted states and plans, with the names
// of opentofu/internal/encryption/base.go and state.go. The order of the
// fields is the order in which OpenTofu writes them.
type envelope struct {
	Serial  *int64            `json:"serial,omitempty"`  // cleartext copy; absent in plans
	Lineage string            `json:"lineage,omitempty"` // cleartext copy; absent in plans
	Meta    map[string][]byte `json:"meta"`              // :: alias or address of a key provider → JSON document
	Data    []byte            `json:"encrypted_data"`
	Version string            `json:"encryption_version"`

	// encoded is Data of a file that was read, as a JSON string: a part of the
	// file that becomes bytes when a method needs them. Data is empty then.
	encoded json.RawMessage
}

const envelopeVersion = "v0"

// decode returns the encrypted data of a file that was read. It writes them over
// the file if inPlace: nearly all of a file is this, and a second copy costs as
// much memory again.
func (env *envelope) decode(inPlace bool) ([]byte, error) {
	if len(env.encoded) == 0 {
		return nil, nil
	}
	text, ok := env.digits()
	if !ok {
		var data []byte
		err := json.Unmarshal(env.encoded, &data)
		return data, err
	}
	into := text
	if !inPlace {
		into = make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	}
	// Each eight digits are read before their six bytes are written.
	n, err := base64.StdEncoding.Decode(into, text)
	if err == nil && base64.StdEncoding.EncodedLen(n) != len(text) {
		err = base64.CorruptInputError(0) // it passes over line breaks, which no JSON string holds
	}
	return into[:n], err
}

// verify checks the encrypted data of a file that was read, a few digits at a
// time.
func (env *envelope) verify() error {
	text, ok := env.digits()
	if !ok {
		_, err := env.decode(false)
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
		if base64.StdEncoding.EncodedLen(n) != len(part) || len(text) > 0 && n < len(into) { // padding is for the end
			return base64.CorruptInputError(0)
		}
	}
	return nil
}

// digits returns the encrypted data of a file that was read, in base64, as a
// part of the file. False if it is no string, or one with escapes, which no tool
// writes.
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
	n, _ := base64.StdEncoding.Decode(data, text) // what is before the error
	return data[:n]
}

// identify looks at a file and returns its kind and, of an encrypted one, the
// envelope. It leaves the file as it is.
func identify(file []byte) (FileKind, *envelope, error) {
	switch {
	case len(file) == 0:
		return KindEmpty, nil, nil
	case isPlan(file):
		return KindPlan, nil, nil
	}
	var encoded, backend, modules json.RawMessage
	isState, isOther := false, false // other programs have a version as well
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
		return KindUnknown, nil, nil //nolint:nilerr // it may be a format of its own
	}
	var header struct {
		envelope
		StateVersion json.RawMessage `json:"version"`
	}
	// A value of the wrong type is an error, and yet the rest is decoded.
	err = json.Unmarshal(small, &header)
	header.encoded = encoded
	if _, broken := errors.AsType[*json.SyntaxError](err); broken {
		return KindUnknown, nil, nil
	}
	switch {
	case header.Version == envelopeVersion && err != nil:
		return KindEncrypted, nil, damaged(err)
	case header.Version == envelopeVersion && len(encoded) == 0:
		return KindEncrypted, nil, broken("the file has metadata and no encrypted_data, so it was edited or cut off")
	case header.Version == envelopeVersion:
		return KindEncrypted, &header.envelope, nil
	case header.Version != "":
		return KindEncrypted, nil, is(fact.NewerFile, "encryption_version %s is not known here, only %q: the file is newer than this release of "+
			"statecrypt, or damaged", quoted(header.Version), envelopeVersion)
	case string(header.StateVersion) == "3" && isRecord(backend, modules):
		return KindBackendRecord, nil, nil
	case isNumber(header.StateVersion) && (isState || !isOther):
		return KindState, nil, nil
	}
	return KindUnknown, nil, nil
}

// isOfState reports whether a state has a member of that name, beside its version.
func isOfState(name string) bool {
	switch name {
	case "terraform_version", "serial", "lineage", "outputs", "resources", "check_results", "modules", "backend", "state_store":
		return true
	}
	return false
}

// remains is what a file of an unknown kind was: a state in plaintext with a byte order mark
// before it, something behind it, or its end missing; or a plan likewise.
func remains(file []byte) FileKind {
	hasVersion, isState := false, false
	_ = jsonwalk.Members(bytes.TrimPrefix(file, []byte("\xef\xbb\xbf")), func(name string, value []byte) (bool, error) {
		name = jsonwalk.Fold(name)
		hasVersion = hasVersion || name == "version" && isNumber(value)
		isState = isState || isOfState(name)
		return true, nil
	}) // up to where it is broken
	switch {
	case hasVersion && isState:
		return KindState
	case beginsAsPlan(file):
		return KindPlan
	}
	return KindUnknown
}

// isBroken reports whether a file that is no state and no plan begins as JSON or as a
// zip archive, and does not go on so. All else may be of a format of its own.
func isBroken(file []byte) bool {
	if beginsAsArchive(file) {
		return true
	}
	const space = " \t\r\n"
	begin, isObject := bytes.CutPrefix(bytes.TrimLeft(file, space), []byte("{"))
	begin = bytes.TrimLeft(begin, space)
	return isObject && (len(begin) == 0 || begin[0] == '"') && !json.Valid(file)
}

// unreadable is the error for a file that no method recognizes, and that is of no
// other kind.
func unreadable(file []byte) error {
	what := describeOther(file)
	return fact.With(because(ErrDamaged, "%s: %s", neither, what.What), what)
}

// describeOther says what a file is that is neither a state nor a plan.
func describeOther(file []byte) fact.Stranger {
	if what := recognize.File(file); what.What != "" {
		return what
	}
	err := json.Unmarshal(file, &struct{}{})
	if jsonwalk.IsCutOff(err) && len(bytes.TrimSpace(file)) > 0 {
		return fact.Stranger{What: "it is JSON that ends in the middle, so something cut it off", Do: fact.CutOff}
	}
	if err != nil {
		return fact.Stranger{What: describeJSON(err).Error(), Do: fact.OtherOrBroken}
	}
	const beginning = 1 << 10
	if bytes.Contains(file[:min(len(file), beginning)], []byte(`"encrypted_data"`)) {
		return fact.Stranger{Do: fact.PartOfFile,
			What: "it has encrypted_data and no encryption_version, so it is a part of an encrypted state, or was edited"}
	}
	return fact.Stranger{What: "it is JSON of something else", Do: fact.OtherFile}
}

// isEmpty is what to think of an empty file.
const isEmpty = "Terraform and OpenTofu never write an empty file, so something cut it off, such as a shell that writes with > to the " +
	"file that is read"

const neither = "the file is neither an encrypted state nor a plaintext one"

// notOurs is about a plaintext.
func notOurs() error {
	return fact.With(because(ErrDamaged, "what it decrypted is not a state and not a plan"), fact.OtherFile)
}

func damaged(err error) error { return broken("the encrypted file is damaged: %w", describeJSON(err)) }

// broken is the error for a file that was edited, or cut off.
func broken(format string, args ...any) error {
	return fact.With(because(ErrDamaged, format, args...), fact.Broken)
}

// isRecord tells the record of a backend from a state. Up to Terraform 1.8, it
// has the form of a state with an empty root module; what holds more is a state,
// such as the copy of a remote one that Terraform 0.8 kept in the same place.
func isRecord(backend, modules json.RawMessage) bool {
	if len(backend) == 0 || backend[0] != '{' {
		return false
	}
	var empty []struct{ Outputs, Resources map[string]struct{} }
	const most = 1000 // bytes; an empty root module takes a hundred or so
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

// check says what was decrypted, and compares the cleartext copies of serial and
// lineage with those inside. It is all that protects them. A copy that is absent
// is accepted, because early versions wrote none; a copy of nothing is not.
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
		return found < 3, err // the rest of the state may be large
	}); err != nil {
		return KindUnknown, fact.With(because(ErrDamaged, "the decrypted data is not a state: %w", describeJSON(err)), fact.OtherFile)
	}
	if !isNumber(inner.Version) {
		return KindUnknown, notOurs()
	}
	switch {
	case env.Serial != nil && inner.Serial == nil:
		return KindUnknown, broken("there is a serial (%d) beside the encrypted data, but none inside: somebody changed "+
			"the file",
			*env.Serial)
	case env.Serial != nil && *env.Serial != *inner.Serial:
		return KindUnknown, broken("the serial beside the encrypted data (%d) is not the one inside (%d): somebody changed "+
			"the file", *env.Serial, *inner.Serial)
	case env.Lineage != "" && inner.Lineage == "":
		return KindUnknown, broken("there is a lineage beside the encrypted data, but none inside: somebody changed the file")
	case env.Lineage != "" && env.Lineage != inner.Lineage:
		return KindUnknown, broken("the lineage beside the encrypted data is not the one inside: somebody changed the file")
	}
	return KindState, nil
}

// describeJSON keeps the place and the kind of an error of encoding/json, and
// drops what it repeats of the file.
func describeJSON(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		if strings.Contains(syntax.Error(), "max depth") { // it has no other mark
			return errors.New("it is nested too deeply")
		}
		return fmt.Errorf("it is not JSON from byte %d on", syntax.Offset)
	}
	if syntax, ok := errors.AsType[*jsonwalk.SyntaxError](err); ok {
		return syntax
	}
	_, notBase64 := errors.AsType[base64.CorruptInputError](err) // Go 1.27 has it in an error about the type
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && !notBase64 {
		if kind.Field == "" {
			return errors.New("it is JSON, but not an object, which begins with {")
		}
		return fmt.Errorf("%s must be %s", quoted(memberName(kind.Field)), kindOf(kind.Type))
	}
	return errors.New("a value is not base64")
}

// memberName is the name of a member as the file has it: encoding/json puts
// the name of the Go struct before it.
func memberName(field string) string { return strings.TrimPrefix(field, "envelope.") }

// kindOf names the type of JSON that a Go type is decoded from.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int64:
		return "a whole number"
	case reflect.Slice: // of bytes
		return "a string in base64"
	case reflect.Map:
		return "an object"
	}
	return "another kind of value"
}

const maxName = 100 // bytes of a name that are shown

func quoted(name string) string { return outside.Quoted(name, maxName) }
