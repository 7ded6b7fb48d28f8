package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// These are the exit codes of a program, besides 0.
const (
	exitRefused = 1  // the file cannot or must not be opened
	exitSkipped = 77 // the program does not support this kind of file
	killed      = -1 // killed by a signal, without an exit code
)

// Run is one call of a program, for a case or one of its selections.
type Run struct {
	Name   string // the case name, with the reader in brackets
	Reader string // the name of a remote state data source, or "" for the configuration's own state
	Opens  bool   // whether the real tool opened the file or, for a writing run, whether the program must write

	of    Case
	plain []byte // the plaintext to write, or nil for a reading run
}

// Runs returns all runs, in the order of the cases.
func Runs() (runs []Run) {
	for _, c := range All() {
		if len(c.Selection) == 0 {
			runs = append(runs, Run{Name: c.Name, Opens: c.Expect == "ok", of: c})
		}
		for _, s := range c.Selection {
			runs = append(runs, Run{Name: c.Name + "[" + s.Name + "]", Reader: s.Name, Opens: s.Expect == "ok", of: c})
		}
	}
	return runs
}

// Verdict is the outcome of a run.
type Verdict string

// These are the possible verdicts.
const (
	Passed  Verdict = "ok"
	Failed  Verdict = "FAILED"
	Skipped Verdict = "skipped"
	Differs Verdict = "differs" // a known difference
)

// Result is a verdict with its reason, which is empty for [Passed].
type Result struct {
	Verdict Verdict
	Why     string
}

// Program is the program under test.
type Program struct {
	Command []string          // the program or its adapter, and the first arguments
	Timeout time.Duration     // the time limit for one call
	Known   map[string]string // the reasons for known differences, by run name
}

// Judge runs the program and compares its result with the result of the real tool.
func (p Program) Judge(ctx context.Context, r Run) Result {
	result := Result{Verdict: Passed}
	switch err := p.check(ctx, r); {
	case errors.Is(err, errSkipped):
		result.Verdict = Skipped
	case err != nil:
		result = Result{Failed, err.Error()}
	}
	switch why, known := p.Known[r.Name]; {
	case known && result.Verdict == Failed:
		return Result{Differs, why}
	case known:
		return Result{Failed, "the case is listed as a known difference, but does not differ"}
	}
	return result
}

var errSkipped = errors.New("the program is not for files of this kind")

// answer is the result of running a program.
type answer struct {
	code           int
	stdout, stderr []byte
}

func (p Program) check(ctx context.Context, r Run) error {
	a, err := p.call(ctx, r)
	said := outside.Line(strings.TrimSpace(string(a.stderr)), maxSaid)
	switch {
	case err != nil:
		return err
	case a.code == exitSkipped:
		return errSkipped
	case a.code == killed:
		return fmt.Errorf("a signal ended the program: %s", said)
	case a.code != 0 && a.code != exitRefused:
		return fmt.Errorf("the exit code %d is neither an answer nor a refusal: %s", a.code, said)
	case a.code == exitRefused && len(a.stdout) > 0:
		return fmt.Errorf("the program refused the file, but wrote %d bytes to standard output", len(a.stdout))
	case a.code == exitRefused && said == "":
		return errors.New("the program refused the file without a reason on standard error")
	case a.code == exitRefused && r.Opens && r.plain != nil:
		return fmt.Errorf("the program must write with these settings, but refused: %s", said)
	case a.code == exitRefused && r.Opens:
		return fmt.Errorf("the program must open the file (%s), but refused: %s", r.of.Description, said)
	case a.code == 0 && !r.Opens && r.plain != nil:
		return fmt.Errorf("the program must not write this file: %s", r.of.Description)
	case a.code == 0 && r.plain != nil:
		return p.written(ctx, r, a.stdout)
	case a.code == 0 && !r.Opens:
		return fmt.Errorf("the program must not open the file: %s", r.of.Description)
	case a.code == 0:
		return r.of.compare(a.stdout)
	}
	return nil
}

// compare returns an error that says how the plaintext differs from the real tool's plaintext.
func (c Case) compare(plain []byte) error {
	if c.Kind == "opentofu_plan" {
		if !bytes.Equal(plain, c.Plain()) {
			return errors.New("the output is not the plan")
		}
		return nil
	}
	state, err := tfstate.Parse(plain)
	if err != nil {
		return fmt.Errorf("the output is not a valid state: %w", err)
	}
	if err := SameOutputs(state, c.Outputs()); err != nil || c.Plain() == nil {
		return err
	}
	return sameDocument(plain, c.Plain())
}

