package conformance_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestMutants: what breaks a rule does not pass the cases that this rule names. So they prove
// it, whatever the cases of other rules do. Each run tries a tenth of them, and "make soak" all.
func TestMutants(t *testing.T) {
	t.Parallel()
	node := node(t)
	rules, broken := rules(t), map[string]int{}
	all := mutants(t)
	for _, m := range all {
		broken[m.rule]++
	}
	for _, m := range testkit.Sample(all) {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("adapters/node")); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, m.file)
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text := string(source)
			for i := 0; i < len(m.texts); i += 2 {
				if strings.Count(text, m.texts[i]) != 1 {
					t.Fatalf("%s does not have once: %s", m.file, m.texts[i])
				}
				text = strings.Replace(text, m.texts[i], m.texts[i+1], 1)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			p := conformance.Program{Command: []string{node, filepath.Join(dir, "main.js")}, Timeout: 5 * time.Minute}
			runs := slices.DeleteFunc(slices.Concat(conformance.Runs(), conformance.Writes()), func(r conformance.Run) bool {
				name, _, _ := strings.Cut(r.Name, "[")
				return !slices.Contains(rules[m.rule], name)
			})
			slices.SortStableFunc(runs, func(a, b conformance.Run) int { return slow(a) - slow(b) })
			if !slices.ContainsFunc(runs, func(r conformance.Run) bool { return p.Judge(t.Context(), r).Verdict == conformance.Failed }) {
				t.Errorf("passes %v with %q", rules[m.rule], m.texts)
			}
		})
	}
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		if proved := len(rules[rule]) > 0; proved != (broken[rule] > 0) {
			t.Errorf("%d mutants break %s, which names %v", broken[rule], rule, rules[rule])
		}
	}
}

func slow(r conformance.Run) int {
	if name, _, _ := strings.Cut(r.Name, "["); conformance.Get(name).Slow() {
		return 1
	}
	return 0
}

type mutant struct {
	rule, file string
	texts      []string // in pairs: what stands in the file, and what replaces it
}

// mutants reads testdata/mutants.txt.
func mutants(t *testing.T) (all []mutant) {
	t.Helper()
	text, err := os.ReadFile("testdata/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		if strings.HasPrefix(lines[0], "#") {
			continue
		}
		var m mutant
		m.rule, m.file, _ = strings.Cut(lines[0], " ")
		sign := byte('+')
		for _, line := range lines[1:] {
			switch {
			case line[0] == '-' && sign == '+':
				m.texts = append(m.texts, line[1:], "")
			case line[0] == '-':
				m.texts[len(m.texts)-2] += "\n" + line[1:]
			case sign == '-':
				m.texts[len(m.texts)-1] = line[1:]
			default:
				m.texts[len(m.texts)-1] += "\n" + line[1:]
			}
			if line[0] == '-' || line[0] == '+' {
				sign = line[0]
			}
		}
		all = append(all, m)
	}
	return all
}

// node is the path of Node, which CI has.
func node(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("it requires seconds, and programs of some settings require sh")
	}
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("it requires node")
	}
	if err != nil {
		t.Fatal(err)
	}
	return node
}
