// Package clitest lets the real OpenTofu and Terraform write states through their backends, for tests that read the
// states.
package clitest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
)

// CLI is a program that writes states.
type CLI struct {
	Name      string // tofu, tofu-encrypted or terraform
	Encrypted bool   // whether it encrypts the states it writes

	path string
}

// All returns the available programs: the OpenTofu that STATECRYPT_TOFU names, with and without encryption, and the
// terraform in PATH if its version is at least 1.6. Backends in older versions have other arguments. If there is no
// program, or with -short, the test is skipped.
func All(tb testing.TB) []CLI {
	tb.Helper()
	if testing.Short() {
		tb.Skip("a CLI that writes a state needs seconds")
	}
	var found []CLI
	if path := os.Getenv("STATECRYPT_TOFU"); path != "" {
		tofu := CLI{Name: "tofu", path: path}
		found = append(found, tofu, tofu.Encrypting())
	}
	if path, err := exec.LookPath("terraform"); err == nil && minor(tb, path) >= 6 {
		found = append(found, CLI{Name: "terraform", path: path})
	}
	if len(found) == 0 {
		tb.Skip("there is neither STATECRYPT_TOFU nor terraform in PATH")
	}
	return found
}

// minor returns the minor version of Terraform, such as 11 for version 1.11.4.
func minor(tb testing.TB, path string) int {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), path, "version")
	cmd.Env = append(world.World{}.Environ().Pairs(), "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+os.DevNull)
	out, err := cmd.Output()
	if err != nil {
		tb.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscanf(string(out), "Terraform v1.%d.", &n); err != nil {
		tb.Fatalf("%q: %v", out, err)
	}
	return n
}

// Tofu returns the OpenTofu that STATECRYPT_TOFU names. If there is none, or with -short, the test is skipped.
func Tofu(tb testing.TB) CLI {
	tb.Helper()
	return CLI{Name: "tofu", path: testkit.Program(tb, "STATECRYPT_TOFU")}
}

// Encrypting returns the same program, which must be OpenTofu, with encryption.
func (c CLI) Encrypting() CLI { return CLI{Name: c.Name + "-encrypted", Encrypted: true, path: c.path} }

// Project is a folder with a configuration in which a program works.
type Project struct {
	CLI
	Env []string // the program's environment, to which a test may append

	dir       string
	workspace string
	large     string            // the value of the output "large"
	applied   map[string]string // by workspace, the value of that output there
}

// Project sets up a folder. The backend argument is the content of the terraform block. The environment contains only
// the variables that every program needs, and env.
func (c CLI) Project(tb testing.TB, backend string, env ...string) *Project {
	tb.Helper()
	home := tb.TempDir()
	p := &Project{CLI: c, dir: tb.TempDir(), workspace: "default", applied: map[string]string{}}
	p.Env = append(cloudtest.Isolated(world.World{}.Environ().Pairs()), "HOME="+home, "USERPROFILE="+home,
		"TF_CLI_CONFIG_FILE="+os.DevNull, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1")
	p.Env = append(p.Env, env...)
	if c.Encrypted {
		p.Env = append(p.Env, "TF_ENCRYPTION="+encryptionText)
	}
	write(tb, p.dir, "main.tf", "terraform {\n"+backend+"\n}\n"+outputs)
	write(tb, p.dir, "large", "")
	p.Run(tb, "init")
	return p
}

// Run runs the program, and returns its output.
func (p *Project) Run(tb testing.TB, args ...string) []byte {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), p.path, args...) //nolint:gosec // the program that the test names
	var problems bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = p.dir, p.Env, &problems
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s%s", p.Name, strings.Join(args, " "), err, out, problems.Bytes())
	}
	return out
}

// Apply writes the state of a workspace. It creates the workspace if necessary.
func (p *Project) Apply(tb testing.TB, workspace string) {
	tb.Helper()
	if workspace != p.workspace {
		p.Run(tb, "workspace", "select", "-or-create", workspace)
		p.workspace = workspace
	}
	p.Run(tb, "apply", "-auto-approve")
	p.applied[workspace] = p.large
}

// Enlarge makes each state applied from now on at least size bytes large, even when compressed.
func (p *Project) Enlarge(tb testing.TB, size int) {
	tb.Helper()
	noise := make([]byte, size*9/8)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never fails
	p.large = base64.StdEncoding.EncodeToString(noise)
	write(tb, p.dir, "large", p.large)
}

// Workspaces are the workspaces that [Project.RoundTrip] writes.
var Workspaces = []string{"default", "staging-1"}

// RoundTrip writes the states of both workspaces. After each write, it checks that every state written so far is read
// back as the server holds it and as it was written.
func (p *Project) RoundTrip(tb testing.TB, read, held func(workspace string) []byte) {
	tb.Helper()
	for i, written := range Workspaces {
		p.Apply(tb, written)
		for _, workspace := range Workspaces[:i+1] {
			p.Compare(tb, workspace, read(workspace), held(workspace))
		}
	}
}

// Compare checks that the state read from a workspace is the state the server holds, and the state that was written.
func (p *Project) Compare(tb testing.TB, workspace string, read, held []byte) {
	tb.Helper()
	if len(held) == 0 || !bytes.Equal(read, held) {
		tb.Errorf("%s: %d bytes were read, and the server holds %d, or others", workspace, len(read), len(held))
	}
	p.Check(tb, workspace, read)
}

// Check checks that the state read from a workspace is the state that was written.
func (p *Project) Check(tb testing.TB, workspace string, read []byte) {
	tb.Helper()
	CheckOutputs(tb, read, p.Encrypted, workspace, p.applied[workspace])
}

// CheckShown checks that the program itself accepts the state read from a workspace, and shows the outputs that were
// written.
func (p *Project) CheckShown(tb testing.TB, workspace string, read []byte) {
	tb.Helper()
	local := tb.TempDir()
	write(tb, local, "terraform.tfstate", string(read))
	shown := fmt.Sprintf(`{"version":4,"terraform_version":"1.0.0","serial":1,"lineage":"l","resources":[],"outputs":%s}`,
		p.Run(tb, "-chdir="+local, "output", "-json"))
	compare(tb, parsed(tb, []byte(shown)), wanted(workspace, p.applied[workspace]))
}

func write(tb testing.TB, dir, name, text string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}
