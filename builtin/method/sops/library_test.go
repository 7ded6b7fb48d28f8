package sops_test

import (
	"bytes"
	cryptoaes "crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	filippoage "filippo.io/age"
	getsops "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	"github.com/getsops/sops/v3/age"
	sopsconfig "github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/shamir"
	jsonstore "github.com/getsops/sops/v3/stores/json"
	yamlstore "github.com/getsops/sops/v3/stores/yaml"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

var (
	jsonStore = jsonstore.NewStore(&sopsconfig.JSONStoreConfig{})
	yamlStore = yamlstore.NewStore(&sopsconfig.YAMLStoreConfig{})
)

// pair is the library of sops and the method, with the same age identity.
type pair struct {
	recipient string
	identity  filippoage.Identity
	method    driver.Method
}

func newPair(tb testing.TB) pair {
	tb.Helper()
	id, err := filippoage.GenerateX25519Identity()
	if err != nil {
		tb.Fatal(err)
	}
	m, err := tryBuild(attrs{"age_identities": texts(id.String()), "allow_unencrypted_values": cty.True}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return pair{recipient: id.Recipient().String(), identity: id, method: m}
}

// library opens a file as sops does, and returns it as JSON.
func (p pair) library(file []byte) (plain []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the library panics: %v", r)
		}
	}()
	var store getsops.Store = yamlStore
	if bytes.HasPrefix(bytes.TrimSpace(file), []byte("{")) {
		store = jsonStore
	}
	tree, err := store.LoadEncryptedFile(file)
	if err != nil {
		return nil, err
	}
	dataKey, err := p.dataKey(tree.Metadata)
	if err != nil {
		return nil, err
	}
	mac, err := tree.Decrypt(dataKey, aes.NewCipher())
	if err != nil {
		return nil, err
	}
	stored, err := aes.NewCipher().Decrypt(tree.Metadata.MessageAuthenticationCode, dataKey, tree.Metadata.LastModified.Format(time.RFC3339))
	if err != nil {
		return nil, err
	}
	if stored != mac {
		return nil, errors.New("the MAC differs")
	}
	if b := tree.Branches[0]; store == jsonStore && len(b) == 1 && b[0].Key == "data" {
		if text, ok := b[0].Value.(string); ok {
			return []byte(text), nil
		}
	}
	return jsonStore.EmitPlainFile(tree.Branches)
}

