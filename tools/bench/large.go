package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
)

// largeResources is the number of resources in a state of 25 MiB. With 20,000, Terraform itself takes many minutes.
const largeResources = 2_000

// largeApplyRow applies a module with a state of 25 MiB, and changes one of its resources. It compares Terraform under
// wrap, with encrypted states in a file, in git and in S3, with Terraform's local backend and with OpenTofu's own
// encryption.
func (b *bench) largeApplyRow() ([]line, error) {
	plain := largeState()
	sealed, err := b.seal("large-state", plain)
	if err != nil {
		return nil, err
	}
	file, err := os.ReadFile(sealed)
	if err != nil {
		return nil, err
	}
	bucket := httptest.NewServer(&objects{kept: map[string][]byte{"/states/s.tfstate": file}})
	defer bucket.Close()
	err = b.makeStates(b.path("large.git"), 1, func(int) string { return "s.tfstate" }, func(int) []byte { return file })
	if err == nil {
		err = b.git(b.path("large.git"), "", "config", "http.receivepack", "true")
	}
	if err != nil {
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
		state       []byte // the state in the module; may be nil
	}{
		{name: "local", program: []string{b.terraform}, state: plain},
		{name: "tofu", program: []string{b.tofu}, env: []string{"TF_ENCRYPTION=" + encrypted}, state: file},
		{name: "a file", block: `backend "file" {}`, program: wrap, state: file},
		{name: "git", block: fmt.Sprintf("backend \"git\" {\n  repository = %q\n  ref = \"main\"\n  path = \"s.tfstate\"\n}",
			"http://"+repository.address+"/large.git"), program: wrap, env: []string{"GIT_CONFIG_NOSYSTEM=1"}},
		{name: "S3", block: bucketBlock(bucket.URL, "s.tfstate", ""), program: wrap},
	} {
		made, err := b.largeApply(c.name, c.block, c.env, c.program, c.state)
		if err != nil {
			return nil, err
		}
		commands = append(commands, made)
	}
	m, err := b.compare(commands...)
	if err != nil {
		return nil, err
	}
	var lines []line
	for i, c := range commands[2:] {
		took, allowed := m[2+i], int64(3*len(plain))
		name := fmt.Sprintf("apply that changes one of %d resources, a state of %d MiB encrypted in %s, under wrap", largeResources,
			len(plain)>>20, strings.TrimPrefix(c.name, "large apply "))
		lines = append(lines,
			cpu(name+": beside Terraform's local backend", took, cost{}, m[0], cost{}, 0),
			cpu("the same: beside tofu with its own encryption", took, cost{}, m[1], cost{}, 0),
			line{name: "peak memory of wrap: beside 3 × the state", here: megabytes(took.provider), peer: megabytes(allowed),
				ratio: float64(took.provider) / float64(allowed), most: 2.2}) // an idle wrap has 31 MB
	}
	return lines, nil
}

// largeState returns a state of the module of largeApply.
func largeState() []byte {
	var b bytes.Buffer
	of := func(i int) (id, input string) {
		return fmt.Sprintf("%036d", i), fmt.Sprintf(`{"value":%q,"type":"string"}`, largeInput(i))
	}
	b.WriteString(`{"version":4,"terraform_version":"1.5.0","serial":1,"lineage":"3f1c1c50-2b1e-4b0e-9d6a-0d0c6f7d8a11","outputs":{},` +
		`"resources":[`)
	builtinResource(&b, "changed", 1, of, false)
	b.WriteByte(',')
	builtinResource(&b, "kept", largeResources-1, of, true)
	b.WriteString(`],"check_results":null}`)
	return b.Bytes()
}

// largeInput returns an input. The state contains it twice.
func largeInput(i int) string { return fmt.Sprintf("%d %s", i, strings.Repeat("0123456789", 620)) }

// largeApply creates a module with a state. Each run of the returned command changes one resource.
func (b *bench) largeApply(name, block string, env, program []string, state []byte) (command, error) {
	made := command{name: "large apply " + name, dir: b.path(strings.ReplaceAll("large apply "+name, " ", "_"))}
	if err := os.MkdirAll(made.dir, 0o700); err != nil {
		return command{}, err
	}
	backend := ""
	if block != "" {
		backend = "terraform {\n  backend \"http\" {}\n}\n"
	}
	text := fmt.Sprintf("%svariable \"v\" { default = \"\" }\nresource \"terraform_data\" \"changed\" {\n  input = var.v\n}\n"+
		"resource \"terraform_data\" \"kept\" {\n  count = %d\n  input = \"${count.index}%s\"\n}\n", backend, largeResources-1,
		strings.TrimPrefix(largeInput(0), "0"))
	files := map[string][]byte{"main.tf": []byte(text), "keys.hcl": []byte(block + "\n" + encrypted)}
	if state != nil {
		files["terraform.tfstate"] = state
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(made.dir, file), content, 0o600); err != nil {
			return command{}, err
		}
	}
	made.env = append(env, "TF_CLI_CONFIG_FILE="+os.DevNull)
	made.args = append(append([]string{}, program...), "init")
	if _, err := b.run(made); err != nil {
		return command{}, err
	}
	made.args = append([]string{"sh", "-c", `exec "$@" apply -auto-approve -var "v=$(date +%s%N)"`, "sh"}, program...)
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
