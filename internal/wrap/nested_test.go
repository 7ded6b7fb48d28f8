package wrap_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
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
		"of another run": "TF_DATA_DIR=" + wrap.Own(elsewhere),
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
			if !slices.Equal(given, []string{"TF_DATA_DIR=" + wrap.Own(dir)}) || !slices.Contains(lines, `["-chdir=`+dir+`" "plan"]`) {
				t.Errorf("the child has %q\n%s", given, out)
			}
			if record := read(t, filepath.Join(dir, wrap.Own(dir), "terraform.tfstate")); !strings.Contains(record, `"http"`) {
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
		"with a record of wrap":  "cd ../wrapped && CLI" + apply + " -lock=false",
		"its output":             "cd ../wrapped && CLI output",
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
				outer := p.dir
				for _, inner := range []string{filepath.Join(root, "other"), filepath.Join(outer, "inner"), filepath.Join(root, "wrapped")} {
					write(t, filepath.Join(inner, "main.tf"), inside(empty)+`resource "terraform_data" "inner" { input = "of-the-inner" }`)
				}
				if strings.Contains(command, "../wrapped") {
					p.dir = filepath.Join(root, "wrapped")
					p.must(t, "init")
					p.dir = outer
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

// TestDataDirectoryIsOfOneModule: a sibling that has a record of its own, which wrap has
// written, has none where a CLI in it looks that is started in this run.
func TestDataDirectoryIsOfOneModule(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	_, dir, _ := scripted(t, s, "", "init")
	o, sibling, out := scripted(t, s, "GET", "init")
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, out)
	}
	if _, err := os.Stat(filepath.Join(sibling, wrap.Own(sibling), "terraform.tfstate")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(sibling, wrap.Own(dir))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in the sibling, the data directory of the module is there: %v", err)
	}
}