func (p pair) dataKey(meta getsops.Metadata) ([]byte, error) {
	var parts [][]byte
	for _, group := range meta.KeyGroups {
		for _, k := range group {
			own, ok := k.(*age.MasterKey)
			if !ok {
				continue
			}
			age.ParsedIdentities{p.identity}.ApplyToMasterKey(own)
			if part, err := own.Decrypt(); err == nil {
				parts = append(parts, part)
				break
			}
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("no key fits")
	}
	if len(meta.KeyGroups) == 1 {
		return parts[0], nil
	}
	return shamir.Combine(parts)
}

// same fails unless both open the file, to the same, or neither does. What the
// library opens may be refused for the reasons of our own.
func (p pair) same(t *testing.T, file []byte, own ...string) (opened bool) {
	t.Helper()
	want, wantErr := p.library(file)
	got, err := p.method.Decrypt(t.Context(), nil, bytes.Clone(file))
	refused := err != nil && slices.Contains(own, shape(err.Error()))
	switch {
	case (err == nil) != (wantErr == nil) && !refused:
		t.Errorf("the library: %v; here: %v: %q", wantErr, err, file)
	case err == nil && !bytes.Equal(got, want):
		sameJSON(t, got, want)
	}
	return err == nil
}

// ofOurOwn returns the shapes of our own reasons, from these rows of the golden.
func ofOurOwn(t *testing.T, rows ...string) (own []string) {
	t.Helper()
	golden := testkit.ReadGolden(t, filepath.Join("..", "..", "testdata", "mistakes.txt"))
	for _, row := range rows {
		text, ok := golden["sops, "+row]
		if !ok {
			t.Fatalf("the golden has no row %q", row)
		}
		own = append(own, shape(text))
	}
	return own
}

// shape returns a reason without the parts that differ between files: names, numbers and what follows a place.
func shape(reason string) string {
	reason, _, _ = strings.Cut(reason, "\n")
	reason, _, _ = strings.Cut(reason, ": at ")
	return variable.ReplaceAllString(reason, "…")
}

var variable = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\d+`)

// seal has the library encrypt a document for the pair.
func (p pair) seal(tb testing.TB, store getsops.Store, plain string, change func(*getsops.Metadata)) []byte {
	tb.Helper()
	if change == nil {
		change = everyRule["unencrypted_suffix"] // which is what sops does without any rule
	}
	dataKey := newDataKey()
	return sealed{store: store, plain: plain, dataKey: dataKey, change: change, groups: groupOf(ageKey(tb, p.recipient, dataKey))}.file(tb)
}

var everyType = map[string]string{
	"numbers":       `{"i":[0,1,-1,9007199254740993,-9223372036854775808,9223372036854775807],"f":[1.5,-0.1,1e300,1E-7,5e-324,1e2,123456789012345678901234567890]}`,
	"texts":         `{"s":["","x"," ","<&>","\u2028","ü","𝄞","a:b","a\nb","ENC","ENC[x","ENC[AES256_GCM,data:x]","True","1","\u0000","\ufffd"],"long":"` + strings.Repeat("ab", 5000) + `"}`,
	"others":        `{"t":true,"f":false,"n":null,"o":{},"l":[],"ll":[[],[[]],[{}],[null,[null]]]}`,
	"nested":        `{"a":{"b":[{"c":[1,[2,[{"d":"e"}]]]},{"c":"f"}],"b2":{"c":{"d":true}}},"z":[[["x"]],"y"]}`,
	"names":         `{"":"empty","ü":{"名":"x","a:b":{"c":"y"},"a":{"b:c":"z"}},"a.b":1,"x\ny":2,"\u0000":3,":":4,"::":{":":5}}`,
	"suffixes":      `{"a_unencrypted":{"b":["x",1,true,null,"",1.5]},"b":{"c_unencrypted":"x","c":"y"},"_unencrypted":"z","un_encrypted":"v","d_enc":{"e":1},"f":{"g_enc":"h"}}`,
	"one text":      `{"data":"text\n"}`,
	"one of others": `{"data":[1]}`,
	"nothing":       `{}`,
}

var everyRule = map[string]func(*getsops.Metadata){
	"unencrypted_suffix":       func(m *getsops.Metadata) { m.UnencryptedSuffix = "_unencrypted" },
	"another suffix":           func(m *getsops.Metadata) { m.UnencryptedSuffix = "b" },
	"encrypted_suffix":         func(m *getsops.Metadata) { m.EncryptedSuffix = "_enc" },
	"unencrypted_regex":        func(m *getsops.Metadata) { m.UnencryptedRegex = "^(a|s|i|un.*)$" },
	"encrypted_regex":          func(m *getsops.Metadata) { m.EncryptedRegex = "b|ü|f" },
	"mac_only_encrypted":       func(m *getsops.Metadata) { m.UnencryptedSuffix, m.MACOnlyEncrypted = "_unencrypted", true },
	"mac_only_encrypted, some": func(m *getsops.Metadata) { m.EncryptedRegex, m.MACOnlyEncrypted = "[ab]$", true },
}

// TestLikeTheLibrary opens what the library seals, with every type and every
// rule, and leaves out what it left out.
//
// Promise: As sops's library
func TestLikeTheLibrary(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, store := range []getsops.Store{jsonStore, yamlStore} {
		for _, plain := range slices.Sorted(maps.Keys(everyType)) {
			for rule, change := range everyRule {
				t.Run(store.Name()+", "+plain+", "+rule, func(t *testing.T) {
					if !p.same(t, p.seal(t, store, everyType[plain], change)) {
						t.Error("it does not open")
					}
				})
			}
		}
	}
	bare := bytes.Replace(p.seal(t, jsonStore, everyType["suffixes"], nil), []byte(`"unencrypted_suffix": "_unencrypted",`), nil, 1)
	if !p.same(t, bare) || bytes.Contains(bare, []byte("unencrypted_suffix")) {
		t.Error("without a rule, it does not open")
	}
	for name, plain := range map[string]string{
		"comments":  "# head\na: b # beside\n# between\nl:\n    # first\n    - x\n    - y # inline\n    # last\nm:\n    # in it\n    n: 1\n",
		"times":     "t: 2001-12-14T21:59:43.1-05:00\nd: 2001-12-14\nq: \"2001-12-14\"\n",
		"blocks":    "a: |\n    x\n    y\nb: >-\n    x\n    y\nc: 'x'\nd: \"\\u00fc\"\n",
		"numbers":   "a: 0x10\nb: 0o17\nc: 1_000\nd: .5\ne: 1e3\nf: ~\ng: yes\nh: true\ni: 012\n",
		"names":     "ü: 1\n\"a:b\": 2\n'': 3\n\"x y\": 4\n",
		"tags":      "a: !!str 1\nb: !!binary aGVsbG8=\nc: !own x\n",
		"documents": "a: b\n",
	} {
		t.Run("YAML, "+name, func(t *testing.T) {
			if !p.same(t, p.seal(t, yamlStore, plain, nil)) {
				t.Error("it does not open")
			}
		})
	}
}

// TestNoJSON: the library seals a number that JSON does not have.
func TestNoJSON(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	kindtest.OpenMistakes(t, "sops, no JSON").Error(t, "infinite", fails(t, p.method, p.seal(t, yamlStore, "a: .inf\n", nil), false))
}

// TestGroupsLikeTheLibrary: two of three parts are enough, wherever they are.
func TestGroupsLikeTheLibrary(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	_, stranger := newAge(t)
	for missing := range 4 {
		dataKey := newDataKey()
		parts, err := shamir.Split(dataKey, 3, 2)
		if err != nil {
			t.Fatal(err)
		}
		var groups []getsops.KeyGroup
		for i := range 3 {
			recipient := p.recipient
			if i == missing {
				recipient = stranger
			}
			groups = append(groups, getsops.KeyGroup{ageKey(t, stranger, parts[i]), ageKey(t, recipient, parts[i])})
		}
		for _, store := range []getsops.Store{jsonStore, yamlStore} {
			if !p.same(t, sealed{store: store, plain: everyType["nested"], dataKey: dataKey, groups: groups, threshold: 2}.file(t)) {
				t.Errorf("without group %d, it does not open", missing)
			}
		}
	}
}

// TestDamageLikeTheLibrary changes bytes of a file, in two ways each. What opens here opens
// there, to the same; what opens there alone is refused for a reason of our own.
//
// Promise: As sops's library
func TestDamageLikeTheLibrary(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	p := newPair(t)
	own := ofOurOwn(t, "hostile text: twice", "hostile text: twice, other case", "hostile metadata: no version",
		"hostile metadata: version of tomorrow", "hostile text: two documents")
	for _, store := range []getsops.Store{jsonStore, yamlStore} {
		file := p.seal(t, store, `{"s":"x","i":12,"f":1.5,"b":true,"n":null,"e":"","l":["y",[2]],"o":{"p_unencrypted":"z"}}`, nil)
		for at := 0; at < len(file); at += len(file) / testkit.Rounds(len(file)) {
			for _, flip := range []byte{1 << (at % 5), 1 << 5} {
				damaged := bytes.Clone(file)
				damaged[at] ^= flip
				p.same(t, damaged, own...)
			}
		}
	}
}

// TestForms writes a value in ways that sops does not.
//
// Promise: As sops's library
func TestForms(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	dataKey := newDataKey()
	file := sealed{plain: `{"a":"1"}`, dataKey: dataKey, groups: groupOf(ageKey(t, p.recipient, dataKey))}.file(t)
	own := strings.Trim(string(valuePattern.Find(file)), `"`)
	encrypted := func(plain, kind string, iv int) string {
		block, err := cryptoaes.NewCipher(dataKey)
		if err != nil {
			t.Fatal(err)
		}
		gcm, err := cipher.NewGCMWithNonceSize(block, iv)
		if err != nil {
			t.Fatal(err)
		}
		out := gcm.Seal(nil, make([]byte, iv), []byte(plain), []byte("a:"))
		b64 := base64.StdEncoding.EncodeToString
		return "ENC[AES256_GCM,data:" + b64(out[:len(plain)]) + ",iv:" + b64(make([]byte, iv)) + ",tag:" + b64(out[len(plain):]) +
			",type:" + kind + "]"
	}
	forms := map[string]struct {
		form string
		ok   bool
	}{
		"as sops":              {own, true},
		"another IV":           {encrypted("1", "str", 32), true},
		"a short IV":           {encrypted("1", "str", 12), true},
		"one byte of IV":       {encrypted("1", "str", 1), true},
		"an integer":           {encrypted("1", "int", 32), true},
		"a number":             {encrypted("1", "float", 32), true},
		"a longer number":      {encrypted("1.0", "float", 32), true},
		"a truth":              {encrypted("1", "bool", 32), false},
		"no number":            {encrypted("x", "int", 32), false},
		"no time":              {encrypted("1", "time", 32), false},
		"another text":         {encrypted("2", "str", 32), false},
		"a comment":            {encrypted("1", "comment", 32), false},
		"bytes":                {encrypted("1", "bytes", 32), false},
		"no type":              {encrypted("1", "", 32), false},
		"a type of none":       {encrypted("1", "x", 32), false},
		"a bracket":            {encrypted("1", "str]", 32), false},
		"nothing in it":        {encrypted("", "str", 32), false},
		"something after it":   {own + "x", true},
		"a line after it":      {own + `\n`, true},
		"brackets after it":    {own + "]", false},
		"something before it":  {" " + own, false},
		"without an end":       {strings.TrimSuffix(own, "]"), false},
		"another algorithm":    {strings.Replace(own, "AES256", "AES128", 1), false},
		"lines in base64":      {strings.Replace(own, "iv:", `iv:\n`, 1), false},
		"returns in base64":    {strings.Replace(own, "iv:", `iv:\r`, 1), true},
		"twice":                {own + own, false},
		"parts in other order": {strings.NewReplacer("iv:", "tag:", "tag:", "iv:").Replace(own), false},
		"no tag":               {strings.Replace(own, "tag:", "", 1), false},
		"nothing":              {"", false},
		"a start":              {"ENC[", false},
		"in plaintext":         {"1", false},
	}
	for name, f := range forms {
		t.Run(name, func(t *testing.T) {
			if opened := p.same(t, bytes.Replace(file, []byte(own), []byte(f.form), 1)); opened != f.ok {
				t.Errorf("it opens: %t", opened)
			}
		})
	}
	// The MAC is such a value, too.
	mac := strings.TrimSuffix(strings.TrimPrefix(string(macPattern.Find(file)), `"mac": "`), `"`)
	for _, other := range []string{own, encrypted("1", "str", 32), "x", "ENC[", strings.Replace(mac, "type:str", "type:comment", 1),
		strings.Replace(mac, "type:str", "type:int", 1), strings.Replace(mac, "type:str", "type:bytes", 1)} {
		if p.same(t, bytes.Replace(file, []byte(mac), []byte(other), 1)) {
			t.Errorf("it opens with the MAC %q", other)
		}
	}
}

