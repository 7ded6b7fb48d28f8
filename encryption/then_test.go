package encryption_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// box is a method for whole files: a word, a key, and what is inside.
type box struct{ key string }

func isBox(file []byte) bool { return bytes.HasPrefix(file, []byte("BOX ")) }

func (b box) Decrypt(_ context.Context, _ driver.Keys, file []byte) ([]byte, error) {
	key, content, ok := bytes.Cut(bytes.TrimPrefix(file, []byte("BOX ")), []byte("\n"))
	switch {
	case !ok:
		return nil, errors.New("the box is damaged")
	case string(key) != b.key:
		return nil, fmt.Errorf("%w: another box", encryption.ErrNoKey)
	}
	return content, nil
}

func (b box) Encrypt(_ context.Context, _ driver.Keys, plain []byte) ([]byte, error) {
	return fmt.Appendf(nil, "BOX %s\n%s", b.key, plain), nil
}

func (b box) Warning() driver.Warning {
	return driver.Warning{Text: "Boxes of key " + b.key + " are old. Use bags."}
}

func withBox() encryption.Registry {
	r := lighttest.Registry()
	r.Methods = append(r.Methods, driver.Block[driver.Method]{
		Table: attr.Table{Name: "box", Attrs: []attr.Attr{{Name: "key", Type: cty.String, Required: true}}},
		Build: func(v attr.Values) (driver.Method, error) { return box{v.String("key")}, nil },

		OwnFormat: isBox,
		Vague:     true,
	})
	return r
}

// Each method has its address in its key.
const boxes = keys + `
method "box" "outer" {
	key  = "1"
	then = method.aes_gcm.a
}
method "box" "other" {
	key  = "1"
	then = "method.aes_gcm.b"
}
method "box" "three" {
	key  = "3"
	then = method.box.outer
}
method "box" "plain" { key = "1" }
method "box" "wrong" {
	key  = "2"
	then = method.aes_gcm.a
}
method "box" "to_u" {
	key  = "1"
	then = method.unencrypted.u
}
method "box" "to_unencrypted" {
	key  = "1"
	then = "unencrypted"
}
method "box" "to_nowhere" {
	key  = "1"
	then = method.aes_gcm.c
}
method "box" "self" {
	key  = "1"
	then = method.box.self
}
method "box" "broken" {}
method "box" "to_broken" {
	key  = "1"
	then = method.box.broken
}
method "box" "circle" {
	key  = "1"
	then = method.box.circle_b
}
method "box" "circle_b" {
	key  = "1"
	then = method.box.circle_c
}
method "box" "circle_c" {
	key  = "1"
	then = method.box.circle_b
}
`

