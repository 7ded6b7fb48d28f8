package wrap_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// TestDataDirectory: the child works in the module, and keeps its data there, whatever the
// user's data directory is. What the child starts in another module finds no record there.
func TestDataDirectory(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	for name, environ := range map[string]string{
		"none": "", "relative": "TF_DATA_DIR=data", "that climbs": "TF_DATA_DIR=../cache", "absolute": "TF_DATA_DIR=" + elsewhere,
		"of another run": "TF_DATA_DIR=.terraform/statecrypt",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "arguments environ GET", "plan")
			dir, _ = filepath.EvalSymlinks(dir)
			o.Environ = append(o.Environ, environ)
			if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
				t.Fatalf("%d, %v\n%s", code, err, out)
			}
			lines := strings.Split(out.String(), "\n")
			given := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasPrefix(l, "TF_DATA_DIR=") })
			if !slices.Equal(given, []string{"TF_DATA_DIR=.terraform/statecrypt"}) || !slices.Contains(lines, `["-chdir=`+dir+`" "plan"]`) {
				t.Errorf("the child has %q\n%s", given, out)
			}
			if record := read(t, filepath.Join(dir, ".terraform", "statecrypt", "terraform.tfstate")); !strings.Contains(record, `"http"`) {
				t.Errorf("the record is %s", record)
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
// run takes none.
func TestAccNested(t *testing.T) {
	t.Parallel()
	cliUnderTest(t)
	const apply, initialize = " apply -auto-approve", " init -input=false"
	for name, command := range map[string]string{
		"sibling":                "cd ../other && CLI" + apply,
		"sibling, chdir":         "CLI -chdir=../other" + apply,
		"nested":                 "cd inner && CLI" + apply,
		"nested, chdir":          "CLI -chdir=inner" + apply,
		"without the folder":     "cd ../other && env -u TF_DATA_DIR CLI" + apply,
		"without locks":          "cd ../other && CLI" + apply + " -lock=false",
		"destroyed":              "cd inner && CLI destroy -auto-approve -lock=false",
		"without both":           "cd ../other && env -u TF_DATA_DIR CLI" + apply + " -lock=false",
		"initialized":            "cd ../other && CLI" + initialize + " && CLI" + apply,
		"initialized, chdir":     "CLI -chdir=inner" + initialize + " && CLI -chdir=inner" + apply,
		"initialized, elsewhere": "cd inner && export TF_DATA_DIR=x && CLI" + initialize + " && CLI" + apply,
		"initialized, no folder": "cd ../other && unset TF_DATA_DIR && CLI" + initialize + " -reconfigure && CLI" + apply,
		"destroyed by it":        "cd ../other && CLI" + initialize + " && CLI destroy -auto-approve",
		"unlocked":               "cd ../other && CLI" + initialize + " && CLI force-unlock -force x",
		"output":                 "CLI -chdir=../other output",
	} {
		for kind, args := range map[string][]string{"": nil, ", no locks there": nil, ", no lock taken": {"-lock=false"}} {
			t.Run(name+kind, func(t *testing.T) {
				t.Parallel()
				s := newStore(t)
				p := newProject(t, s.environ(), empty)
				if kind == ", no locks there" {
					p.store = withoutLocks(p.store)
				}
				root := p.dir
				p.dir = filepath.Join(root, "mm")
				for _, inner := range []string{filepath.Join(root, "other"), filepath.Join(p.dir, "inner")} {
					write(t, filepath.Join(inner, "main.tf"), inside(empty)+`resource "terraform_data" "inner" { input = "of-the-inner" }`)
				}
				write(t, filepath.Join(p.dir, "main.tf"), module(empty))
				p.must(t, "init")
				p.must(t, "apply", "-auto-approve")
				script := "(" + strings.ReplaceAll(command, "CLI", "'"+p.cli+"'") + ") >ROOT/said 2>&1; echo $? >ROOT/code"
				write(t, filepath.Join(p.dir, "more.tf"), `resource "terraform_data" "nested" {
  depends_on = [terraform_data.x]
  provisioner "local-exec" { command = "`+strings.ReplaceAll(script, "ROOT", "'"+root+"'")+`" }
}`)
				p.must(t, append([]string{"apply", "-auto-approve"}, args...)...)
				if code := strings.TrimSpace(read(t, filepath.Join(root, "code"))); code == "0" {
					t.Errorf("the nested run ended with %s\n%s", code, read(t, filepath.Join(root, "said")))
				}
				opened, err := p.target.Decrypt(t.Context(), s.stored())
				if err != nil || !bytes.Contains(opened.Data, []byte(secret)) || bytes.Contains(opened.Data, []byte("of-the-inner")) ||
					!bytes.Contains(opened.Data, []byte(`"nested"`)) {
					t.Errorf("the state is %s, %v\n%s", opened.Data, err, read(t, filepath.Join(root, "said")))
				}
			})
		}
	}
}
