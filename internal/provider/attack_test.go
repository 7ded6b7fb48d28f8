package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// attackText has a derived key, a key that is the same for each file, and a
// method in two layers.
const attackText = `
key_provider "pbkdf2" "k" {
  passphrase = "the passphrase of the attacks"
  iterations = 200000
}
key_provider "static" "s" { key = "000102030405060708090a0b0c0d0e0f" }
method "aes_gcm" "derived" { keys = key_provider.pbkdf2.k }
method "aes_gcm" "fixed" { keys = key_provider.static.s }
method "unencrypted" "plain" {}
method "terraform_backend_git" "one" { passphrase = "throwaway aes passphrase" }
method "terraform_backend_git" "two" {
  passphrase = "throwaway aes passphrase"
  then       = method.aes_gcm.vector
}
key_provider "pbkdf2" "vector" {
  passphrase               = "correct-horse-battery-staple"
  encrypted_metadata_alias = "key_provider.pbkdf2.k"
}
method "aes_gcm" "vector" { keys = key_provider.pbkdf2.vector }
`

func attackState(serial int, lineage, value string) string {
	return fmt.Sprintf(`{"version":4,"terraform_version":"1.12.6","serial":%d,"lineage":%q,"outputs":{"x":{"value":%q,"type":"string"}},"resources":[]}`, serial, lineage, value)
}

// attackEnvelope is an envelope that can be taken apart and put together.
type attackEnvelope struct {
	Serial  any            `json:"serial,omitempty"`
	Lineage any            `json:"lineage,omitempty"`
	Meta    map[string]any `json:"meta"`
	Data    any            `json:"encrypted_data"`
	Version any            `json:"encryption_version"`
}

