package conformance_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestWrites: a program that writes gets states and plans, programs and settings in code,
// and settings that OpenTofu refuses, which are those of a case that differs in them alone.
func TestWrites(t *testing.T) {
	t.Parallel()
	runs := conformance.Writes()
	if len(runs) < 50 {
		t.Errorf("%d runs", len(runs))
	}
	for _, name := range []string{"plan", "merge_code_and_env", "external_method_with_keys", "unencrypted_state_primary"} {
		if !slices.ContainsFunc(runs, func(r conformance.Run) bool { return r.Name == name && r.Opens }) {
			t.Errorf("nothing is written with the settings of %s", name)
		}
	}
	for _, r := range runs {
		c := conformance.Get(r.Name)
		if !strings.HasPrefix(c.Kind, "opentofu_") || r.Opens != (c.Writes == "") {
			t.Errorf("%s: %+v", r.Name, c)
		}
		if !r.Opens && c.MadeFrom != "" && c.Plain() == nil && !bytes.Equal(c.State(), conformance.Get(c.MadeFrom).State()) {
			t.Errorf("%s differs from %s in its file, not in its settings", r.Name, c.MadeFrom)
		}
	}
}

// writer makes files with the settings of pbkdf2_sha256_key16.
type writer struct {
	salt, nonce string
	document    string // of the metadata; "" for the right one
	plain       string // "" for that of the case
}

func (w writer) file(t *testing.T) string {
	t.Helper()
	key, err := pbkdf2.Key(sha256.New, "second throwaway passphrase", []byte(w.salt), 250000, 16)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	if w.plain == "" {
		w.plain = string(conformance.Get("pbkdf2_sha256_key16").Plain())
	}
	b64 := base64.StdEncoding.EncodeToString
	if w.document == "" {
		w.document = `{"salt":"SALT","iterations":250000,"hash_function":"sha256","key_length":16}`
	}
	document := strings.Replace(w.document, "SALT", b64([]byte(w.salt)), 1)
	return fmt.Sprintf(`{"serial":1,"lineage":"5e2e10b3-3150-3875-d395-8f6932812df3","meta":{"key_provider.pbkdf2.k":"%s"},`+
		`"encrypted_data":"%s","encryption_version":"v0"}`,
		b64([]byte(document)), b64(gcm.Seal([]byte(w.nonce), []byte(w.nonce), []byte(w.plain), nil)))
}

