package wrap_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
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
	mistakes := wraptest.OpenMistakes(t, "plan")
	for name, tfplan := range map[string][]byte{
		"our backend":                        ours,
		"a store":                            store,
		"our backend and a store":            append(ours[:len(ours):len(ours)], store...),
		"a store, then our backend":          append(store[:len(store):len(store)], ours...),
		"settings that are a number":         of(1),
		"settings that are a list":           of(0x90),
		"settings, and something after them": of(append(packed, 0x80)...),
		"settings that are cut off":          of(0x81),
		"settings that are no number":        of(0x81, 0xa1, 'a', 0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0),
	} {
		o, dir, out := scripted(t, newStore(t), "ready GET", "apply", "tfplan")
		write(t, filepath.Join(dir, "tfplan"), archive(t, string(tfplan)))
		code, err, told := run(t, o)
		mistakes.Ended(t, name, told, code, err)
		if (out.String() == "") != (err != nil) {
			t.Errorf("%s: got %v\n%s", name, err, out)
		}
	}
}

// TestSealedPlans: with a plan block, wrap seals what the child has made of a plan, and
// applies nothing that is not sealed.
func TestSealedPlans(t *testing.T) {
	t.Parallel()
	target := wraptest.Settings(t, wraptest.Sealing+"\nplan { method = method.aes_gcm.m }").Plan()
	sealed, err := target.Encrypt(t.Context(), []byte(plan(t, "http", "")))
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "saved")
	written := planOf(t, "http", "", "a plan")
	write(t, saved, written)
	files := map[string]string{"sealed": string(sealed), "plain": plan(t, "http", ""), "x": "no"}
	mistakes := wraptest.OpenMistakes(t, "sealed plan")
	for name, c := range map[string]struct {
		args  []string
		plain bool   // without a plan block
		made  string // the plan that is there afterwards
	}{
		"made":                 {args: []string{"plan", "-out=p"}, made: "p"},
		"made, after a flag":   {args: []string{"plan", "-refresh=false", "-out=p"}, made: "p"},
		"made, twice":          {args: []string{"plan", "-out=q", "-out=p"}, made: "p"},
		"made, not sealed":     {args: []string{"plan", "-out=p"}, plain: true},
		"made for nowhere":     {args: []string{"plan", "-out=nowhere/p"}},
		"made for a folder":    {args: []string{"plan", "-out=folder"}},
		"none was made":        {args: []string{"plan", "-out=p", "-no-color"}},
		"not asked for":        {args: []string{"plan"}},
		"applied":              {args: []string{"apply", "sealed"}},
		"shown":                {args: []string{"show", "sealed"}},
		"shown, by a flag":     {args: []string{"graph", "-type=plan", "-plan=sealed"}},
		"applied, not sealed":  {args: []string{"apply", "plain"}},
		"applied, no settings": {args: []string{"apply", "sealed"}, plain: true},
	} {
		script := "ready GET save=" + saved
		if name == "none was made" {
			script = "ready GET"
		}
		o, dir, _ := scripted(t, newStore(t), script, c.args...)
		if !c.plain {
			o.Keys.Plan = target
		}
		for path, text := range files {
			write(t, filepath.Join(dir, path), text)
		}
		write(t, filepath.Join(dir, "folder", "x"), "")
		code, err, told := run(t, o)
		mistakes.Ended(t, name, told, code, err)
		made, err := os.ReadFile(filepath.Join(dir, "p"))
		opened, errOpen := target.Decrypt(t.Context(), made)
		if c.made != "" && (err != nil || errOpen != nil || !holds(t, opened.Data, "a plan")) || c.made == "" && !c.plain && err == nil {
			t.Errorf("%s: %v, %v", name, err, errOpen)
		}
		if _, err := os.Stat(filepath.Join(dir, "q")); err == nil {
			t.Errorf("%s: the first of two was made", name)
		}
	}
}

// TestPlansAreApplied: the plan that wrap has written is applied, however well its resources compress. A plan
// that could not be applied is refused when it is made, sealed or not.
func TestPlansAreApplied(t *testing.T) {
	t.Parallel()
	target := wraptest.Settings(t, wraptest.Sealing+"\nplan { method = method.aes_gcm.m }").Plan()
	texts := strings.Repeat(strings.Repeat("0123456789abcdef", 600)+"-", 1500) // one of 9 kB in each of 1,500 resources
	random := make([]byte, 3000)
	_, _ = rand.Read(random)
	mistakes := wraptest.OpenMistakes(t, "plan to apply")
	for name, c := range map[string]struct {
		made   string
		plain  bool // without a plan block
		limit  int64
		wanted bool
	}{
		"large":                     {made: planOf(t, "http", "", texts), wanted: true},
		"large, not sealed":         {made: planOf(t, "http", "", texts), plain: true, wanted: true},
		"too large once sealed":     {made: planOf(t, "http", "", string(random)), limit: 4000},
		"too large":                 {made: planOf(t, "http", "", string(random)), limit: 2000},
		"too large, not sealed":     {made: planOf(t, "http", "", string(random)), limit: 2000, plain: true},
		"no plan":                   {made: archive(t, "x")},
		"another backend":           {made: plan(t, "s3", "")},
		"another backend, in plain": {made: plan(t, "s3", ""), plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := filepath.Join(t.TempDir(), "made")
			write(t, made, c.made)
			o, dir, _ := scripted(t, newStore(t), "ready GET save="+made, "plan", "-out=p")
			again, at, out := scripted(t, newStore(t), "ready GET", "apply", "p")
			if !c.plain {
				o.Keys.Plan, again.Keys.Plan = target, target
			}
			o.Where.Limit, again.Where.Limit = c.limit, c.limit
			code, err, told := run(t, o)
			mistakes.Ended(t, name, strings.ReplaceAll(told, dir, "/module"), code, err)
			if (err == nil) != c.wanted {
				t.Errorf("plan: %v", err)
			}
			saved, err := os.ReadFile(filepath.Join(dir, "p"))
			if err != nil {
				return
			}
			write(t, filepath.Join(at, "p"), string(saved))
			_, err, _ = run(t, again)
			if (err == nil) != c.wanted || (out.String() != "") != c.wanted {
				t.Errorf("apply: %v\n%s", err, out)
			}
		})
	}
}
