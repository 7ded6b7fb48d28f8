package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// Writes returns the runs for a program that writes. They use the settings and the plaintext of all OpenTofu cases that
// open, and of cases that must not be written.
func Writes() (runs []Run) {
	for _, c := range All() {
		plain := c.Plain()
		switch {
		case c.Writes == "error" && plain == nil:
			plain = Get(cmp.Or(c.MadeFrom, "no_outputs")).Plain()
		case c.Writes == "error":
		case c.Kind != "opentofu_state" && c.Kind != "opentofu_plan", c.Expect != "ok", c.Config() == "", plain == nil:
			continue
		}
		runs = append(runs, Run{Name: c.Name, Opens: c.Writes == "", of: c, plain: plain})
	}
	return runs
}

// written runs the program a second time, and checks both files.
func (p Program) written(ctx context.Context, r Run, first []byte) error {
	again, err := p.call(ctx, r)
	if err == nil && again.code != 0 {
		err = fmt.Errorf("the exit code was %d at the second write", again.code)
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	target, err := r.of.target(dir)
	if err != nil {
		return err
	}
	own, err := target.Encrypt(ctx, r.plain)
	if err != nil {
		return err
	}
	if bytes.Equal(own, r.plain) {
		if !bytes.Equal(first, r.plain) {
			return errors.New("W1: the first method is unencrypted, but the file differs from the plaintext")
		}
		return nil
	}
	var files [2]envelope
	for i, file := range [][]byte{first, again.stdout} {
		if files[i], err = parse(file); err != nil {
			return err
		}
		opened, err := target.Decrypt(ctx, file)
		switch {
		case err != nil:
			return fmt.Errorf("the library does not open the file: %s", outside.Line(err.Error(), maxSaid))
		case opened.UsedFallback:
			return fmt.Errorf("W1: a fallback opens the file: %s", opened.Method)
		case !bytes.Equal(opened.Data, r.plain):
			return errors.New("W4: the decrypted file differs from the plaintext")
		}
	}
	want, err := parse(own)
	if err != nil {
		return err
	}
	if err := files[0].like(want); err != nil {
		return err
	}
	return files[0].fresh(files[1], strings.HasPrefix(target.Methods()[0], "method.aes_gcm."))
}

// target returns the library's target for the settings of the case. It writes the programs that the settings name to a
// folder.
func (c Case) target(dir string) (encryption.Target, error) {
	var layers []encryption.Layer
	for _, text := range []string{c.CodeConfig(), c.Config()} {
		for name, content := range c.Files() {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				return encryption.Target{}, err
			}
			text = strings.ReplaceAll(text, "./"+name, filepath.ToSlash(path))
		}
		if text != "" {
			layers = append(layers, encryption.Code(text, c.Name))
		}
	}
	enc, err := encryption.Load(light.Registry(), layers...)
	switch {
	case err != nil:
		return encryption.Target{}, err
	case c.Kind == "opentofu_plan":
		return enc.Plan(), nil
	}
	return enc.State(), nil
}

// envelope is an encrypted file, with the documents in its metadata.
type envelope struct {
	members map[string]any // without the members meta and encrypted_data
	meta    map[string]map[string]any
	data    []byte
}

// parse parses an envelope. It accepts only the form that a writer may write.
func parse(file []byte) (e envelope, err error) {
	if e.members, err = object(file); err != nil {
		return e, fmt.Errorf("W2: %w", err)
	}
	meta, isObject := e.members["meta"].(map[string]any)
	if !isObject {
		return e, errors.New("W2: meta is not an object")
	}
	if e.data, err = decoded(e.members["encrypted_data"]); err != nil {
		return e, fmt.Errorf("W6: encrypted_data: %w", err)
	}
	delete(e.members, "meta")
	delete(e.members, "encrypted_data")
	e.meta = map[string]map[string]any{}
	for key, text := range meta {
		document, err := decoded(text)
		if err != nil {
			return e, fmt.Errorf("W6: the entry %q of meta: %w", key, err)
		}
		if e.meta[key], err = object(document); err != nil {
			return e, fmt.Errorf("the entry %q of meta: %w", key, err)
		}
	}
	return e, nil
}