func TestThen(t *testing.T) {
	t.Parallel()
	enc, says := newEncryption(t, withBox(), boxes), golden(t, "then")
	envelope := string(seal(t, keys+`state { method = method.aes_gcm.a }`, state))
	boxed := "BOX 1\n" + envelope
	changed := strings.Replace(boxed, `"serial":7`, `"serial":6`, 1)
	for name, c := range map[string]struct {
		file    string
		methods []string
		want    string // the method that opens the file
		ok      bool
		noKey   bool // the error is that of a wrong key
		step    encryption.Step
	}{
		"inside":           {file: boxed, methods: []string{"method.box.outer"}, want: "method.box.outer", ok: true},
		"plaintext inside": {file: "BOX 1\n" + state, methods: []string{"method.box.plain"}, want: "method.box.plain", ok: true},
		"a plan inside":    {file: "BOX 1\n" + plan, methods: []string{"method.box.plain"}, want: "method.box.plain", ok: true},
		"three layers":     {file: "BOX 3\n" + boxed, methods: []string{"method.box.three"}, want: "method.box.three", ok: true},
		"fallback, inner key": {file: boxed, methods: []string{"method.box.other", "method.box.outer"}, want: "method.box.outer",
			ok: true},
		"fallback, outer key": {file: boxed, methods: []string{"method.box.wrong", "method.box.outer"}, want: "method.box.outer",
			ok: true},
		"fallback, without then": {file: boxed, methods: []string{"method.box.plain", "method.box.outer"}, want: "method.box.outer",
			ok: true},
		"fallback, needless then": {file: "BOX 1\n" + state, methods: []string{"method.box.outer", "method.box.plain"},
			want: "method.box.plain", ok: true},
		"fallback, not a box at all": {file: envelope, methods: []string{"method.box.outer", "method.aes_gcm.a"}, want: "method.aes_gcm.a",
			ok: true},

		"inner key": {file: boxed, methods: []string{"method.box.other"}, noKey: true, step: encryption.StepDecrypt},
		"inner key, third layer": {file: "BOX 3\nBOX 1\n" + string(seal(t, keys+`state { method = method.aes_gcm.b }`, state)),
			methods: []string{"method.box.three"},
			noKey:   true, step: encryption.StepDecrypt},
		"outer key": {file: boxed, methods: []string{"method.box.wrong"}, noKey: true, step: encryption.StepDecrypt},
		"inner serial": {file: changed, methods: []string{"method.box.outer", "method.box.plain"},
			step: encryption.StepDecrypt},
		"inner envelope is damaged": {file: "BOX 1\n" + strings.Replace(envelope, `"meta":`, `"meta":1,"x":`, 1),
			methods: []string{"method.box.outer"}, step: encryption.StepEnvelope},
		"plaintext instead of inner": {file: "BOX 1\n" + state, methods: []string{"method.box.outer"}, step: encryption.StepEnvelope},
		"plaintext, unencrypted allowed": {file: "BOX 1\n" + state, methods: []string{"method.box.outer", "unencrypted"},
			step: encryption.StepEnvelope},
		"envelope without then": {file: boxed, methods: []string{"method.box.plain"}, step: encryption.StepEnvelope},
		"box without then":      {file: "BOX 1\n" + boxed, methods: []string{"method.box.plain"}, step: encryption.StepEnvelope},
		"nothing inside":        {file: "BOX 1\n", methods: []string{"method.box.plain"}, step: encryption.StepDecrypt},
		"no state inside":       {file: "BOX 1\n{}", methods: []string{"method.box.plain"}, step: encryption.StepEnvelope},
		"damaged box":           {file: "BOX 1", methods: []string{"method.box.plain", "method.box.outer"}, step: encryption.StepDecrypt},
		"not in effect":         {file: boxed, methods: []string{"method.aes_gcm.a"}, step: encryption.StepEnvelope},
		"no box":                {file: state, methods: []string{"method.box.plain"}, step: encryption.StepEnvelope},

		"broken":                  {file: boxed, methods: []string{"method.box.broken", "method.box.outer"}, step: encryption.StepConfiguration},
		"broken, and then":        {file: "BOX 1\n" + boxed, methods: []string{"method.box.to_broken"}, step: encryption.StepConfiguration},
		"broken, not its turn":    {file: boxed, methods: []string{"method.box.outer", "method.box.broken"}, want: "method.box.outer", ok: true},
		"broken, plaintext":       {file: state, methods: []string{"method.box.broken"}, step: encryption.StepEnvelope},
		"broken, damaged content": {file: "{", methods: []string{"method.box.broken"}, step: encryption.StepConfiguration},
		"then unencrypted":        {file: boxed, methods: []string{"method.box.to_unencrypted"}, step: encryption.StepConfiguration},
		"then an unencrypted":     {file: boxed, methods: []string{"method.box.to_u"}, step: encryption.StepConfiguration},
		"then nowhere":            {file: boxed, methods: []string{"method.box.to_nowhere"}, step: encryption.StepConfiguration},
		"then itself":             {file: boxed, methods: []string{"method.box.self"}, step: encryption.StepConfiguration},
		"circle":                  {file: boxed, methods: []string{"method.box.circle"}, step: encryption.StepConfiguration},
		"circle in a fallback":    {file: boxed, methods: []string{"method.box.outer", "method.box.self"}, step: encryption.StepConfiguration},
		"circle, file not for box": {file: envelope, methods: []string{"method.aes_gcm.a", "method.box.self"},
			step: encryption.StepConfiguration},
	} {
		for _, enforced := range []bool{false, true} {
			if enforced && c.methods[len(c.methods)-1] == "unencrypted" {
				continue
			}
			target, err := enc.Use(c.methods...)
			var opened *encryption.Opened
			if enforced {
				target = target.Enforce()
			}
			if err == nil {
				opened, err = target.Decrypt(t.Context(), []byte(c.file))
			}
			var failed *encryption.Error
			switch {
			case c.ok && err != nil:
				t.Errorf("%s: %v", name, err)
			case c.ok && (opened.Method != c.want || !opened.Encrypted || opened.UsedFallback != (c.methods[0] != c.want)):
				t.Errorf("%s: got %+v", name, opened)
			case c.ok && string(opened.Data) != state && string(opened.Data) != plan:
				t.Errorf("%s: got %s", name, opened.Data)
			case !c.ok && (!errors.As(err, &failed) || failed.Step != c.step):
				t.Errorf("%s: got %v, want it at %q", name, err, c.step)
			case !c.ok && errors.Is(err, encryption.ErrNoKey) != c.noKey:
				t.Errorf("%s: wraps ErrNoKey: %t: %v", name, !c.noKey, err)
			case !c.ok && !enforced:
				says.Error(t, name, err)
			}
		}
	}
}