// Whatever a writer does wrong is a failure that says what.
func TestJudgeWriters(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	const settings = "pbkdf2_sha256_key16"
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "writers")
	one, two := writer{salt: "one salt", nonce: "a nonce here"}, writer{salt: "two salt", nonce: "another one "}
	right, changed := two.file(t), func(from, to string) string {
		file := one.file(t)
		if !strings.Contains(file, from) {
			t.Fatalf("there is no %s in %s", from, file)
		}
		return strings.Replace(file, from, to, 1)
	}
	const both = `if mkdir "$0/once" 2>/dev/null; then cat "$0/first"; else cat "$0/second"; fi`
	for name, c := range map[string]struct {
		run, script string
		first       string
		verdict     conformance.Verdict
	}{
		"right":          {first: one.file(t), verdict: conformance.Passed},
		"the same nonce": {first: writer{salt: one.salt, nonce: two.nonce}.file(t)},
		"the same salt":  {first: writer{salt: two.salt, nonce: one.nonce}.file(t)},
		"a short salt":   {first: writer{salt: "salt", nonce: one.nonce}.file(t)},
		"another plaintext": {
			first: writer{one.salt, one.nonce, "", string(conformance.Get(settings).Plain()) + " "}.file(t)},
		"more in the metadata": {first: writer{one.salt, one.nonce,
			`{"more":1,"salt":"SALT","iterations":250000,"hash_function":"sha256","key_length":16}`, ""}.file(t)},
		"a member twice": {first: writer{one.salt, one.nonce,
			`{"salt":"","salt":"SALT","iterations":250000,"hash_function":"sha256","key_length":16}`, ""}.file(t)},
		"its own iterations": {first: writer{one.salt, one.nonce,
			`{"salt":"SALT","iterations":250001,"hash_function":"sha256","key_length":16}`, ""}.file(t)},
		"a member too many":    {first: changed(`{"serial"`, `{"more":1,"serial"`)},
		"a member less":        {first: changed(`"serial":1,`, "")},
		"a serial that is not": {first: changed(`"serial":1,`, `"serial":2,`)},
		"the version twice": {
			first: changed(`"encryption_version"`, `"encryption_version":"v0","encryption_version"`)},
		"more metadata": {
			first: changed(`"meta":{`, `"meta":{"old":"e30=",`)},
		"lines":             {first: changed(`"encrypted_data":"`, `"encrypted_data":"\n`)},
		"more after it":     {first: one.file(t) + "\nWarning"},
		"plaintext":         {script: "cat"},
		"once only":         {script: both + `; [ -e "$0/twice" ] && exit 3; mkdir "$0/twice"`, first: one.file(t)},
		"a refusal":         {script: "echo 'no key' >&2; exit 1"},
		"not its business":  {script: "exit 77", verdict: conformance.Skipped},
		"is told":           {script: `[ "$CASE_TASK" = write ] && exit 77`, verdict: conformance.Skipped},
		"as it is":          {run: "unencrypted_state_primary", script: "cat", verdict: conformance.Passed},
		"not as it is":      {run: "unencrypted_state_primary", script: "cat; echo"},
		"the right refusal": {run: "err_low_iterations", script: "echo no >&2; exit 1", verdict: conformance.Passed},
		"no refusal":        {run: "err_low_iterations", script: "cat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{"first": c.first, "second": right} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.run == "" {
				c.run = settings
			}
			if c.script == "" {
				c.script = both
			}
			if c.verdict == "" {
				c.verdict = conformance.Failed
			}
			runs := conformance.Writes()
			i := slices.IndexFunc(runs, func(r conformance.Run) bool { return r.Name == c.run })
			p := conformance.Program{Command: []string{"sh", "-c", c.script, dir}, Timeout: 5 * time.Minute}
			got := p.Judge(t.Context(), runs[i])
			if got.Verdict != c.verdict || (got.Why != "") != (c.verdict == conformance.Failed) {
				t.Errorf("got %+v", got)
			}
			if got.Why != "" {
				says.Check(t, name, got.Why)
			}
		})
	}
}

// What someone made of FORMAT.md alone, with nothing but Node, reads and writes all of
// OpenTofu's files, but for those whose settings call functions. Of those whose keys take
// long to derive, there are few here; the command runs all of them.
func TestNode(t *testing.T) {
	t.Parallel()
	node := node(t)
	script, err := filepath.Abs("adapters/node/main.js")
	if err != nil {
		t.Fatal(err)
	}
	p := conformance.Program{Command: []string{node, script}, Timeout: 5 * time.Minute}
	slow := []string{"err_wrong_passphrase", "fallback_old_key", "fallback_two_levels", "merge_code_and_env", "pbkdf2_chain_pbkdf2_alias",
		"pbkdf2_defaults", "pbkdf2_unicode_passphrase"}
	writes := conformance.Writes()
	every := map[string]int{"read": 1, "write": len(writes) / testkit.Rounds(len(writes))} // or else minutes
	for task, runs := range map[string][]conformance.Run{"read": conformance.Runs(), "write": writes} {
		for i, r := range runs {
			if i%every[task] != 0 {
				continue
			}
			name, _, _ := strings.Cut(r.Name, "[")
			c := conformance.Get(name)
			if !strings.HasPrefix(c.Kind, "opentofu_") || c.Slow() && c.Writes == "" && !slices.Contains(slow, name) {
				continue
			}
			t.Run(task+"/"+r.Name, func(t *testing.T) {
				t.Parallel()
				want := conformance.Passed
				if r.Name == "config_function_call" {
					want = conformance.Skipped
				}
				if got := p.Judge(t.Context(), r); got.Verdict != want {
					t.Errorf("got %+v", got)
				}
			})
		}
	}
}