// like returns an error that says how a file differs from the library's file with the same settings and plaintext.
// Random parts are not compared.
func (e envelope) like(want envelope) error {
	if err := same(e.members, want.members); err != nil {
		return fmt.Errorf("W2, W3: %w", err)
	}
	if got, want := slices.Sorted(maps.Keys(e.meta)), slices.Sorted(maps.Keys(want.meta)); !slices.Equal(got, want) {
		return fmt.Errorf("W5: the entries of meta are %q, but must be %q", got, want)
	}
	for key := range want.meta {
		got, want := maps.Clone(e.meta[key]), maps.Clone(want.meta[key])
		if length := len(salt(want)); length != len(salt(got)) {
			return fmt.Errorf("W8: the salt of %q has %d bytes, but must have %d", key, len(salt(got)), length)
		} else if length > 0 {
			got["salt"] = want["salt"]
		}
		if err := same(got, want); err != nil {
			return fmt.Errorf("W8: the entry %q of meta: %w", key, err)
		}
	}
	return nil
}

const (
	nonceLength = 12
	surelyOnce  = 8 // bytes that two random salts cannot have in common
)

// fresh returns an error if the file and the other file, from another run, share a value that must be new in each file
// or in each run.
func (e envelope) fresh(other envelope, nonces bool) error {
	if nonces && bytes.Equal(e.data[:nonceLength], other.data[:nonceLength]) { // both files open, so they have a nonce
		return errors.New("W7: two files have the same nonce")
	}
	for key, document := range e.meta {
		if s := salt(document); len(s) >= surelyOnce && bytes.Equal(s, salt(other.meta[key])) {
			return fmt.Errorf("W8: files of two runs have the same salt in %q", key)
		}
	}
	return nil
}

func salt(document map[string]any) []byte {
	salt, _ := decoded(document["salt"])
	return salt
}

func same(got, want map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, expected := want[name]; !expected {
			return fmt.Errorf("there is a member %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		value, found := got[name]
		switch {
		case !found:
			return fmt.Errorf("the member %q is missing", name)
		case !reflect.DeepEqual(value, want[name]):
			return fmt.Errorf("the member %q is %v, but must be %v", name, value, want[name])
		}
	}
	return nil
}

// object decodes a JSON object. It returns an error if any object in it has two members with the same name.
func object(text []byte) (map[string]any, error) {
	if !json.Valid(text) {
		return nil, errors.New("the file is not one JSON text")
	}
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil || members == nil {
		return nil, errors.New("the file is not a JSON object")
	}
	return members, unique(json.NewDecoder(bytes.NewReader(text)))
}

// unique reads one JSON value, and returns an error if an object in it has two members with the same name.
func unique(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if delim, isDelim := token.(json.Delim); err != nil || !isDelim {
		return err
	} else if delim == '[' {
		for err == nil && decoder.More() {
			err = unique(decoder)
		}
	} else {
		names := map[json.Token]bool{}
		for err == nil && decoder.More() {
			name, _ := decoder.Token() // the text is valid JSON
			if names[name] {
				return fmt.Errorf("there are two members %q", name)
			}
			names[name] = true
			err = unique(decoder)
		}
	}
	if err == nil {
		_, err = decoder.Token()
	}
	return err
}

// decoded decodes base64. It accepts only the form that an encoder would produce.
func decoded(value any) ([]byte, error) {
	text, isText := value.(string)
	if !isText {
		return nil, errors.New("the value is not a string")
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(data) != text {
		return nil, errors.New("the value is not base64 with padding and without line breaks, or its unused bits are not 0")
	}
	return data, nil
}
