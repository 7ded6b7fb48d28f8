// Package conformance runs programs on files that OpenTofu, Terraform and other tools wrote. For each file, it has the
// outputs that a reader must find, or says that reading must fail. The expected results come from the real tools,
// because our own code would only agree with itself.
package conformance

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed cases VERSION
var files embed.FS

// Version returns the version of the suite. It is increased when a case is added or corrected.
func Version() string {
	text, err := files.ReadFile("VERSION")
	if err != nil {
		panic(err) // cannot happen, because the file is embedded
	}
	version, _, _ := strings.Cut(string(text), " ")
	return version
}

// Case is a file with its expected result, as described in case.json.
type Case struct {
	Name string `json:"name"`
	// Kind is "opentofu_state", "opentofu_plan", "plain_state", "terraform_backend_git", "sops" or "kubeform_module".
	Kind        string      `json:"kind"`
	Description string      `json:"description"`
	MadeFrom    string      `json:"made_from"` // the case that opens, from which this failing case was derived
	Expect      string      `json:"expect"`    // "ok" or "error": the result of the real tool
	Writes      string      `json:"writes"`    // "error" if the real tool cannot write with these settings either
	Tool        string      `json:"tool"`      // the tool that wrote the file
	ToolVersion string      `json:"tool_version"`
	Target      string      `json:"target"`    // "state", "plan" or "remote_state_data_sources"
	Selection   []Selection `json:"selection"` // for the target remote_state_data_sources

	ConfigFile     string   `json:"config"`      // the text of TF_ENCRYPTION
	CodeConfigFile string   `json:"code_config"` // the body of the encryption block over which TF_ENCRYPTION is merged
	Programs       []string `json:"programs"`    // sh scripts that the settings name
	StateFile      string   `json:"state_file"`
	PlanFile       string   `json:"plan_file"`
	OutputsFile    string   `json:"expected_outputs"`

	// For terraform-backend-git and sops: the file as stored in git, the file as the backend served it, the environment
	// of the backend, and files with private keys.
	RawBlob       string            `json:"raw_blob"`
	DecryptedFile string            `json:"decrypted"`
	BackendEnv    map[string]string `json:"backend_env"`
	SecretsFiles  []string          `json:"secrets_files"`

	// For Kubeform: status.state of a module.
	StatusState string `json:"status_state"`
	SecretKey   string `json:"secret_key_base64"`

	PlainFile     string `json:"plain_state_file"`
	PlainPlanFile string `json:"plain_plan_file"`
}

// Selection is the name of a remote state data source, and the result of reading it.
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

// All returns all cases, sorted by name.
func All() []Case {
	dirs, err := files.ReadDir("cases")
	if err != nil {
		panic(err) // cannot happen, because the files are embedded
	}
	all := make([]Case, len(dirs))
	for i, d := range dirs {
		all[i] = Get(d.Name())
	}
	return all
}

// Get returns the named case. It panics if there is no such case.
func Get(name string) Case {
	c := Case{Name: name}
	c.decode("case.json", &c)
	return c
}

// State returns the file to read.
func (c Case) State() []byte {
	return c.read(cmp.Or(c.StateFile, c.PlanFile, c.RawBlob, c.StatusState))
}

// Plain returns the plaintext that the real tool had, or nil if the case does not include it. For a file that was
// encrypted twice, the file that terraform-backend-git served does not count as plaintext.
func (c Case) Plain() []byte {
	switch {
	case c.PlainFile != "" || c.PlainPlanFile != "":
		return c.read(cmp.Or(c.PlainFile, c.PlainPlanFile))
	case c.DecryptedFile != "" && c.ConfigFile == "":
		return c.read(c.DecryptedFile)
	}
	return nil
}

// Config returns the configuration text, or an empty string if there is none.
func (c Case) Config() string { return c.text(c.ConfigFile) }

// CodeConfig returns the text over which Config is merged, or an empty string if there is none.
func (c Case) CodeConfig() string { return c.text(c.CodeConfigFile) }

// Secret returns the named file with private keys, or an empty string if there is none.
func (c Case) Secret(name string) string {
	if !slices.Contains(c.SecretsFiles, name) {
		return ""
	}
	return c.text(name)
}

// Files returns the files to put into the folder of a program: private keys, and programs that the settings name.
func (c Case) Files() map[string][]byte {
	all := map[string][]byte{}
	for _, name := range slices.Concat(c.SecretsFiles, c.Programs) {
		all[name] = c.read(name)
	}
	return all
}

// Outputs returns the expected outputs.
func (c Case) Outputs() (outputs map[string]Output) {
	c.decode(c.OutputsFile, &outputs)
	return outputs
}

// Slow reports whether deriving the key takes long, because the settings use OpenTofu's default number of iterations.
func (c Case) Slow() bool {
	text := c.CodeConfig() + c.Config()
	return strings.Contains(text, "pbkdf2") && !strings.Contains(text, "iterations")
}

func (c Case) decode(file string, to any) {
	if err := json.Unmarshal(c.read(file), to); err != nil {
		panic(fmt.Errorf("%s of the case %s: %w", file, c.Name, err))
	}
}

func (c Case) text(file string) string {
	if file == "" {
		return ""
	}
	return string(c.read(file))
}

func (c Case) read(file string) []byte {
	data, err := files.ReadFile(path.Join("cases", c.Name, file))
	if err != nil {
		panic(err) // the file is embedded, or the case names a missing file
	}
	return data
}
