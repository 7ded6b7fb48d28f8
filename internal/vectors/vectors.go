// Package vectors holds files that OpenTofu, Terraform and other tools wrote, with
// the outputs that a reader must find in them, or the fact that it must fail. The
// files of the tools are the judge: our own would agree with themselves.
//
// Only tests import it.
package vectors

import (
	"cmp"
	"embed"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata
var files embed.FS

// Vector is one file with what must come of it.
type Vector struct {
	Name        string      `json:"name"`
	Kind        string      `json:"kind"` // "opentofu_state", "plain_state", "terraform_backend_git" or "kubeform_module"
	Description string      `json:"description"`
	Expect      string      `json:"expect"`    // "ok" or "error": what the real tool did
	Target      string      `json:"target"`    // "state" or "remote_state_data_sources"
	Selection   []Selection `json:"selection"` // of the latter

	ConfigFile     string `json:"config"`      // the text of TF_ENCRYPTION
	CodeConfigFile string `json:"code_config"` // the body of the encryption block that it is merged over
	StateFile      string `json:"state_file"`
	OutputsFile    string `json:"expected_outputs"`

	// Of terraform-backend-git: the file as it is in git, what the real backend
	// served for it, and the environment that it ran with.
	RawBlob       string            `json:"raw_blob"`
	DecryptedFile string            `json:"decrypted"`
	BackendEnv    map[string]string `json:"backend_env"`

	// Of Kubeform: status.state of a module, and what is in it.
	StatusState string `json:"status_state"`
	PlainFile   string `json:"plain_state_file"`
	SecretKey   string `json:"secret_key_base64"`
}

// Selection is the name of a remote state data source, and what became of it.
type Selection struct {
	Name   string `json:"name"`
	Expect string `json:"expect"`
}

// Output is an expected output, as in a state file.
type Output struct {
	Sensitive bool            `json:"sensitive"`
	Type      json.RawMessage `json:"type"`
	Value     json.RawMessage `json:"value"`
}

// All returns every vector.
func All(tb testing.TB) []Vector {
	tb.Helper()
	dirs, err := files.ReadDir("testdata")
	if err != nil {
		tb.Fatal(err)
	}
	var out []Vector
	for _, d := range dirs {
		out = append(out, Get(tb, d.Name()))
	}
	return out
}

// Get returns the vector called name.
func Get(tb testing.TB, name string) Vector {
	tb.Helper()
	var v Vector
	if err := json.Unmarshal(read(tb, name, "case.json"), &v); err != nil {
		tb.Fatal(err)
	}
	return v
}

// State returns the file to read.
func (v Vector) State(tb testing.TB) []byte {
	tb.Helper()
	return read(tb, v.Name, cmp.Or(v.StateFile, v.RawBlob, v.StatusState))
}

// Plain returns what the real tool decrypted the file to, where it is kept.
func (v Vector) Plain(tb testing.TB) []byte {
	tb.Helper()
	return read(tb, v.Name, cmp.Or(v.DecryptedFile, v.PlainFile))
}

// Config returns the configuration text, "" when there is none.
func (v Vector) Config(tb testing.TB) string { return v.text(tb, v.ConfigFile) }

// CodeConfig returns the text that Config is merged over, "" when there is none.
func (v Vector) CodeConfig(tb testing.TB) string { return v.text(tb, v.CodeConfigFile) }

// Outputs returns what must be found.
func (v Vector) Outputs(tb testing.TB) map[string]Output {
	tb.Helper()
	var out map[string]Output
	if err := json.Unmarshal(read(tb, v.Name, v.OutputsFile), &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// SkipSlow leaves out, in -short, most of the files whose keys take long to
// derive: those with OpenTofu's own number of iterations.
func (v Vector) SkipSlow(tb testing.TB) {
	tb.Helper()
	text := v.CodeConfig(tb) + v.Config(tb)
	slow := strings.Contains(text, "pbkdf2") && !strings.Contains(text, "iterations")
	sample := []string{"fallback_two_levels", "merge_code_and_env", "err_wrong_passphrase", "err_short_passphrase", "err_bad_base64"}
	if testing.Short() && slow && !slices.Contains(sample, v.Name) {
		tb.Skip("deriving its key takes long")
	}
}

func (v Vector) text(tb testing.TB, file string) string {
	if file == "" {
		return ""
	}
	return string(read(tb, v.Name, file))
}

func read(tb testing.TB, name, file string) []byte {
	tb.Helper()
	b, err := files.ReadFile(path.Join("testdata", name, file))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
