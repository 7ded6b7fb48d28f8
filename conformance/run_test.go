package conformance_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// run returns the run of this name.
func run(t *testing.T, name string) conformance.Run {
	t.Helper()
	runs := conformance.Runs()
	i := slices.IndexFunc(runs, func(r conformance.Run) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("there is no run %s", name)
	}
	return runs[i]
}

// plaintext is a script that prints the plaintext of a case, with a text in it changed.
func plaintext(t *testing.T, name, from, to string) string {
	t.Helper()
	plain := string(conformance.Get(name).Plain())
	if !strings.Contains(plain, from) {
		t.Fatalf("the plaintext of %s is %s", name, plain)
	}
	return "cat >/dev/null; cat <<'END'\n" + strings.Replace(plain, from, to, 1) + "\nEND\n"
}

// Whatever a program does wrong is a failure that says what.
func TestJudge(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	const opens, fails = "no_outputs", "err_wrong_passphrase"
	const right = `cat >/dev/null; echo '{"version":4,"serial":1,"lineage":"x","terraform_version":"1.12.6","outputs":{},"resources":[]}'`
	exact, says := plaintext(t, opens, "", ""), testkit.OpenGolden(t, "testdata/mistakes.txt", "readers")
	for name, c := range map[string]struct {
		run, script string
		known       string
		want        conformance.Verdict
	}{
		"the right answer":  {run: opens, script: exact, want: conformance.Passed},
		"the right refusal": {run: fails, script: "echo no >&2; exit 1", want: conformance.Passed},
		"not its business":  {run: opens, script: "exit 77", want: conformance.Skipped},
		"another answer":    {run: "output_zoo", script: right, want: conformance.Failed},
		"an output too many": {run: opens, script: strings.Replace(right, `"outputs":{}`, `"outputs":{"x":{"value":1,"type":"number"}}`, 1),
			want: conformance.Failed},
		"nothing":  {run: opens, script: "cat >/dev/null", want: conformance.Failed},
		"no state": {run: opens, script: "cat", want: conformance.Failed},
		"a refusal": {run: opens, script: "echo 'no such key' >&2; exit 1",
			want: conformance.Failed},
		"an answer too many": {run: fails, script: right, want: conformance.Failed},
		"a refusal, and more": {run: fails, script: "echo '{'; echo no >&2; exit 1",
			want: conformance.Failed},
		"no reason": {run: fails, script: "exit 1", want: conformance.Failed},
		"another exit code": {run: fails, script: "echo panic >&2; exit 2",
			want: conformance.Failed},
		"a signal":          {run: fails, script: "kill -9 $$", want: conformance.Failed},
		"another serial":    {run: opens, script: plaintext(t, opens, `"serial":1`, `"serial":2`), want: conformance.Failed},
		"a member too many": {run: opens, script: plaintext(t, opens, `"version":4`, `"version":4,"more":null`), want: conformance.Failed},
		"no mark": {run: "metadata_alias_unicode", want: conformance.Failed,
			script: plaintext(t, "metadata_alias_unicode", `,"sensitive":true`, "")},
		"another type": {run: "metadata_alias_unicode", want: conformance.Failed,
			script: plaintext(t, "metadata_alias_unicode", `"value":42,"type":"number"`, `"value":"42","type":"string"`)},
		"a set in another order": {run: "output_zoo", want: conformance.Passed,
			script: plaintext(t, "output_zoo", `["a","b","c"],"type":["set"`, `["c","b","a"],"type":["set"`)},
		"no resources": {run: "http_backend_compact", script: plaintext(t, "http_backend_compact", `"resources"`, `"resource_"`),
			want: conformance.Failed},
		"more after it": {run: opens, script: exact + "echo a warning", want: conformance.Failed},
		"too much":      {run: opens, script: "yes | head -c 70000000", want: conformance.Failed},
		"a warning":     {run: opens, script: "echo a warning >&2; " + exact, want: conformance.Passed},
		"its own version": {run: opens, script: plaintext(t, opens, `"terraform_version":"1.12.6"`, `"terraform_version":"9.9.9"`),
			want: conformance.Passed},
		"a difference":           {run: fails, script: right, known: "a reason", want: conformance.Differs},
		"a difference no longer": {run: opens, script: exact, known: "a reason", want: conformance.Failed},
		"nothing to differ in":   {run: opens, script: "exit 77", known: "a reason", want: conformance.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := conformance.Program{Command: []string{"sh", "-c", c.script}, Timeout: 5 * time.Minute}
			if c.known != "" {
				p.Known = map[string]string{c.run: c.known}
			}
			got := p.Judge(t.Context(), run(t, c.run))
			if got.Verdict != c.want || got.Why == "" && (c.want == conformance.Failed || c.want == conformance.Differs) {
				t.Errorf("got %+v", got)
			}
			if got.Why != "" {
				says.Check(t, name, got.Why)
			}
		})
	}
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		p := conformance.Program{Command: []string{"sh", "-c", "sleep 1000 & wait"}, Timeout: 100 * time.Millisecond}
		got := p.Judge(t.Context(), run(t, fails))
		if got.Verdict != conformance.Failed {
			t.Errorf("got %+v", got)
		}
		says.Check(t, "no answer", got.Why)
	})
	t.Run("no program", func(t *testing.T) {
		t.Parallel()
		p := conformance.Program{Command: []string{filepath.Join(t.TempDir(), "none")}, Timeout: time.Minute}
		if got := p.Judge(t.Context(), run(t, fails)); got.Verdict != conformance.Failed {
			t.Errorf("got %+v", got)
		}
	})
}

