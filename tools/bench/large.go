package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
)

const (
	largeResources = 20_000
	largeInput     = 360 // bytes in each resource, twice; a state of 20,000 then has 25 MiB
)

// largeApplyRow applies a module of 20,000 resources, and changes one of them. It compares Terraform under wrap, with
// encrypted states in a file, in git and in S3, with Terraform's local backend and with OpenTofu's own encryption.
func (b *bench) largeApplyRow() ([]line, error) {
	bucket := httptest.NewServer(&objects{kept: map[string][]byte{}})
	defer bucket.Close()
	if err := b.git(b.dir, "", "init", "-q", "--bare", "-b", "main", b.path("large.git")); err != nil {
		return nil, err
	}
	if err := b.git(b.path("large.git"), "", "config", "http.receivepack", "true"); err != nil {
		return nil, err
	}
	repository, err := serve(b.dir, 0)
	if err != nil {
		return nil, err
	}
	defer repository.Close()
	noting, err := b.notingParent()
	if err != nil {
		return nil, err
	}
	wrap := []string{b.path("statecrypt"), "wrap", "-config", "keys.hcl", "--", noting}
	var commands []command
	for _, c := range []struct {
		name, block string
		program     []string
		env         []string
	}{
		{name: "local", program: []string{b.terraform}},
		{name: "tofu", program: []string{b.tofu}, env: []string{"TF_ENCRYPTION=" + encrypted}},
		{name: "a file", block: `backend "file" {}`, program: wrap},
		{name: "git", block: fmt.Sprintf("backend \"git\" {\n  repository = %q\n  ref = \"main\"\n  path = \"s.tfstate\"\n}",
			"http://"+repository.address+"/large.git"), program: wrap, env: []string{"GIT_CONFIG_NOSYSTEM=1"}},
		{name: "S3", block: bucketBlock(bucket.URL, "s.tfstate", ""), program: wrap},
	} {
		made, err := b.largeApply(c.name, c.block, c.env, c.program)
		if err != nil {
			return nil, err
		}
		commands = append(commands, made)
	}
	m, err := b.compare(commands...)
	if err != nil {
		return nil, err
	}
	state, err := os.Stat(filepath.Join(commands[0].dir, "terraform.tfstate"))
	if err != nil {
		return nil, err
	}
	var lines []line
	for i, c := range commands[2:] {
		took, allowed := m[2+i], 3*state.Size()
		name := fmt.Sprintf("apply that changes one of 20,000 resources, a state of %d MiB encrypted in %s, under wrap", state.Size()>>20,
			strings.TrimPrefix(c.name, "large apply "))
		lines = append(lines,
			cpu(name+": beside Terraform's local backend", took, cost{}, m[0], cost{}, 0),
			cpu("the same: beside tofu with its own encryption", took, cost{}, m[1], cost{}, 0),
			line{name: "peak memory of wrap: beside 3 × the state", here: megabytes(took.provider), peer: megabytes(allowed),
				ratio: float64(took.provider) / float64(allowed), most: 1})
	}
	return lines, nil
}

// largeApply creates a module and applies it once. Each run of the returned command changes one resource.
func (b *bench) largeApply(name, block string, env, program []string) (command, error) {
	made := command{name: "large apply " + name, dir: b.path(strings.ReplaceAll("large apply "+name, " ", "_"))}
	if err := os.MkdirAll(made.dir, 0o700); err != nil {
		return command{}, err
	}
	backend := ""
	if block != "" {
		backend = "terraform {\n  backend \"http\" {}\n}\n"
	}
	for file, text := range map[string]string{
		"main.tf": backend + "variable \"v\" { default = \"\" }\nresource \"terraform_data\" \"changed\" {\n  input = var.v\n}\n" +
			fmt.Sprintf("resource \"terraform_data\" \"kept\" {\n  count = %d\n  input = \"${count.index} %s\"\n}\n", largeResources-1,
				strings.Repeat("0123456789", largeInput/10)),
		"keys.hcl": block + "\n" + encrypted,
	} {
		if err := os.WriteFile(filepath.Join(made.dir, file), []byte(text), 0o600); err != nil {
			return command{}, err
		}
	}
	made.env = append(env, "TF_CLI_CONFIG_FILE="+os.DevNull)
	for _, words := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
		made.args = append(append([]string{}, program...), words...)
		if _, err := b.run(made); err != nil {
			return command{}, err
		}
	}
	made.args = append([]string{"sh", "-c", `exec "$@" -var "v=$(date +%s%N)"`, "sh"}, made.args...)
	return made, nil
}

// notingParent returns a program that does what Terraform does, and then notes the peak memory of the process that has
// started it. The peak that a system reports for an ended process includes its children.
func (b *bench) notingParent() (string, error) {
	path := b.path("noting/terraform")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' -parent '%s' \"$@\"\n", b.path("noted"), b.terraform)
	return path, os.WriteFile(path, []byte(script), 0o700)
}
