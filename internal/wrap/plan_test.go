package wrap_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// TestPlanWithAStore: a plan that has a state store keeps its state there, whatever it
// says of a backend.
func TestPlanWithAStore(t *testing.T) {
	t.Parallel()
	packed, err := msgpack.Marshal(cty.EmptyObjectVal, cty.EmptyObject)
	if err != nil {
		t.Fatal(err)
	}
	message := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	ours := message(13, append(message(1, []byte("http")), message(2, message(1, packed))...))
	store := message(29, message(1, []byte("x")))
	of := func(settings ...byte) []byte {
		return message(13, append(message(1, []byte("http")), message(2, message(1, settings))...))
	}
	const elsewhere, unreadable = "the backend is not http", "it cannot be read"
	for name, c := range map[string]struct {
		tfplan []byte
		err    string
	}{
		"our backend":                        {tfplan: ours},
		"a store":                            {tfplan: store, err: elsewhere},
		"our backend and a store":            {tfplan: append(ours[:len(ours):len(ours)], store...), err: elsewhere},
		"a store, then our backend":          {tfplan: append(store[:len(store):len(store)], ours...), err: elsewhere},
		"settings that are a number":         {tfplan: of(1), err: unreadable},
		"settings that are a list":           {tfplan: of(0x90), err: unreadable},
		"settings, and something after them": {tfplan: of(append(packed, 0x80)...), err: unreadable},
		"settings that are cut off":          {tfplan: of(0x81), err: unreadable},
		"settings that are no number": {
			tfplan: of(0x81, 0xa1, 'a', 0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0), err: unreadable,
		},
	} {
		o, dir, out := scripted(t, newStore(t), "ready GET", "apply", "tfplan")
		write(t, filepath.Join(dir, "tfplan"), archive(t, string(c.tfplan)))
		_, err := wrap.Run(t.Context(), o)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || (out.String() == "") != (c.err != "") {
			t.Errorf("%s: got %v\n%s", name, err, out)
		}
	}
}

// TestSealedPlans: with a plan block, wrap seals what the child has made of a plan, and
// applies nothing that is not sealed.
func TestSealedPlans(t *testing.T) {
	t.Parallel()
	target := wrap.SettingsOf(t, wrap.Sealing+"\nplan { method = method.aes_gcm.m }").Plan()
	sealed, err := target.Encrypt(t.Context(), []byte(plan(t, "http", "")))
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "saved")
	written := archive(t, "a plan")
	write(t, saved, written)
	files := map[string]string{"sealed": string(sealed), "plain": plan(t, "http", ""), "x": "no"}
	for name, c := range map[string]struct {
		args     []string
		plain    bool   // without a plan block
		made     string // the plan that is there afterwards
		err, say string
	}{
		"made":                 {args: []string{"plan", "-out=p"}, made: "p", say: "encrypted; the command above does not apply it, wrap does"},
		"made, after a flag":   {args: []string{"plan", "-refresh=false", "-out=p"}, made: "p"},
		"made, twice":          {args: []string{"plan", "-out=q", "-out=p"}, made: "p"},
		"made, not sealed":     {args: []string{"plan", "-out=p"}, plain: true, say: "the plan will not be encrypted"},
		"made for nowhere":     {args: []string{"plan", "-out=nowhere/p"}, err: "cannot be saved"},
		"made for a folder":    {args: []string{"plan", "-out=folder"}, err: "cannot be saved: it is not a regular file"},
		"none was made":        {args: []string{"plan", "-out=p", "-no-color"}},
		"not asked for":        {args: []string{"plan"}},
		"applied":              {args: []string{"apply", "sealed"}, say: `/sealed"`},
		"shown":                {args: []string{"show", "sealed"}, say: `/sealed"`},
		"shown, by a flag":     {args: []string{"graph", "-type=plan", "-plan=sealed"}, say: `/sealed"`},
		"applied, not sealed":  {args: []string{"apply", "plain"}, err: `the file "plain": `},
		"applied, no settings": {args: []string{"apply", "sealed"}, plain: true, err: "if it is a plan, the settings require a plan block"},
	} {
		script := "ready arguments GET save=" + saved
		if name == "none was made" {
			script = "ready GET"
		}
		o, dir, out := scripted(t, newStore(t), script, c.args...)
		if !c.plain {
			o.Plan = target
		}
		for path, text := range files {
			write(t, filepath.Join(dir, path), text)
		}
		write(t, filepath.Join(dir, "folder", "x"), "")
		_, err := wrap.Run(t.Context(), o)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || !strings.Contains(out.String(), c.say) {
			t.Errorf("%s: got %v\n%s", name, err, out)
		}
		made, err := os.ReadFile(filepath.Join(dir, "p"))
		opened, errOpen := target.Decrypt(t.Context(), made)
		if c.made != "" && (err != nil || errOpen != nil || string(opened.Data) != written) || c.made == "" && !c.plain && err == nil {
			t.Errorf("%s: %v, %v", name, err, errOpen)
		}
		if _, err := os.Stat(filepath.Join(dir, "q")); err == nil {
			t.Errorf("%s: the first of two was made", name)
		}
	}
}
