package wrap_test

import (
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