// A program gets what the case says, in a folder that is empty but for private keys, and
// nothing of Terraform's from outside.
func TestWhatProgramsGet(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	t.Setenv("TF_ENCRYPTION", "from outside")
	t.Setenv("TF_WORKSPACE", "from outside")
	t.Setenv("CASE_READER", "from outside")
	dir := t.TempDir()
	p := conformance.Program{Timeout: 5 * time.Minute,
		Command: []string{"sh", "-c", `cat >"$0/stdin"; ls >"$0/files"; env | grep -E '^(TF|CASE)_[A-Z_]*=' | sort >"$0/environ"; exit 77`, dir}}
	for name, want := range map[string]struct{ files, environ string }{
		"tbg_sops_shamir_age_pgp": {"age_identity.txt\npgp_private.asc\n", "CASE_KIND=sops\nTF_BACKEND_HTTP_ENCRYPTION_PROVIDER=sops\n" +
			"TF_BACKEND_HTTP_SOPS_AGE_RECIPIENTS=age1ggeqwag8mf99ez98xzw9evgzl33w86vc6e8uu2lr4uldhumphdnqd4df3c\n" +
			"TF_BACKEND_HTTP_SOPS_PGP_FP=89D3A372A9E3FDD5DDF2C6B3008C860C9003E8E2\n"},
		"err_no_config":              {environ: "CASE_KIND=opentofu_state\n"},
		"kubeform_module":            {environ: "CASE_KEY=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\nCASE_KIND=kubeform_module\n"},
		"remote_state_selection[fb]": {environ: "CASE_KIND=opentofu_state\nCASE_READER=fb\nTF_ENCRYPTION=key_provider \"pbkdf2\" \"k\" {\n"},
		"merge_code_and_env": {environ: "CASE_CODE=key_provider \"pbkdf2\" \"k\" {\n" +
			"CASE_KIND=opentofu_state\nTF_ENCRYPTION=key_provider \"pbkdf2\" \"k\" {\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := p.Judge(t.Context(), run(t, name)); got.Verdict != conformance.Skipped {
				t.Fatalf("got %+v", got)
			}
			text := func(name string) string {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				return string(data)
			}
			bare, _, _ := strings.Cut(name, "[")
			if text("stdin") != string(conformance.Get(bare).State()) || text("files") != want.files || text("environ") != want.environ {
				t.Errorf("got %.20q, %q, %q", text("stdin"), text("files"), text("environ"))
			}
		})
	}
}

func TestParseKnown(t *testing.T) {
	t.Parallel()
	got, err := conformance.ParseKnown("# why\n\nerr_no_config it is a reason\r\nremote_state_selection[cnt[1]] another\n")
	if err != nil || len(got) != 2 || got["err_no_config"] != "it is a reason" || got["remote_state_selection[cnt[1]]"] != "another" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, text := range []string{"err_no_such_case a reason", "err_no_config", "err_no_config "} {
		if got, err := conformance.ParseKnown(text); err == nil {
			t.Errorf("%q gives %q", text, got)
		}
	}
}

