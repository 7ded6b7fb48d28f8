package builtin_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestShortestProgram: what the documentation shows is what runs.
func TestShortestProgram(t *testing.T) {
	t.Parallel()
	_, example, _ := strings.Cut(readText(t, "example_test.go"), "\nfunc Example() {\n")
	example, _, _ = strings.Cut(example, "\n}\n")
	var statements []string
	for _, line := range lines(example) {
		if strings.Contains(line, ", err := ") && !strings.Contains(line, "os.ReadFile") {
			statements = append(statements, line)
		}
	}
	if len(statements) != 4 {
		t.Fatalf("the example has the statements %q", statements)
	}
	// For a program that reads plain states today, one call does both.
	const open = "opened, err := encryption.Open(ctx, light.Registry(), file, encryption.Environment(os.LookupEnv))"
	for path, wanted := range map[string][]string{
		"testdata/outside/main.go": statements, "../README.md": statements,
		"../docs/guides/go-library.md": append(slices.Clip(statements), open), "../encryption/encryption.go": append(statements[2:], open),
	} {
		there := lines(readText(t, path))
		for _, statement := range wanted {
			if !slices.Contains(there, statement) {
				t.Errorf("%s lacks %s", path, statement)
			}
		}
	}
}

// lines returns the lines of a text without indentation, as those of a comment
// in Go have it too, and without comments behind them.
func lines(text string) []string {
	all := strings.Split(text, "\n")
	for i, line := range all {
		line, _, _ = strings.Cut(strings.TrimLeft(line, "/\t"), " // ")
		all[i] = strings.TrimSpace(line)
	}
	return all
}

func readText(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