// sameDocument compares two states as JSON. White space and the order of members do not matter, and numbers are
// compared by value. The comparison leaves out outputs, which were already compared by type, and the Terraform version,
// because programs that read and rewrite a state set their own version.
func sameDocument(got, want []byte) error {
	var members [2]map[string]cty.Value
	for i, document := range [][]byte{got, want} {
		typ, err := ctyjson.ImpliedType(document)
		if err != nil {
			return err
		}
		value, err := ctyjson.Unmarshal(document, typ)
		if err != nil {
			return err
		}
		members[i] = value.AsValueMap()
		delete(members[i], "outputs")
		delete(members[i], "terraform_version")
	}
	for _, name := range slices.Sorted(maps.Keys(members[0])) {
		if _, expected := members[1][name]; !expected {
			return fmt.Errorf("the plaintext has no member %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members[1])) {
		if value, found := members[0][name]; !found || !value.RawEquals(members[1][name]) {
			return fmt.Errorf("the member %q differs from the plaintext", name)
		}
	}
	return nil
}

const (
	maxSaid    = 300      // maximum length of program errors shown, in bytes
	maxPrinted = 64 << 20 // maximum size of a state, in bytes; states in the cases are far smaller
)

// call starts the program in its own folder.
func (p Program) call(ctx context.Context, r Run) (a answer, err error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return a, err
	}
	defer os.RemoveAll(dir)
	for name, content := range r.of.Files() {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return a, err
		}
	}
	input := r.plain
	if input == nil {
		input = r.of.State()
	}
	program := world.Program{Args: p.Command, Environ: r.environ(), Dir: dir, Stdin: bytes.NewReader(input),
		Patience: p.Timeout, Limit: maxPrinted}
	a.stdout, a.stderr, err = program.Run(ctx)
	if exit, ended := errors.AsType[*exec.ExitError](err); ended {
		a.code, err = exit.ExitCode(), nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("there was no answer within %s", p.Timeout)
	}
	return a, err
}

// environ returns the environment of this process, without the variables that Terraform and OpenTofu would read, and
// with the variables that describe the run.
func (r Run) environ() world.Environ {
	environ := world.Here().Environ().Only(func(name string) bool {
		return !strings.HasPrefix(name, "TF_") && !strings.HasPrefix(name, "CASE_")
	})
	task := ""
	if r.plain != nil {
		task = "write"
	}
	for _, pair := range []struct{ name, value string }{
		{"CASE_TASK", task},
		{"CASE_KIND", r.of.Kind}, {"CASE_READER", r.Reader}, {"CASE_CODE", r.of.CodeConfig()}, {"CASE_KEY", r.of.SecretKey},
		{"TF_ENCRYPTION", r.of.Config()},
	} {
		if pair.value != "" {
			environ = environ.With(pair.name + "=" + pair.value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.of.BackendEnv)) {
		environ = environ.With(name + "=" + r.of.BackendEnv[name])
	}
	return environ
}

// SameOutputs compares the outputs of a state with the outputs that the real tool found, by value and type, as OpenTofu
// would decode them.
func SameOutputs(state *tfstate.State, want map[string]Output) error {
	for _, name := range slices.Sorted(maps.Keys(state.Outputs)) {
		if _, expected := want[name]; !expected {
			return fmt.Errorf("there is no output %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		output, found := state.Outputs[name]
		if !found {
			return fmt.Errorf("the output %q is missing", name)
		}
		if err := sameOutput(output, want[name]); err != nil {
			return fmt.Errorf("the output %q: %w", name, err)
		}
	}
	return nil
}

func sameOutput(got tfstate.Output, want Output) error {
	value, err := got.Value()
	if err != nil {
		return err
	}
	typ, err := ctyjson.UnmarshalType(want.Type)
	if err != nil {
		return err
	}
	expected, err := ctyjson.Unmarshal(want.Value, typ)
	switch {
	case err != nil:
		return err
	case got.Sensitive != want.Sensitive:
		return fmt.Errorf("sensitive is %t", got.Sensitive)
	case !value.RawEquals(expected):
		return fmt.Errorf("got %.100s, want %.100s", fmt.Sprintf("%#v", value), fmt.Sprintf("%#v", expected))
	}
	return nil
}

// ParseKnown parses a list of known differences. Each line has the name of a run, a space and the reason. Lines that
// begin with # are comments.
func ParseKnown(text string) (map[string]string, error) {
	names := map[string]bool{}
	for _, r := range Runs() {
		names[r.Name] = true
	}
	known := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, why, _ := strings.Cut(line, " ")
		if !names[name] || why == "" {
			return nil, fmt.Errorf("%q: this line is not the name of a case, a space and a reason", line)
		}
		known[name] = strings.TrimSpace(why)
	}
	return known, nil
}