func TestThenSeals(t *testing.T) {
	t.Parallel()
	enc := newEncryption(t, withBox(), boxes)
	for _, method := range []string{"method.box.plain", "method.box.outer", "method.box.three"} {
		file, err := use(t, enc, method).Encrypt(t.Context(), []byte(state))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(file, []byte("terraform_version")) != (method == "method.box.plain") {
			t.Errorf("%s: the wrong layers: %s", method, file)
		}
		opened, err := use(t, enc, method).Decrypt(t.Context(), file)
		if err != nil || string(opened.Data) != state {
			t.Errorf("%s: got %+v, %v", method, opened, err)
		}
	}
	says := golden(t, "then, sealing")
	for _, method := range []string{"method.box.plain", "method.box.self", "method.box.to_u"} {
		target, err := enc.Use(method)
		if err == nil {
			_, err = target.Encrypt(t.Context(), []byte("some text"))
		}
		says.Error(t, method, err)
	}
}

// said are the texts of the warnings.
func said(opened *encryption.Opened) string {
	var all []string
	for _, w := range opened.Warnings {
		all = append(all, w.Text)
	}
	return strings.Join(all, "\n")
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	enc := newEncryption(t, withBox(), boxes)
	file, err := use(t, enc, "method.box.three").Encrypt(t.Context(), []byte(state))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := use(t, enc, "method.box.wrong", "method.box.three").Decrypt(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	want := "method.box.three: Boxes of key 3 are old. Use bags.\nmethod.box.outer: Boxes of key 1 are old. Use bags."
	if got := said(opened); got != want {
		t.Errorf("got %q", got)
	}
}

// weak is a method for the data of an envelope, and says so.
type weak struct{ driver.Method }

func (weak) Encrypt(_ context.Context, _ driver.Keys, plain []byte) ([]byte, error) {
	return plain, nil
}

func (weak) Decrypt(_ context.Context, _ driver.Keys, data []byte) ([]byte, error) {
	return data, nil
}

func (weak) Warning() driver.Warning { return driver.Warning{Text: "This hides nothing."} }

// Every method that opened the file is asked, also one for an envelope, alone or
// within another format.
func TestEveryMethodWarns(t *testing.T) {
	t.Parallel()
	r := withBox()
	r.Methods = append(r.Methods, driver.Block[driver.Method]{
		Table: attr.Table{Name: "weak"},
		Build: func(attr.Values) (driver.Method, error) { return weak{}, nil },
	})
	enc := newEncryption(t, r, `method "weak" "w" {}
method "box" "b" {
	key  = "1"
	then = method.weak.w
}`)
	for method, want := range map[string]string{
		"method.weak.w": "method.weak.w: This hides nothing.",
		"method.box.b":  "method.box.b: Boxes of key 1 are old. Use bags.\nmethod.weak.w: This hides nothing.",
	} {
		file, err := use(t, enc, method).Encrypt(t.Context(), []byte(state))
		if err != nil {
			t.Fatal(err)
		}
		opened, err := use(t, enc, method).Decrypt(t.Context(), file)
		if err != nil || said(opened) != want {
			t.Errorf("%s: got %+v, %v", method, opened, err)
		}
	}
}

// What then says is a method, in blocks and in both syntaxes of the text.
func TestThenIsAnAddress(t *testing.T) {
	t.Parallel()
	registry := withBox()
	for text, ok := range map[string]bool{
		`method "box" "x" { 
key = "1"
then = method.aes_gcm.a
}`: true,
		`{"method":{"box":{"x":{"key":"1","then":"method.aes_gcm.a"}}}}`:    true,
		`{"method":{"box":{"x":{"key":"1","then":"${method.aes_gcm.a}"}}}}`: true,
		`{"method":{"box":{"x":{"key":"1","then":null}}}}`:                  true,
		`{"method":{"box":{"x":{"key":"1","then":"aes_gcm.a"}}}}`:           false,
		`{"method":{"box":{"x":{"key":"1","then":["method.aes_gcm.a"]}}}}`:  false,
		`{"method":{"box":{"x":{"key":"1","then":"key_provider.x.y"}}}}`:    false,
		`{"method":{"box":{"x":{"key":"1","then":"${var.gone}"}}}}`:         false,
	} {
		enc, err := encryption.Load(registry, encryption.Code(keys, "keys"), encryption.Code(text, "x"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = use(t, enc, "method.box.x").Encrypt(t.Context(), []byte(state))
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, tables := unstable.Tables(registry)
	table := tables[len(tables)-1]
	for then, ok := range map[string]bool{"method.aes_gcm.a": true, "unencrypted": true, "aes_gcm.a": false} {
		entry := entries.NewEntry("method.box.x", table, map[string]cty.Value{"key": cty.StringVal("1"), "then": cty.StringVal(then)})
		if _, err := entry.Decode(table, nil); (err == nil) != ok {
			t.Errorf("%s: %v", then, err)
		}
	}
	if _, err := encryption.Load(registry, encryption.Code(`method "aes_gcm" "x" { then = method.aes_gcm.a }`, "x")); err == nil {
		t.Error("a method for the data of an envelope must not have then")
	}
}

// A format may keep the form of a state, with encrypted values in it. Without
// the key, these are not to be taken for plaintext.
func TestFormatThatLooksLikeAState(t *testing.T) {
	t.Parallel()
	r := lighttest.Registry()
	r.Methods = append(r.Methods, driver.Block[driver.Method]{
		Table: attr.Table{Name: "veiled"},
		Build: func(attr.Values) (driver.Method, error) { return veiled{}, nil },

		OwnFormat: isVeiled,
		Vague:     true,
	})
	target := use(t, newEncryption(t, r, `method "veiled" "v" {}`), "method.veiled.v", "unencrypted")
	_, err := target.Decrypt(context.Background(), []byte(`{"version":4,"veiled":true,"outputs":{}}`))
	if !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("got %v", err)
	}
	if opened, err := target.Decrypt(context.Background(), []byte(state)); err != nil || opened.Encrypted {
		t.Errorf("a plaintext state: %v", err)
	}
}

// veiled never has the key.
type veiled struct{}

func isVeiled(file []byte) bool { return bytes.Contains(file, []byte(`"veiled"`)) }

func (veiled) Decrypt(context.Context, driver.Keys, []byte) ([]byte, error) {
	return nil, encryption.ErrNoKey
}

// TestVague: what a file is, the errors say only of formats that no other file has.
func TestVague(t *testing.T) {
	t.Parallel()
	const file = "BOX 1\n" + state
	says := golden(t, "vague formats")
	for name, c := range map[string]struct {
		vague           bool
		configured, use string
		reason          error
	}{
		"sure":              {reason: encryption.ErrNotConfigured},
		"vague":             {vague: true, reason: encryption.ErrDamaged},
		"vague, configured": {vague: true, configured: `method "box" "b" { key = "1" }`, reason: encryption.ErrNotConfigured},
		"vague, selected":   {vague: true, configured: `method "box" "b" { key = "1" }`, use: "method.box.b"},
		"sure, selected":    {configured: `method "box" "b" { key = "1" }`, use: "method.box.b"},
	} {
		r := withBox()
		r.Methods[len(r.Methods)-1].Vague = c.vague
		enc := newEncryption(t, r, c.configured)
		target := enc.State()
		if c.use != "" {
			target = use(t, enc, c.use)
		}
		opened, err := target.Decrypt(t.Context(), []byte(file))
		if !errors.Is(err, c.reason) || err == nil && string(opened.Data) != state {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil {
			says.Error(t, name, err)
		}
	}
}
