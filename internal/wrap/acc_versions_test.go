package wrap_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// version returns the name of the CLI, "Terraform" or "OpenTofu", and the 11 of 1.11.4.
func (p *project) version(t *testing.T) (name string, minor int) {
	t.Helper()
	_, out := p.bare(t, p.cli, nil, "version")
	said := regexp.MustCompile(`(?m)^(Terraform|OpenTofu) v1\.(\d+)\.`).FindStringSubmatch(out)
	if said == nil {
		t.Fatalf("the CLI says that it is %q", out)
	}
	minor, _ = strconv.Atoi(said[2])
	return said[1], minor
}

// TestAccNewerFlags checks flags and commands that only newer versions have. There, they have their effect under
// wrap, write no more than their row says, and leave an encrypted state. An older version of the program says that
// it lacks them.
//
// Promise: Only encrypted states (flags and commands of newer versions)
func TestAccNewerFlags(t *testing.T) {
	t.Parallel()
	cli, minor := newProject(t, nil, empty).version(t)
	for name, c := range map[string]struct {
		terraform, tofu int // the first version 1.x that has it; 0 if none does
		args            []string
		typed           string
		code            int
		says            string   // by those that have it
		asks            []string // the backend, beside reading and locking
	}{
		"plan -minimal-refresh": {
			terraform: 17, args: []string{"plan", "-minimal-refresh", "-detailed-exitcode"}, says: "No changes",
		},
		"apply -minimal-refresh": {
			terraform: 17, args: []string{"apply", "-minimal-refresh", "-auto-approve", "-var=text=" + secret + "2"},
			says: "1 changed", asks: []string{"POST"},
		},
		"destroy -minimal-refresh": {
			terraform: 17, args: []string{"destroy", "-minimal-refresh", "-auto-approve"}, says: "1 destroyed", asks: []string{"POST"},
		},
		"plan -policies": {
			terraform: 17, args: []string{"plan", "-policies=policies"}, says: "Failed to connect to policy engine",
		},
		"apply -policies": {
			terraform: 17, args: []string{"apply", "-policies=policies", "-auto-approve", "-var=text=" + secret + "2"},
			says: "Failed to connect to policy engine", asks: []string{"POST"},
		},
		"init -policies": {
			terraform: 17, args: []string{"init", "-policies=policies"}, code: 1, says: "Failed to connect to policy engine",
		},
		"console -scope": {
			terraform: 16, args: []string{"console", "-scope=module.child"}, typed: "local.there\n", says: "only in the child",
		},
		"console -lock": {
			tofu: 12, args: []string{"console", "-lock=false", "-lock-timeout=1s"}, typed: "20+2\n", says: "22",
		},
		"fmt -concise": {
			tofu: 12,
			args: []string{"fmt", "-concise", "-compact-warnings", "-consolidate-errors", "-consolidate-warnings", "-deprecation=module:all"},
		},
		"version -v":    {terraform: 1, tofu: 1, args: []string{"version", "-v"}, says: " v1."},
		"graph -format": {terraform: 16, args: []string{"graph", "-format=mermaid"}, says: "flowchart LR"},
		"query":         {terraform: 14, args: []string{"query"}, code: 1, says: "No resources to query"},
		"query -policies": {
			terraform: 17, args: []string{"query", "-policies=policies"}, code: 1, says: "Failed to connect to policy engine",
		},
		"plan -lint":                 {tofu: 13, args: []string{"plan", "-lint=all"}, says: "core:no-type-variable"},
		"apply -lint":                {tofu: 13, args: []string{"apply", "-lint=all", "-auto-approve"}, says: "core:no-type-variable"},
		"refresh -lint":              {tofu: 13, args: []string{"refresh", "-lint", "all"}, says: "core:no-type-variable"},
		"validate -lint":             {tofu: 13, args: []string{"validate", "-lint=all"}, says: "core:no-type-variable"},
		"providers lock -oci-mirror": {tofu: 13, args: []string{"providers", "lock", "-oci-mirror=localhost/{type}"}, says: "Success"},
	} {
		first := map[string]int{"Terraform": c.terraform, "OpenTofu": c.tofu}[cli]
		if first == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			p := newProject(t, s.environ(), empty)
			write(t, filepath.Join(p.dir, "child", "main.tf"), "locals { there = \"only in the child\" }\n")
			write(t, filepath.Join(p.dir, "child.tf"), "module \"child\" { source = \"./child\" }\n")
			write(t, filepath.Join(p.dir, "policies", "empty"), "")
			p.env = append(p.env, "TF_POLICY_PLUGIN="+filepath.Join(p.dir, "no program"))
			p.typed = c.typed
			if minor < first {
				code, err, out := p.wrapped(t, c.args...)
				// Terraform 1.5 prints only the usage of init.
				lacks := regexp.MustCompile(`flag provided but not defined|has no command named|only valid in experimental builds|` +
					`Usage: terraform .* init`)
				if code == 0 || err != nil || !lacks.MatchString(out) {
					t.Errorf("without it: %d, %v\n%s", code, err, out)
				}
				return
			}
			p.must(t, "init")
			p.must(t, "apply", "-auto-approve")
			s.requests()
			code, err, out := p.wrapped(t, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("%d\n%s", code, out)
			}
			var asked []string
			requests := s.requests()
			for _, request := range requests {
				if method, _, _ := strings.Cut(request, " "); !slices.Contains([]string{"GET", "LOCK", "UNLOCK"}, method) {
					asked = append(asked, method)
				}
			}
			if !slices.Equal(asked, c.asks) {
				t.Errorf("the backend was asked to %q", requests)
			}
			p.checkClean(t)
			s.checkSealed(t, secret)
		})
	}
}

// TestAccTestWithoutWrap checks that the command test works as its refusal says.
func TestAccTestWithoutWrap(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil, empty)
	if cli, minor := p.version(t); cli == "Terraform" && minor < 6 {
		t.Skip("this version has no command test")
	}
	write(t, filepath.Join(p.dir, "tests", "a.tftest.hcl"),
		"run \"a\" {\nassert {\ncondition = output.text == \""+secret+"\"\nerror_message = \"it differs\"\n}\n}\n")
	if code, err, _ := p.wrapped(t, "test"); code != 1 || err == nil {
		t.Errorf("under wrap: %d, %v", code, err)
	}
	for _, args := range [][]string{{"init", "-backend=false"}, {"test"}} {
		if code, out := p.bare(t, p.cli, nil, args...); code != 0 {
			t.Fatalf("%q: %d\n%s", args, code, out)
		}
	}
}
