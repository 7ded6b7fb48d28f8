package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
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

// TestAttacks has somebody who can write the place of a state, and who has old
// files and files of other states under the same key, but not the key.
func TestAttacks(t *testing.T) {
	t.Parallel()
	enc := library(t, builtin.Registry(), attackText)
	seal := func(method, plain string) string {
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
	mine, foreign := seal(derived, plain), seal(derived, attackState(9, "l-2", "foreign"))
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
	const unpinned = "unpinned: "
	for label, c := range map[string]struct {
		method, file string
		value        string // the output x, when it opens
		err          string // a part of the error, when it does not
	}{
		"untouched":        {derived, mine, "mine", ""},
		"untouched, fixed": {fixed, fixedMine, "mine", ""},

		"metadata of another file": {derived, with(mine, func(e *attackEnvelope) { e.Meta = parts(foreign).Meta }), "",
			"no selected method has the key"},
		"encrypted data of another file": {derived, with(mine, func(e *attackEnvelope) { e.Data = parts(foreign).Data }), "",
			"no selected method has the key"},
		"no metadata":       {derived, with(mine, func(e *attackEnvelope) { e.Meta = nil }), "", "stores nothing"},
		"empty metadata":    {derived, with(mine, func(e *attackEnvelope) { e.Meta = map[string]any{} }), "", "stores nothing"},
		"metadata is null":  {derived, with(mine, func(e *attackEnvelope) { e.Meta[name] = nil }), "", "stores nothing"},
		"metadata is empty": {derived, with(mine, func(e *attackEnvelope) { e.Meta[name] = []byte("{}") }), "", "lacks"},
		"metadata of another kind": {derived, with(mine,
			func(e *attackEnvelope) { e.Meta[name] = []byte(`{"magic":"Hello world!"}`) }), "", "lacks"},
		"metadata twice, the other beside it": {derived, with(mine, func(e *attackEnvelope) { e.Meta["other"] = parts(foreign).Meta[name] }),
			"mine", ""},
		"metadata twice, the other in place": {derived, with(mine,
			func(e *attackEnvelope) { e.Meta["other"], e.Meta[name] = e.Meta[name], parts(foreign).Meta[name] }), "",
			"no selected method has the key"},
		"metadata twice, neither in place": {derived, with(mine, func(e *attackEnvelope) {
			e.Meta = map[string]any{"a": e.Meta[name],
				"b": parts(foreign).Meta[name]}
		}), "", "stores nothing"},
		"more work than anybody wants": {derived, with(mine, func(e *attackEnvelope) {
			e.Meta[name] = []byte(`{"salt":"AAAA","iterations":2000000000,"hash_function":"sha512","key_length":32}`)
		}), "", "max_iterations"},
		"no encrypted data": {derived, with(mine, func(e *attackEnvelope) { e.Data = nil }), "",
			"no selected method has the key"},
		"no version": {derived, with(mine, func(e *attackEnvelope) { e.Version = nil }), "",
			"neither an encrypted state nor a plaintext one"},
		"metadata as a member, twice":           {derived, before(mine, member(foreign, "meta")), "mine", ""},
		"metadata as a member, twice, reversed": {derived, after(mine, member(foreign, "meta")), "", "no selected method has the key"},

		"data twice":           {fixed, before(fixedMine, member(fixedForeign, "encrypted_data")), "mine", ""},
		"data twice, reversed": {fixed, after(fixedMine, member(fixedForeign, "encrypted_data")), "", "somebody changed the file"},
		"data twice, other case": {fixed, after(fixedMine, strings.Replace(member(fixedForeign, "encrypted_data"), "e", "E", 1)), "",
			"somebody changed the file"},
		"serial twice":            {fixed, after(fixedMine, `"serial":8`), "", "somebody changed the file"},
		"lineage twice":           {fixed, after(fixedMine, `"LINEAGE":"l-2"`), "", "somebody changed the file"},
		"version twice":           {fixed, after(fixedMine, `"encryption_version":"v1"`), "", "v1"},
		"version twice, as state": {fixed, after(fixedMine, `"version":4,"outputs":{}`), "mine", ""},

		"another state under the same key":            {fixed, fixedForeign, "", "expected_lineage"},
		unpinned + "another state under the same key": {fixed, fixedForeign, "foreign", ""},
		"its data under my names": {fixed, with(fixedMine, func(e *attackEnvelope) { e.Data = parts(fixedForeign).Data }),
			"", "somebody changed the file"},
		unpinned + "its data under my names": {fixed, with(fixedMine, func(e *attackEnvelope) { e.Data = parts(fixedForeign).Data }),
			"", "somebody changed the file"},
		"its data without names": {fixed, with(fixedForeign, func(e *attackEnvelope) { e.Serial, e.Lineage = nil, nil }),
			"", "expected_lineage"},
		"an older state":            {fixed, fixedOld, "", "minimum_serial"},
		unpinned + "an older state": {fixed, fixedOld, "old", ""},
		"an older state that says it is new": {fixed, with(fixedOld, func(e *attackEnvelope) { e.Serial = 7 }), "",
			"somebody changed the file"},
		"an older state that says nothing": {fixed, with(fixedOld, func(e *attackEnvelope) { e.Serial = nil }), "",
			"minimum_serial"},
		unpinned + "an older state that says it is new": {fixed, with(fixedOld, func(e *attackEnvelope) { e.Serial = 7 }), "",
			"somebody changed the file"},

		"plaintext": {fixed, plain, "", "plaintext is read only if"},
		"plaintext that looks sealed": {fixed, after(plain, `"meta":{},"encrypted_data":"","encryption_version":"v0"`), "",
			"no selected method has the key"},
		"plaintext of version 1":        {fixed, vector("plain_v1"), "", "plaintext is read only if"},
		"plaintext of version 2":        {fixed, `{"version":2,"serial":7,"lineage":"l-1","modules":[]}`, "", "plaintext is read only if"},
		"plaintext of version 3":        {fixed, vector("plain_v3"), "", "plaintext is read only if"},
		"plaintext without an envelope": {one, vector("tbg_plain"), "", "plaintext is read only if"},
		"a state for the method":        {one, plain, "", "plaintext is read only if"},
		"an envelope for the method":    {one, mine, "", "no method for encrypted data"},

		"one layer in place of two, outer": {two, vector("tbg_aes_amend"), "", "which is not for its then"},
		"one layer in place of two, inner": {two, vector("pbkdf2_defaults"), "", "no method for encrypted data"},
		"no layer in place of two":         {two, plain, "", "plaintext is read only if"},
		"two layers in place of one":       {one, vector("tbg_aes_over_tofu_encryption"), "", "encrypted twice"},
		"a file of the git backend":        {fixed, vector("tbg_aes_amend"), "", "method.terraform_backend_git"},
		"a file of Kubeform":               {fixed, vector("kubeform_module"), "", "neither an encrypted state nor a plaintext one"},
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
			result, err := read(t, configureWith(t, cat, nil, map[string]cty.Value{"encryption": text1(attackText)}), cat, set)
			switch {
			case c.err != "" && err == nil:
				t.Fatalf("it opened to %#v", result.attributes["outputs"])
			case c.err != "" && !strings.Contains(err.Error(), c.err):
				t.Errorf("got %v, want %s", err, c.err)
			case c.err == "" && err != nil:
				t.Error(err)
			case c.err == "":
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
func TestAttacksOnEnforced(t *testing.T) {
	t.Parallel()
	for label, c := range map[string]struct {
		enforced bool
		want     string // "" when it opens
	}{
		"a fallback to plaintext":           {false, ""},
		"enforced, a fallback to plaintext": {true, "enforced = true forbids"},
	} {
		m := &memory{files: map[string][]byte{"file": []byte(attackState(7, "l-1", "forged"))}}
		cat := newCatalog(m)
		configured := configureWith(t, cat, nil, map[string]cty.Value{"encryption": text1(attackText), "enforced": cty.BoolVal(c.enforced)})
		_, err := read(t, configured, cat, map[string]cty.Value{
			"memory": at("file"), "method": text1("method.aes_gcm.fixed"),
			"fallback": one(map[string]cty.Value{"method": text1("method.unencrypted.plain")}),
		})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v", label, err)
		}
	}
}