// TestAttacks has someone who can write the place of a state, and who has old
// files and files of other states under the same key, but not the key.
//
// Promise: Authentication
func TestAttacks(t *testing.T) {
	t.Parallel()
	enc := library(t, builtin.Registry(), attackText)
	sealBy := func(enc *encryption.Encryption, method, plain string) string {
		t.Helper()
		target, err := enc.Use(method)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := target.Encrypt(t.Context(), []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		return string(sealed)
	}
	seal := func(method, plain string) string { return sealBy(enc, method, plain) }
	parts := func(file string) attackEnvelope {
		t.Helper()
		var e attackEnvelope
		if err := json.Unmarshal([]byte(file), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	join := func(e attackEnvelope) string {
		t.Helper()
		file, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(file)
	}
	const derived, fixed = "method.aes_gcm.derived", "method.aes_gcm.fixed"
	const name = "key_provider.pbkdf2.k"
	plain := attackState(7, "l-1", "mine")
	mine, sibling := seal(derived, plain), seal(derived, attackState(9, "l-2", "foreign")) // of one run, with one salt
	foreign := sealBy(library(t, builtin.Registry(), attackText), derived, attackState(9, "l-2", "foreign"))
	fixedMine, fixedOld, fixedForeign := seal(fixed, plain), seal(fixed, attackState(6, "l-1", "old")),
		seal(fixed, attackState(9, "l-2", "foreign"))
	member := func(file, name string) string {
		t.Helper()
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(file), &members); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%q:%s", name, members[name])
	}
	with := func(file string, how func(*attackEnvelope)) string {
		e := parts(file)
		how(&e)
		return join(e)
	}
	before := func(file, added string) string { return "{" + added + "," + strings.TrimPrefix(file, "{") }
	after := func(file, added string) string {
		return strings.TrimSuffix(strings.TrimSpace(file), "}") + "," + added + "}"
	}
	vector := func(name string) string { return string(conformance.Get(name).State()) }
	const one, two = "method.terraform_backend_git.one", "method.terraform_backend_git.two"

	pins := map[string]cty.Value{"expected_lineage": text1("l-1"), "minimum_serial": cty.NumberIntVal(7)}
	golden := openMistakes(t, "attack")
	const unpinned = "unpinned: "
	for label, c := range map[string]struct {
		method, file string
		value        string // the output x; "" if it does not open
	}{
		"untouched":        {derived, mine, "mine"},
		"untouched, fixed": {fixed, fixedMine, "mine"},

		"metadata of another file":                  {derived, with(mine, func(e *attackEnvelope) { e.Meta = parts(foreign).Meta }), ""},
		"encrypted data of another file":            {derived, with(mine, func(e *attackEnvelope) { e.Data = parts(foreign).Data }), ""},
		"metadata of another file of the run":       {derived, with(mine, func(e *attackEnvelope) { e.Meta = parts(sibling).Meta }), "mine"},
		"encrypted data of another file of the run": {derived, with(mine, func(e *attackEnvelope) { e.Data = parts(sibling).Data }), ""},
		"no metadata":       {derived, with(mine, func(e *attackEnvelope) { e.Meta = nil }), ""},
		"empty metadata":    {derived, with(mine, func(e *attackEnvelope) { e.Meta = map[string]any{} }), ""},
		"metadata is null":  {derived, with(mine, func(e *attackEnvelope) { e.Meta[name] = nil }), ""},
		"metadata is empty": {derived, with(mine, func(e *attackEnvelope) { e.Meta[name] = []byte("{}") }), ""},
		"metadata of another kind": {derived, with(mine,
			func(e *attackEnvelope) { e.Meta[name] = []byte(`{"magic":"Hello world!"}`) }), ""},
		"metadata twice, the other beside it": {derived, with(mine, func(e *attackEnvelope) { e.Meta["other"] = parts(foreign).Meta[name] }),
			"mine"},
		"metadata twice, the other in place": {derived, with(mine,
			func(e *attackEnvelope) { e.Meta["other"], e.Meta[name] = e.Meta[name], parts(foreign).Meta[name] }), ""},
		"metadata twice, neither in place": {derived, with(mine, func(e *attackEnvelope) {
			e.Meta = map[string]any{"a": e.Meta[name],
				"b": parts(foreign).Meta[name]}
		}), ""},
		"more work than anyone wants": {derived, with(mine, func(e *attackEnvelope) {
			e.Meta[name] = []byte(`{"salt":"AAAA","iterations":2000000000,"hash_function":"sha512","key_length":32}`)
		}), ""},
		"no encrypted data":                     {derived, with(mine, func(e *attackEnvelope) { e.Data = nil }), ""},
		"no version":                            {derived, with(mine, func(e *attackEnvelope) { e.Version = nil }), ""},
		"metadata as a member, twice":           {derived, before(mine, member(foreign, "meta")), "mine"},
		"metadata as a member, twice, reversed": {derived, after(mine, member(foreign, "meta")), ""},

		"data twice":              {fixed, before(fixedMine, member(fixedForeign, "encrypted_data")), "mine"},
		"data twice, reversed":    {fixed, after(fixedMine, member(fixedForeign, "encrypted_data")), ""},
		"data twice, other case":  {fixed, after(fixedMine, strings.Replace(member(fixedForeign, "encrypted_data"), "e", "E", 1)), ""},
		"serial twice":            {fixed, after(fixedMine, `"serial":8`), ""},
		"lineage twice":           {fixed, after(fixedMine, `"LINEAGE":"l-2"`), ""},
		"version twice":           {fixed, after(fixedMine, `"encryption_version":"v1"`), ""},
		"version twice, as state": {fixed, after(fixedMine, `"version":4,"outputs":{}`), "mine"},

		"another state under the same key":            {fixed, fixedForeign, ""},
		unpinned + "another state under the same key": {fixed, fixedForeign, "foreign"},
		"its data under my names": {fixed, with(fixedMine, func(e *attackEnvelope) { e.Data = parts(fixedForeign).Data }),
			""},
		unpinned + "its data under my names": {fixed, with(fixedMine, func(e *attackEnvelope) { e.Data = parts(fixedForeign).Data }),
			""},
		"its data without names": {fixed, with(fixedForeign, func(e *attackEnvelope) { e.Serial, e.Lineage = nil, nil }),
			""},
		"an older state":                                {fixed, fixedOld, ""},
		unpinned + "an older state":                     {fixed, fixedOld, "old"},
		"an older state that says it is new":            {fixed, with(fixedOld, func(e *attackEnvelope) { e.Serial = 7 }), ""},
		"an older state that says nothing":              {fixed, with(fixedOld, func(e *attackEnvelope) { e.Serial = nil }), ""},
		unpinned + "an older state that says it is new": {fixed, with(fixedOld, func(e *attackEnvelope) { e.Serial = 7 }), ""},

		"plaintext":                     {fixed, plain, ""},
		"plaintext that looks sealed":   {fixed, after(plain, `"meta":{},"encrypted_data":"","encryption_version":"v0"`), ""},
		"plaintext of version 1":        {fixed, vector("plain_v1"), ""},
		"plaintext of version 2":        {fixed, `{"version":2,"serial":7,"lineage":"l-1","modules":[]}`, ""},
		"plaintext of version 3":        {fixed, vector("plain_v3"), ""},
		"plaintext without an envelope": {one, vector("tbg_plain"), ""},
		"a state for the method":        {one, plain, ""},
		"an envelope for the method":    {one, mine, ""},

		"one layer in place of two, outer": {two, vector("tbg_aes_amend"), ""},
		"one layer in place of two, inner": {two, vector("pbkdf2_defaults"), ""},
		"no layer in place of two":         {two, plain, ""},
		"two layers in place of one":       {one, vector("tbg_aes_over_tofu_encryption"), ""},
		"a file of the git backend":        {fixed, vector("tbg_aes_amend"), ""},
		"a file of Kubeform":               {fixed, vector("kubeform_module"), ""},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			set := map[string]cty.Value{"memory": at("file"), "method": text1(c.method)}
			if !strings.HasPrefix(label, unpinned) {
				for k, v := range pins {
					set[k] = v
				}
			}
			m := &memory{files: map[string][]byte{"file": []byte(c.file)}}
			cat := newCatalog(m)
			configured := configureWith(t, cat, nil, map[string]cty.Value{"encryption": text1(attackText)})
			result, err := read(t, configured, cat, set)
			switch {
			case c.value == "" && err == nil:
				t.Fatalf("it opened to %#v", result.attributes["outputs"])
			case c.value == "":
				golden.Check(t, label, readerOf(configured).tell(err))
			case err != nil:
				t.Error(err)
			default:
				want := cty.ObjectVal(map[string]cty.Value{"x": text1(c.value)})
				if got := result.attributes["outputs"]; !got.RawEquals(want) {
					t.Errorf("got %#v, want %#v", got, want)
				}
			}
		})
	}
}

// Where plaintext is never right, enforced says so: a fallback to it is then a
// mistake in the configuration, whatever the file is.
//
// Promise: Plaintext
func TestAttacksOnEnforced(t *testing.T) {
	t.Parallel()
	for _, enforced := range []bool{false, true} {
		m := &memory{files: map[string][]byte{"file": []byte(attackState(7, "l-1", "forged"))}}
		cat := newCatalog(m)
		configured := configureWith(t, cat, nil, map[string]cty.Value{"encryption": text1(attackText), "enforced": cty.BoolVal(enforced)})
		_, err := read(t, configured, cat, map[string]cty.Value{
			"memory": at("file"), "method": text1("method.aes_gcm.fixed"),
			"fallback": one(map[string]cty.Value{"method": text1("method.unencrypted.plain")}),
		})
		if (err != nil) != enforced {
			t.Errorf("enforced is %t: got %v", enforced, err)
		}
	}
}
