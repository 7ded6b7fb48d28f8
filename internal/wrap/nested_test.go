package wrap_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// TestDataDirectory: the child works in the module, and keeps its data there, whatever the
// user's data directory is. What the child starts in another module finds no record there.
//
// Promise: Only encrypted states
func TestDataDirectory(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	for name, environ := range map[string]string{
		"none": "", "relative": "TF_DATA_DIR=data", "that climbs": "TF_DATA_DIR=../cache", "absolute": "TF_DATA_DIR=" + elsewhere,
		"of another run": "TF_DATA_DIR=" + own(elsewhere),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "arguments environ backend GET", "plan")
			dir, _ = filepath.EvalSymlinks(dir)
			o.Environ = append(o.Environ, environ)
			for range 2 { // what records the path sees no difference
				out.text.Reset()
				if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
					t.Fatalf("%d, %v\n%s", code, err, out)
				}
			}
			lines := strings.Split(out.String(), "\n")
			given := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasPrefix(l, "TF_DATA_DIR=") })
			if len(given) != 1 || given[0] != "TF_DATA_DIR="+own(dir)+"/run-1" || !slices.Contains(lines, `["-chdir=`+dir+`" "plan"]`) {
				t.Errorf("the child has %q\n%s", given, out)
			}
			if !strings.Contains(out.String(), `"hash":`+hash) {
				t.Errorf("the record is not of this program: %s", out)
			}
		})
	}
	if found, _ := filepath.Glob(filepath.Join(elsewhere, "*")); len(found) > 0 {
		t.Errorf("the user's folder has %q", found)
	}
}

// TestWorksInTheModule: a program that goes elsewhere before it runs the CLI is told where
// to work, also if the user was there already.
func TestWorksInTheModule(t *testing.T) {
	o, dir, out := scripted(t, newStore(t), "arguments GET leave=errored.tfstate exit=1", "apply")
	o.Command = []string{o.Command[0], "apply"}
	t.Chdir(dir)
	code, err := wrap.Run(t.Context(), o)
	dir, _ = filepath.EvalSymlinks(dir)
	if code != 1 || err != nil || !strings.HasPrefix(out.String(), `["-chdir=`+dir+`" "apply"]`) {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
	expectSealed(t, filepath.Join(dir, "errored.tfstate"))
}

// TestAccNested: a CLI that a provisioner starts without wrap in another module does not get
// the state of this run, whatever it does first; nor if the backend has no locks, or this
// run takes none. All of them are started in one run, each in folders of its own.
//
// Promise: Only encrypted states
func TestAccNested(t *testing.T) {
	t.Parallel()
	cliUnderTest(t)
	const apply, initialize = " apply -auto-approve", " init -input=false"
	commands := []string{
		"cd ../OTHER && CLI" + apply,
		"CLI -chdir=../OTHER" + apply,
		"cd INNER && CLI" + apply,
		"CLI -chdir=INNER" + apply,
		"cd ../OTHER && env -u TF_DATA_DIR CLI" + apply,
		"cd ../OTHER && CLI" + apply + " -lock=false",
		"cd INNER && CLI destroy -auto-approve -lock=false",
		"cd ../OTHER && env -u TF_DATA_DIR CLI" + apply + " -lock=false",
		"cd ../OTHER && CLI" + initialize + " && CLI" + apply,
		"CLI -chdir=INNER" + initialize + " && CLI -chdir=INNER" + apply,
		"cd INNER && export TF_DATA_DIR=x && CLI" + initialize + " && CLI" + apply,
		"cd ../OTHER && unset TF_DATA_DIR && CLI" + initialize + " -reconfigure && CLI" + apply,
		"cd ../OTHER && CLI" + initialize + " && CLI destroy -auto-approve",
		"cd ../OTHER && CLI" + initialize + " && CLI force-unlock -force x",
		"cd ../OTHER && CLI" + initialize + " && CLI" + apply + " -lock=false",
		"cd INNER && CLI" + initialize + " && CLI destroy -auto-approve -lock=false",
		"cd ../OTHER && unset TF_DATA_DIR && CLI" + initialize + " && CLI" + apply + " -lock=false",
		"CLI -chdir=../OTHER output",
		"cd ../wrapped && CLI" + apply + " -lock=false", // a module with a record that wrap has written
		"cd ../wrapped && CLI output",
	}
	for kind, args := range map[string][]string{"locks": nil, "no locks there": nil, "no lock taken": {"-lock=false"}} {
		t.Run(kind, func(t *testing.T) {
			if kind != "locks" {
				testkit.OneIsEnough(t)
			}
			t.Parallel()
			s := newStore(t)
			p := newProject(t, s.environ(), empty)
			if kind == "no locks there" {
				p.store = withoutLocks(p.store)
			}
			root, outer := p.dir, filepath.Join(p.dir, "mm")
			another := inside(empty) + `resource "terraform_data" "inner" { input = "of-the-inner" }`
			p.dir = filepath.Join(root, "wrapped")
			write(t, filepath.Join(p.dir, "main.tf"), another)
			p.must(t, "init")
			p.dir = outer
			write(t, filepath.Join(outer, "main.tf"), module(empty))
			p.must(t, "init")
			p.must(t, "apply", "-auto-approve")

			var nested strings.Builder
			for i, command := range commands {
				name := fmt.Sprintf("nested_%d", i)
				write(t, filepath.Join(root, "other_"+name, "main.tf"), another)
				write(t, filepath.Join(outer, "inner_"+name, "main.tf"), another)
				script := strings.NewReplacer("OTHER", "other_"+name, "INNER", "inner_"+name, "CLI", "'"+p.cli+"'").Replace(command)
				fmt.Fprintf(&nested, `resource "terraform_data" %q {
  depends_on = [terraform_data.x]
  provisioner "local-exec" { command = "(%s) >'%[3]s/said_%[1]s' 2>&1; echo $? >'%[3]s/code_%[1]s'" }
}
`, name, script, root)
			}
			write(t, filepath.Join(outer, "more.tf"), nested.String())
			code, err, out := p.wrapped(t, append([]string{"apply", "-auto-approve", "-parallelism=2"}, args...)...)
			if code != 0 || err != nil {
				t.Errorf("%d, %v\n%s", code, err, out)
			}
			opened, err := p.target.Decrypt(t.Context(), s.stored())
			if err != nil || !bytes.Contains(opened.Data, []byte(secret)) || bytes.Contains(opened.Data, []byte("of-the-inner")) {
				t.Errorf("the state is %s, %v", opened.Data, err)
			}
			for i, command := range commands {
				name := fmt.Sprintf("nested_%d", i)
				if code := strings.TrimSpace(read(t, filepath.Join(root, "code_"+name))); code == "0" || code == "" {
					t.Errorf("%s ended with %q\n%s", command, code, read(t, filepath.Join(root, "said_"+name)))
				}
				if said := read(t, filepath.Join(root, "said_"+name)); strings.Contains(said, "Destroying") {
					t.Errorf("%s destroys something\n%s", command, said)
				}
				if !bytes.Contains(opened.Data, []byte(`"`+name+`"`)) {
					t.Errorf("%s: the state has no %s", command, name)
				}
			}
		})
	}
}
