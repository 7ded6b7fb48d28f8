package wrap_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// planning is a run of plan -out whose child saves a plan.
func planning(t *testing.T, out string) (o wrap.Options, dir string, said *lines) {
	t.Helper()
	plan := filepath.Join(t.TempDir(), "made")
	write(t, plan, planOf(t, "http", "", canary))
	o, dir, said = scripted(t, newStore(t), "GET save="+plan, "plan", "-out="+out)
	o.Keys.Plan = wraptest.Settings(t, wraptest.Keys+"plan { method = method.aes_gcm.m }").Plan()
	return o, dir, said
}

// A plan lands where its name leads, and takes the place of nothing but a plan.
//
// Promise: Only encrypted states
func TestSavedPlan(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "saved plan")
	for name, c := range map[string]struct {
		out   string
		lands string // "" if it is not saved
	}{
		"new":            {out: "new", lands: "new"},
		"in a folder":    {out: "folder/new", lands: "folder/new"},
		"over a file":    {out: "file", lands: "file"},
		"through a link": {out: "link", lands: "file"},
		"over a sealed":  {out: "sealed", lands: "sealed"},
		"over nothing":   {out: "empty", lands: "empty"},
		"over settings":  {out: "keys.hcl"},
		"over a state":   {out: "state"},
		"over a folder":  {out: "folder"},
		"over a socket":  {out: "socket"}, // or a device, such as /dev/null
		"in no folder":   {out: "nowhere/new"},
		"no name":        {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, said := planning(t, c.out)
			sealed, err := o.Keys.Plan.Encrypt(t.Context(), []byte(archive(t, "old")))
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{
				"file": archive(t, "old"), "folder/file": "old", "keys.hcl": wraptest.Keys, "state": state, "empty": "",
				"sealed": string(sealed),
			} {
				write(t, filepath.Join(dir, file), text)
			}
			socket, err := net.Listen("unix", filepath.Join(dir, "socket")) //nolint:noctx // a file, as far as this test goes
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
				t.Skip(err)
			}
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if err != nil && said.String() != "" {
				t.Errorf("the child was run: %s", said)
			}
			if info, err := os.Lstat(filepath.Join(dir, "link")); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("the link is gone: %v, %v", info, err)
			}
			if c.lands != "" {
				expectSealed(t, filepath.Join(dir, c.lands))
			}
		})
	}
}

// Without a plan block, a plan also takes the place of nothing but a plan, and is saved in a file only: elsewhere, it
// would have the password of the run.
func TestPlaintextPlan(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "plaintext plan")
	for _, out := range []string{"new", "sealed", "folder", "nowhere/new", "keys.hcl", "state", "socket", os.DevNull} {
		t.Run(out, func(t *testing.T) {
			t.Parallel()
			o, dir, said := scripted(t, newStore(t), "ready GET", "plan", "-out="+out)
			socket, err := net.Listen("unix", filepath.Join(dir, "socket")) //nolint:noctx // a file, as far as this test goes
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			write(t, filepath.Join(dir, "folder", "file"), "old")
			write(t, filepath.Join(dir, "keys.hcl"), wraptest.Keys)
			write(t, filepath.Join(dir, "state"), state)
			write(t, filepath.Join(dir, "sealed"), archive(t, "old"))
			code, err, told := run(t, o)
			mistakes.Ended(t, out, told, code, err)
			if saves := out == "new" || out == "sealed"; saves != (code == 0) || saves != (said.String() != "") {
				t.Errorf("%d, %v\n%s", code, err, said)
			}
		})
	}
}

// TestFolderWithEqualsSign: the program gets the path of its settings without an equals sign, which would make the path
// a setting, also if the folder of the module has one.
func TestFolderWithEqualsSign(t *testing.T) {
	t.Parallel()
	o, dir, out := scripted(t, newStore(t), "arguments environ GET", "init")
	at := filepath.Join(dir, "env=prod")
	write(t, filepath.Join(at, "main.tf"), inside(empty))
	o.Command[1] = "-chdir=" + at
	code, err, told := run(t, o)
	if code != 0 || err != nil || !strings.Contains(out.String(), `"-backend-config=`+own(at)+`/run-1/backend.json"`) {
		t.Errorf("%d, %v\n%s%s", code, err, told, out)
	}
}

