// Package conformance has files that OpenTofu, Terraform and other tools wrote, with
// the outputs that a reader must find in them, or the fact that it must fail, and runs
// programs on them. The files of the tools are the judge: our own would agree with
// themselves.
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

// Version is that of the suite. It is raised if a case is added or corrected.
func Version() string {
	text, err := files.ReadFile("VERSION")
	if err != nil {
		panic(err) // it is embedded
	}
	version, _, _ := strings.Cut(string(text), " ")
	return version
}

// Case is one file with what must come of it, as case.json says it.
type Case struct {
	Name string `json:"name"`
	// "opentofu_state", "opentofu_plan", "plain_state", "terraform_backend_git", "sops" or
	// "kubeform_module"
	Kind        string      `json:"kind"`
	Description string      `json:"description"`
	MadeFrom    string      `json:"made_from"` // a case that opens, from which this one differs in what must fail
	Expect      string      `json:"expect"`    // "ok" or "error": what the real tool did
	Writes      string      `json:"writes"`    // "error": with these settings, the real tool writes nothing either
	Tool        string      `json:"tool"`      // who wrote the file
	ToolVersion string      `json:"tool_version"`
	Target      string      `json:"target"`    // "state", "plan" or "remote_state_data_sources"
	Selection   []Selection `json:"selection"` // of the latter

	ConfigFile     string   `json:"config"`      // the text of TF_ENCRYPTION
	CodeConfigFile string   `json:"code_config"` // the body of the encryption block that it is merged over
	Programs       []string `json:"programs"`    // scripts for sh that the settings name
	StateFile      string   `json:"state_file"`
	PlanFile       string   `json:"plan_file"`
	OutputsFile    string   `json:"expected_outputs"`

	// Of terraform-backend-git, and of sops: the file as it is in git, what the backend
	// served for it, the environment that it ran with, and files with private keys.
	RawBlob       string            `json:"raw_blob"`
	DecryptedFile string            `json:"decrypted"`
	BackendEnv    map[string]string `json:"backend_env"`
	SecretsFiles  []string          `json:"secrets_files"`

	// Of Kubeform: status.state of a module.
	StatusState string `json:"status_state"`
	SecretKey   string `json:"secret_key_base64"`

	PlainFile     string `json:"plain_state_file"`
	PlainPlanFile string `json:"plain_plan_file"`
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

// All returns every case, in the order of names.
func All() []Case {
	dirs, err := files.ReadDir("cases")
	if err != nil {
		panic(err) // they are embedded
	}
	all := make([]Case, len(dirs))
	for i, d := range dirs {
		all[i] = Get(d.Name())
	}
	return all
}

// Get returns the case called name. It panics if there is none.
func Get(name string) Case {
	c := Case{Name: name}
	c.decode("case.json", &c)
	return c
}

// State returns the file to read.
func (c Case) State() []byte {
	return c.read(cmp.Or(c.StateFile, c.PlanFile, c.RawBlob, c.StatusState))
}

// Plain returns the plaintext as the real tool has it, nil if it is not kept. What
// terraform-backend-git served for a file that was encrypted twice is none.
func (c Case) Plain() []byte {
	switch {
	case c.PlainFile != "" || c.PlainPlanFile != "":
		return c.read(cmp.Or(c.PlainFile, c.PlainPlanFile))
	case c.DecryptedFile != "" && c.ConfigFile == "":
		return c.read(c.DecryptedFile)
	}
	return nil
}

// Config returns the configuration text, "" if there is none.
func (c Case) Config() string { return c.text(c.ConfigFile) }

// CodeConfig returns the text that Config is merged over, "" if there is none.
func (c Case) CodeConfig() string { return c.text(c.CodeConfigFile) }

// Secret returns the file with private keys of this name, "" if there is none.
func (c Case) Secret(name string) string {
	if !slices.Contains(c.SecretsFiles, name) {
		return ""
	}
	return c.text(name)
}

// Files returns what is in the folder of a program: private keys, and programs that the
// settings name.
func (c Case) Files() map[string][]byte {
	all := map[string][]byte{}
	for _, name := range slices.Concat(c.SecretsFiles, c.Programs) {
		all[name] = c.read(name)
	}
	return all
}

// Outputs returns what must be found.
func (c Case) Outputs() (outputs map[string]Output) {
	c.decode(c.OutputsFile, &outputs)
	return outputs
}

// Slow reports whether the key of the file takes long to derive, because it has
// OpenTofu's own number of iterations.
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
		panic(err) // it is embedded, or nobody has it
	}
	return data
}
