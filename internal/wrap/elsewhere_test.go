package wrap_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestElsewhere: while the backend has no state, and the module has one without wrap, nothing
// is changed: Terraform would make all of it a second time. plan and init warn.
//
// Promise: Runs under wrap
func TestElsewhere(t *testing.T) {
	t.Parallel()
	const (
		held    = `{"version":4,"serial":1,"lineage":"l","outputs":{},"resources":[{}]}`
		outputs = `{"version":4,"serial":1,"lineage":"l","outputs":{"a":{"type":"string","value":"x"}},"resources":[]}`
		old     = `{"version":3,"serial":1,"lineage":"l","modules":[{}]}`
	)
	own := func(text string) map[string]string { return map[string]string{"terraform.tfstate": text} }
	record := func(backend string) map[string]string {
		return map[string]string{".terraform/terraform.tfstate": `{"version":3,"backend":` + backend + `}`}
	}
	workspace := func(folder, text string) map[string]string {
		return map[string]string{folder + "/prod/terraform.tfstate": text}
	}
	with := func(files, more map[string]string) map[string]string {
		maps.Copy(files, more)
		return files
	}
	mistakes := wraptest.OpenMistakes(t, "a state elsewhere")
	for name, c := range testkit.Some(map[string]struct {
		files   map[string]string
		there   string // the state in the backend
		args    []string
		environ string
		held    bool // the module has one, so that nothing is changed
	}{
		"resources":     {files: own(held), held: true},
		"outputs":       {files: own(outputs), held: true},
		"an old format": {files: own(old), held: true},
		"encrypted":     {files: own(string(seal(t, sealing, held))), held: true},
		"empty":         {files: own(state)},
		"no bytes":      {files: own("")},
		"none":          {},
		"destroyed":     {files: own(held), args: []string{"destroy"}, held: true},
		"imported":      {files: own(held), args: []string{"import", "a", "b"}, held: true},
		"refreshed":     {files: own(held), args: []string{"refresh"}, held: true},
		"applied, a plan": {
			files: map[string]string{"terraform.tfstate": held, "p": plan(t, "http", "")}, args: []string{"apply", "p"}, held: true,
		},
		"in the backend":          {files: own(held), there: held},
		"emptied there":           {files: own(held), there: state},
		"another backend":         {files: record(`{"type":"s3","config":{}}`), held: true},
		"another address":         {files: record(`{"type":"http","config":{"address":"x"}}`), held: true},
		"an address of variables": {files: record(`{"type":"http","config":{"address":null}}`), held: true},
		"ours":                    {files: record(`{"type":"http","config":{}}`)},
		"a workspace":             {files: workspace("terraform.tfstate.d", held), held: true},
		"a workspace, encrypted":  {files: workspace("terraform.tfstate.d", string(seal(t, sealing, held))), held: true},
		"a workspace, empty":      {files: workspace("terraform.tfstate.d", state)},
		"a workspace, in another folder": {
			files: with(workspace("w", held), record(`{"type":"local","config":{"workspace_dir":"w"}}`)), held: true,
		},
		"a workspace, and in the backend": {files: workspace("terraform.tfstate.d", held), there: held},
		"in a run of wrap": {
			files: record(`{"type":"s3","config":{}}`), environ: "TF_DATA_DIR=.terraform/statecrypt/0123456789abcdef", held: true,
		},
		"a folder of a name alike": {
			files:   map[string]string{".terraform/statecrypt-2/terraform.tfstate": `{"version":3,"backend":{"type":"s3","config":{}}}`},
			environ: "TF_DATA_DIR=.terraform/statecrypt-2", held: true,
		},
		"another, but not then": {files: record(`{"type":"s3","config":{}}`), there: held},
		"of another name": {
			files: map[string]string{
				".terraform/terraform.tfstate": `{"version":3,"backend":{"type":"local","config":{"path":"x.tfstate"}}}`, "x.tfstate": held,
			}, held: true,
		},
		"no record": {files: map[string]string{".terraform/terraform.tfstate": canary}, held: true},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{c.args, {"plan"}, {"init"}, {"state", "rm", "x"}} {
				if args == nil {
					args = []string{"apply"}
				}
				refused := c.held && args[0] != "plan" && args[0] != "init" && args[0] != "state"
				s := newStore(t)
				if c.there != "" {
					s.put(seal(t, sealing, c.there))
				}
				reads, script := args[0] == "plan", "GET POST="+held
				if reads {
					script = "GET"
				}
				o, dir, out := scripted(t, s, script, args...)
				o.Environ = append(o.Environ, c.environ)
				for file, text := range c.files {
					write(t, filepath.Join(dir, file), text)
				}
				code, err, told := run(t, o)
				mistakes.Ended(t, name+": "+args[0], told, code, err)
				posted := count(s.requests(), "POST") > 0
				if (code != 0) != refused || posted == (refused || reads) {
					t.Errorf("%q: got %d, %v, and it wrote: %t\n%s", args, code, err, posted, out)
				}
			}
		})
	}
}

// TestAccElsewhere: whoever forgets -encrypt-existing makes nothing a second time.
//
// Promise: Runs under wrap
func TestAccElsewhere(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		s := newStore(t)
		p := newProject(t, s.environ(), `backend "local" {}`)
		commands := [][]string{{"init"}, {"apply", "-auto-approve"}}
		if gone {
			commands = append(commands, []string{"destroy", "-auto-approve"})
		}
		for _, args := range commands {
			if code, out := p.bare(t, p.cli, nil, args...); code != 0 {
				t.Fatalf("%d\n%s", code, out)
			}
		}
		write(t, filepath.Join(p.dir, "main.tf"), module(empty))
		p.must(t, "init")
		code, err, out := p.wrapped(t, "apply", "-auto-approve")
		if (code != 0) == gone || err != nil || strings.Contains(out, "-encrypt-existing") == gone {
			t.Errorf("destroyed before: %t; %d, %v\n%s", gone, code, err, out)
		}
		if (s.stored() != nil) != gone {
			t.Errorf("this is stored: %s", s.stored())
		}
	}
}

// TestAccElsewhereByVariables: what Terraform writes down of a backend that variables
// describe is no record of wrap, and with the variables, its state moves in.
func TestAccElsewhereByVariables(t *testing.T) {
	t.Parallel()
	former, s := newStore(t), newStore(t)
	p := newProject(t, s.environ(), empty)
	for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
		if code, out := p.bare(t, p.cli, former.terraform(), args...); code != 0 {
			t.Fatalf("%d\n%s", code, out)
		}
	}
	p.must(t, "init")
	if code, err, out := p.wrapped(t, "apply", "-auto-approve"); code == 0 || err != nil || s.stored() != nil {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
	p.env, p.with.Wishes.EncryptExisting = append(p.env, former.terraform()...), true
	p.must(t, "init")
	s.checkSealed(t, secret)
	p.with.Wishes.EncryptExisting = false
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode"); code != 0 || err != nil {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
}