// TestCases: every case says what it is, and has what it names.
func TestCases(t *testing.T) {
	t.Parallel()
	kinds, runs := map[string]int{}, map[string]bool{}
	for _, c := range conformance.All() {
		kinds[c.Kind]++
		checkFolder(t, c)
		if c.Description == "" || c.Tool == "" || c.ToolVersion == "" || (len(c.State()) == 0) != (c.Name == "err_empty_plan") ||
			(c.Expect == "ok") == strings.HasPrefix(c.Name, "err_") {
			t.Errorf("%s: %+v", c.Name, c)
		}
		if c.Expect == "ok" && c.Kind != "opentofu_plan" && c.Outputs() == nil {
			t.Errorf("%s has no outputs", c.Name)
		}
	}
	for _, r := range conformance.Runs() {
		if runs[r.Name] {
			t.Errorf("%s is there twice", r.Name)
		}
		runs[r.Name] = true
	}
	for kind, least := range map[string]int{
		"opentofu_state": 94, "opentofu_plan": 4, "plain_state": 17, "kubeform_module": 8, "terraform_backend_git": 10, "sops": 16,
	} {
		if kinds[kind] < least {
			t.Errorf("%d cases of the kind %s", kinds[kind], kind)
		}
	}
}

// checkFolder: case.json has no members but those that Case documents, and names each file
// that is beside it.
func checkFolder(t *testing.T, c conformance.Case) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("cases", c.Name, "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&conformance.Case{}); err != nil {
		t.Errorf("%s: %v", c.Name, err)
	}
	files, err := os.ReadDir(filepath.Join("cases", c.Name))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := file.Name(); name != "case.json" && !bytes.Contains(text, []byte(`"`+name+`"`)) {
			t.Errorf("%s: nothing names %s", c.Name, name)
		}
	}
	_, _, _, _ = c.Plain(), c.Files(), c.Config(), c.CodeConfig() // which panic if there is no such file
}

// TestReasons: what must fail differs from a case that opens either in the file or in what
// it is read with, and so fails for what its description says.
func TestReasons(t *testing.T) {
	t.Parallel()
	alone := map[string]string{
		"err_not_json": "any text will do", "err_not_a_state": "any JSON will do",
		"err_chain_short_key": "no file that opens has such a key", "err_xor_lengths": "no file that opens has such keys",
		"err_short_passphrase": "no file that opens has such a passphrase; TestShortPassphrase opens it",
	}
	for _, c := range conformance.All() {
		if c.Expect == "ok" || c.Kind == "plain_state" {
			continue
		}
		if (c.MadeFrom == "") != (alone[c.Name] != "") {
			t.Errorf("%s is made from %q, and stands alone because %q", c.Name, c.MadeFrom, alone[c.Name])
		}
		if c.MadeFrom == "" {
			continue
		}
		from := conformance.Get(c.MadeFrom)
		settings := func(c conformance.Case) []any {
			return []any{c.Config(), c.CodeConfig(), c.SecretKey, c.BackendEnv, c.Files()}
		}
		sameFile, sameSettings := bytes.Equal(c.State(), from.State()), reflect.DeepEqual(settings(c), settings(from))
		if sameFile == sameSettings || from.Expect != "ok" || from.Kind != c.Kind {
			t.Errorf("%s is made from %s: the same file is %t, the same settings is %t", c.Name, c.MadeFrom, sameFile, sameSettings)
		}
	}
}

// Whoever changes a case gives the suite another version, so that two people who speak of
// the same version have the same files. (TestSuiteVersion compares it with the releases.)
func TestVersion(t *testing.T) {
	t.Parallel()
	var paths []string
	err := filepath.WalkDir("cases", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	sums := sha256.New() // of what sha256sum prints
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sums, "%x  %s\n", sha256.Sum256(data), path)
	}
	sum := fmt.Sprintf("%x", sums.Sum(nil))
	said, err := os.ReadFile("VERSION")
	if err != nil {
		t.Fatal(err)
	}
	if want := conformance.Version() + " " + sum + "\n"; string(said) != want {
		t.Errorf("the cases have changed: the file VERSION needs a higher number, and the sum %s", sum)
	}
}

// A reader of fifty lines of Python passes what it does not leave out.
func TestMinimalReader(t *testing.T) {
	t.Parallel()
	p := python(t, "adapters/minimal.py")
	runs := testkit.Sample(conformance.Runs())
	var passed atomic.Int32
	t.Cleanup(func() {
		if !t.Failed() && int(passed.Load()) < len(runs)/10 {
			t.Errorf("%d passed", passed.Load())
		}
	})
	for _, r := range runs {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			switch got := p.Judge(t.Context(), r); got.Verdict {
			case conformance.Passed:
				passed.Add(1)
			case conformance.Failed:
				t.Error(got.Why)
			}
		})
	}
}

// python runs a reader that has openssl as its AES.
func python(t *testing.T, path string) conformance.Program {
	t.Helper()
	for _, program := range []string{"python3", "openssl"} {
		if _, err := exec.LookPath(program); err != nil || testing.Short() {
			t.Skip("it requires seconds, python3 and openssl")
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return conformance.Program{Command: []string{"python3", path}, Timeout: 5 * time.Minute}
}
