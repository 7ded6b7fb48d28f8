package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// applyRow applies a module without changes and with a state of 1 MiB. It compares an encrypted state, in a file and
// over HTTP, with Terraform's own local backend.
func (b *bench) applyRow() ([]line, error) {
	server := httptest.NewServer(&kept{})
	defer server.Close()
	var commands []command
	for name, c := range map[string]struct{ backend, block string }{
		"local": {backend: `backend "local" {}`},
		"file":  {backend: `backend "http" {}`, block: `backend "file" {}`},
		"http":  {backend: `backend "http" {}`, block: `backend "http" { address = "` + server.URL + `" }`},
	} {
		command, err := b.applyOf(name, c.backend, c.block)
		if err != nil {
			return nil, err
		}
		commands = append(commands, command)
	}
	m, err := b.compare(commands...)
	if err != nil {
		return nil, err
	}
	by := map[string]cost{}
	for i, c := range commands {
		by[c.name] = m[i]
	}
	beside := func(name, backend string) line {
		return cpu(name, by["apply "+backend], cost{}, by["apply local"], cost{}, 3)
	}
	return []line{
		beside("apply without changes, a state of 1 MiB encrypted in a file, under wrap: beside the local backend", "file"),
		beside("the same over HTTP", "http"),
	}, nil
}

// applyOf creates a module and applies it once, with these additional variables. If block is empty, it does not use
// wrap.
func (b *bench) applyOf(name, backend, block string, environ ...string) (command, error) {
	dir := b.path("apply_" + name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return command{}, err
	}
	for file, text := range map[string]string{
		"main.tf": "terraform {\n  " + backend + "\n}\nresource \"terraform_data\" \"x\" {\n  input = file(\"${path.module}/input\")\n}\n",
		"input":   strings.Repeat("0123456789abcdef", megabyte/2/16), // the state contains it twice
		"keys.hcl": block + "\n" + `key_provider "pbkdf2" "p" {
  passphrase = "` + passphrase + `"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.p }
state { method = method.aes_gcm.m }
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return command{}, err
		}
	}
	args := []string{b.terraform}
	if block != "" {
		args = []string{b.path("statecrypt"), "wrap", "-config", "keys.hcl", "--", b.terraform}
	}
	made := command{name: "apply " + name, dir: dir, env: append(environ, "TF_CLI_CONFIG_FILE="+os.DevNull)}
	for _, words := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
		made.args = append(append([]string{}, args...), words...)
		if _, err := b.run(made); err != nil {
			return command{}, err
		}
	}
	return made, nil
}

// kept is a server for Terraform's http backend, without locks.
type kept struct {
	mu    sync.Mutex
	state []byte
}

func (k *kept) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case r.Method == http.MethodPost:
		k.state, _ = io.ReadAll(r.Body)
	case k.state == nil:
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = w.Write(k.state)
	}
}