func expectSealed(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := encryption.Inspect(content); err != nil || info.Kind != encryption.KindEncrypted {
		t.Errorf("%s is not encrypted: %v\n%.200s", path, err, content)
	}
}

// The child, which works in another folder, finds the copies although wrap was told of
// a folder for them as seen from here.
func TestRelativeFolderForCopies(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", "copies")
	o, dir, said := planning(t, "saved")
	if err := os.Mkdir("copies", 0o700); err != nil {
		t.Fatal(err)
	}
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, said)
	}
	expectSealed(t, filepath.Join(dir, "saved"))
	if left, err := os.ReadDir("copies"); err != nil || len(left) > 0 {
		t.Errorf("these copies are left: %q, %v", left, err)
	}
}

// The child follows a link that has the name of the file in which it leaves a state. So nothing is
// changed beside one, and if there is one afterwards, what it leads to stays as it is, and is named.
//
// Promise: Only encrypted states
// Promise: Links in modules
func TestErroredThroughALink(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "errored.tfstate")
	for name, c := range map[string]struct {
		script, link string
		left         string // where it leads
	}{
		"a link":                 {script: "GET leave=errored.tfstate exit=1", link: "errored.tfstate"},
		"a link during the run":  {script: "GET move=link,errored.tfstate leave=errored.tfstate exit=1", link: "link", left: state},
		"a link, and no failure": {script: "GET move=link,errored.tfstate", link: "link"},
	} {
		t.Run(name, func(t *testing.T) {
			o, dir, _ := scripted(t, newStore(t), c.script, "apply")
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			if err := os.Symlink(elsewhere, filepath.Join(dir, c.link)); err != nil {
				t.Skip(err)
			}
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if left, _ := os.ReadFile(elsewhere); string(left) != c.left {
				t.Errorf("the link leads to %q", left)
			}
		})
	}
}

// If nobody reads what wrap says, it still does the rest of its work: a pipe into head
// must not cost a state.
//
// Promise: Only encrypted states
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	needSignals(t)
	s := newStore(t)
	o, dir, _ := scripted(t, s, "", "init")
	write(t, filepath.Join(dir, "terraform.tfstate"), filled) // of which wrap warns before the child begins
	cmd := exec.CommandContext(t.Context(), os.Args[0])       //nolint:gosec // this program
	cmd.Env = append(o.Environ, "WRAP_TEST_SCRIPT=wrap="+strings.Join(o.Command, ","), "WRAP_TEST_CHILD_SCRIPT=GET POST="+state)
	read, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer written.Close()
	_ = read.Close()
	cmd.Stderr = written
	if err := cmd.Run(); err != nil {
		t.Errorf("wrap ended with %v", err)
	}
	s.checkSealed(t, `"lineage":"l","outputs"`)
}

// TestReadOnlyFolder: a module whose folder nobody may write to is refused, because the run needs a record there.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() <= 0 {
		t.Skip("root writes anywhere, and Windows has no such modes")
	}
	o, dir, out := scripted(t, newStore(t), "ready GET", "plan")
	data := filepath.Join(dir, ".terraform", "statecrypt")
	write(t, filepath.Join(data, "x"), "")
	if err := os.Chmod(data, 0o500); err != nil { //nolint:gosec // as the test is about
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(data, 0o700) }) //nolint:gosec // so that it can be removed
	code, err, _ := run(t, o)
	if code != 1 || err == nil || !strings.Contains(err.Error(), "the folder of the run") || out.String() != "" {
		t.Errorf("got %d, %v\n%s", code, err, out)
	}
}