// FuzzLikeTheLibrary seals documents with the library.
func FuzzLikeTheLibrary(f *testing.F) {
	p := newPair(f)
	rules := slices.Sorted(maps.Keys(everyRule))
	for i, name := range slices.Sorted(maps.Keys(everyType)) {
		f.Add(everyType[name], byte(i), false)
		f.Add(everyType[name], byte(i+1), true)
	}
	f.Add("a: [b, 1, ~]\n# c\n", byte(0), true)
	f.Fuzz(func(t *testing.T, plain string, rule byte, yaml bool) {
		var store getsops.Store = jsonStore
		if yaml {
			store = yamlStore
		}
		branches, err := store.LoadPlainFile([]byte(plain))
		if err != nil || len(branches) != 1 || store.HasSopsTopLevelKey(branches[0]) {
			return
		}
		dataKey := newDataKey()
		s := sealed{store: store, plain: plain, dataKey: dataKey, change: everyRule[rules[int(rule)%len(rules)]],
			groups: groupOf(ageKey(t, p.recipient, dataKey))}
		file, err := s.seal()
		if err != nil {
			return
		}
		p.same(t, file, ofOurOwn(t, "hostile text: twice", "hostile text: twice, other case", "hostile text: deep",
			"hostile text: alias bomb", "hostile text: number keys", "hostile text: two in YAML", "hostile text: huge number",
			"partly encrypted: a slow rule", "no JSON: infinite", "arrangement: a deep output")...)
	})
}
