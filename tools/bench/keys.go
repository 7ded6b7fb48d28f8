package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	oldPassphrase = "staple battery horse correct"
	ofRun         = 20 // number of files that one run seals
)

// worded returns settings with a passphrase, and OpenTofu's defaults for everything else.
func worded(of string) string { return strings.ReplaceAll(encrypted, passphrase, of) }

// keysRow rotates 20 files, each with its own salt, and reads them afterwards. Most of the cost is key derivation.
func (b *bench) keysRow() ([]line, error) {
	dir := b.path("keys")
	if err := os.MkdirAll(filepath.Join(dir, "old"), 0o700); err != nil {
		return nil, err
	}
	var names, paths []string
	for i := range ofRun {
		name := fmt.Sprintf("s%02d.tfstate", i)
		if _, err := b.sealAs("keys/old/"+name, worded(oldPassphrase), state(oneOutput, 10_000)); err != nil {
			return nil, err
		}
		names, paths = append(names, name), append(paths, filepath.Join(dir, name))
	}
	for file, text := range map[string]string{"old.hcl": worded(oldPassphrase), "new.hcl": worded(passphrase)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	statecrypt := func(name string, args ...string) command {
		return command{name: name, dir: dir, args: append([]string{b.path("statecrypt")}, args...)}
	}
	rotate := statecrypt("rotate 20", append([]string{"rotate", "-from", "old.hcl", "-to", "new.hcl"}, names...)...)
	rotate.args = append([]string{"sh", "-c", `cp old/* . && exec "$@"`, "sh"}, rotate.args...)
	one := statecrypt("verify 1", "verify", "-config", "old.hcl", filepath.Join("old", names[0]))
	all := statecrypt("verify 20", append([]string{"verify", "-config", "new.hcl"}, names...)...)
	m, err := b.compare(rotate, one, all)
	if err != nil {
		return nil, err
	}
	plans, err := b.plans("twenty states of one rotate", paths...)
	if err != nil {
		return nil, err
	}
	return []line{
		cpu("rotate 20 files, each with a key of its own: beside verify of one", m[0], cost{}, m[1], cost{}, 25),
		cpu("verify the 20 files after that: beside verify of one", m[2], cost{}, m[1], cost{}, 2.5),
		cpu("plan with these 20 encrypted states over one without: beside tofu", plans[0], plans[1], plans[2], plans[3], 0.06),
		cpu("the same, with what a plan without states takes", plans[0], cost{}, plans[2], cost{}, 0),
	}, nil
}

// encryptedApplyRow applies a module with one resource and a key derived from a passphrase. It compares Terraform under
// wrap with OpenTofu's own encryption.
func (b *bench) encryptedApplyRow() ([]line, error) {
	var commands []command
	for _, changes := range []bool{false, true} {
		here, err := b.encryptedApply("wrap", changes, nil, b.path("statecrypt"), "wrap", "-config", "keys.hcl", "--", b.terraform)
		if err != nil {
			return nil, err
		}
		peer, err := b.encryptedApply("tofu", changes, []string{"TF_ENCRYPTION=" + encrypted}, b.tofu)
		if err != nil {
			return nil, err
		}
		commands = append(commands, here, peer)
	}
	m, err := b.compare(commands...)
	if err != nil {
		return nil, err
	}
	return []line{
		cpu("apply without changes, a small state encrypted in a file, under wrap: beside tofu with its own encryption", m[0], cost{}, m[1],
			cost{}, 0.36),
		cpu("apply with a change, the same", m[2], cost{}, m[3], cost{}, 0.65),
	}, nil
}

// encryptedApply creates a module and applies it once. The returned command applies it again. If changes is true, each
// run of the command uses a new value.
func (b *bench) encryptedApply(name string, changes bool, env []string, program ...string) (command, error) {
	name = fmt.Sprintf("encrypted apply %s %t", name, changes)
	dir := b.path(strings.ReplaceAll(name, " ", "_"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return command{}, err
	}
	backend := ""
	if env == nil {
		backend = "terraform {\n  backend \"http\" {}\n}\n"
	}
	for file, text := range map[string]string{
		"main.tf":  backend + "variable \"v\" { default = \"\" }\nresource \"terraform_data\" \"x\" {\n  input = var.v\n}\n",
		"keys.hcl": "backend \"file\" {}\n" + encrypted,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return command{}, err
		}
	}
	made := command{name: name, dir: dir, env: append(env, "TF_CLI_CONFIG_FILE="+os.DevNull)}
	for _, words := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
		made.args = append(append([]string{}, program...), words...)
		if _, err := b.run(made); err != nil {
			return command{}, err
		}
	}
	if changes {
		made.args = append([]string{"sh", "-c", `exec "$@" -var "v=$(date +%s%N)"`, "sh"}, made.args...)
	}
	return made, nil
}
