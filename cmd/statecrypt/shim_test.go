package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// shimmed is a module with settings, a shim, and a terraform that records how it is called.
type shimmed struct {
	root    string
	environ []string
	fill    func(text string) string // fills in ROOT, and the path of statecrypt as STATECRYPT
}

// called is true if the program was called, and bare has the calls without wrap.
func (s shimmed) calls(t *testing.T) (called bool, bare string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.root, "calls"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		called = true
		if !strings.Contains(line, ".terraform/statecrypt/") { // neither its data nor the module, as when wrap asks it for a digest
			bare += line
		}
	}
	return called, bare
}

func (s shimmed) sh(t *testing.T, script string, environ ...string) (string, error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute) // of a shim that starts itself for ever
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", "-c", s.fill(script))
	cmd.Dir, cmd.Env = filepath.Join(s.root, "module"), s.environ
	for _, pair := range environ {
		cmd.Env = append(cmd.Env, s.fill(pair))
	}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s does not end\n%s", script, out)
	}
	return string(out), err
}

func newShimmed(t *testing.T) shimmed {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a shim is a script")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := shimmed{root: root, fill: strings.NewReplacer("ROOT", root, "STATECRYPT/", built(t)).Replace}
	for _, dir := range []string{"module", "other", "shims", "more", "real"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const nests = "\ncase $* in *module*plan*) [ ! -e ROOT/nests ] || (cd ROOT/other && terraform plan) ;; esac\ntrue\n"
	for _, name := range []string{"terraform", "tofu"} {
		s.program(t, "real/"+name, `echo "$TF_DATA_DIR $*" >>ROOT/calls`+nests)
	}
	for _, dir := range []string{"module", "other"} {
		write(t, filepath.Join(root, dir, "main.tf"), "terraform {\n  backend \"http\" {}\n}\n")
		write(t, filepath.Join(root, dir, "keys.hcl"), "backend \"file\" {}\n"+onlyOld)
	}
	s.environ = append(world.World{}.Environ().Pairs(), "PATH="+root+"/shims:"+root+"/real:"+os.Getenv("PATH"), "HOME="+root)
	if out, err := s.sh(t, "STATECRYPT/ shim ../shims"); err != nil || out != "" {
		t.Fatalf("%v\n%s", err, out)
	}
	return s
}

// program writes a script into a folder of the root.
func (s shimmed) program(t *testing.T, name, text string) {
	t.Helper()
	path := write(t, filepath.Join(s.root, name), "#!/bin/sh\n"+s.fill(text))
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestShim: a shim neither starts itself nor runs Terraform without wrap where the variable is set, whatever PATH, the
// command line and the environment are.
//
// Promise: Only encrypted states
func TestShim(t *testing.T) {
	t.Parallel()
	const bash = "command -v bash >/dev/null || exit 77; "
	mistakes := openMistakes(t, "shim")
	for name, c := range map[string]struct {
		before  string // what comes first
		path    string // PATH, if it is another
		script  string // "terraform plan" if it is empty
		environ []string
		runs    bool // whether Terraform runs
	}{
		"its name":         {runs: true},
		"its path":         {script: "ROOT/shims/terraform plan", runs: true},
		"a path from here": {script: "../shims/terraform plan", runs: true},
		"in another folder": {script: "cd / && terraform -chdir=ROOT/module plan", runs: true,
			environ: []string{"STATECRYPT_CONFIG=ROOT/module/keys.hcl"}},
		"a link":               {before: "ln -s ../shims/terraform ../more", path: "ROOT/more:$PATH", runs: true},
		"a link alone":         {before: "ln -s ../shims/terraform ../more", path: "ROOT/more:ROOT/real:/bin", runs: true},
		"a link to its folder": {before: "ln -s shims ../linked", path: "ROOT/linked:$PATH", runs: true},
		"a hard link":          {before: "ln ../shims/terraform ../more", path: "ROOT/more:$PATH", runs: true},
		"a copy":               {before: "cp ../shims/terraform ../more", path: "ROOT/more:$PATH", runs: true},
		"another shim":         {before: "STATECRYPT/ shim ../more", path: "ROOT/more:$PATH", runs: true},
		"another shim, behind": {before: "STATECRYPT/ shim ../more", path: "ROOT/shims:ROOT/more:ROOT/real:/bin", runs: true},
		"a relative folder":    {path: "../shims:$PATH", runs: true},
		"an empty folder":      {before: "cp ../shims/terraform .", path: ":$PATH", runs: true},
		"a version manager":    {path: "ROOT/shims:ROOT/manager:/bin", runs: true},
		"another name":         {before: "ln -s terraform ../shims/tofu", script: "tofu plan", runs: true},

		"shims alone":           {path: "ROOT/shims:/bin"},
		"the program, relative": {path: "ROOT/shims:../real:/bin"},
		"by wrap":               {script: "STATECRYPT/ wrap -config keys.hcl -- terraform plan", runs: true},
		"by wrap, its path":     {script: "STATECRYPT/ wrap -config keys.hcl -- ROOT/shims/terraform plan"},
		"by wrap, a link": {before: "ln -s ../shims/terraform ../more",
			script: "STATECRYPT/ wrap -config keys.hcl -- ../more/terraform plan"},
		"a script that becomes it":     {path: "ROOT/shims:ROOT/becomes:/bin"},
		"a script that starts it":      {path: "ROOT/shims:ROOT/starts:/bin"},
		"a script that starts wrap":    {path: "ROOT/wraps:$PATH"},
		"a script that goes elsewhere": {path: "ROOT/shims:ROOT/goes:/bin"},
		"a copy that was edited": {before: "(echo '#!/bin/sh'; cat ../shims/terraform) >../more/terraform; chmod +x ../more/terraform",
			path: "ROOT/shims:ROOT/more:/bin"},
		"a script that adds a flag":        {path: "ROOT/shims:ROOT/adds:/bin"},
		"a script that adds a flag, init":  {path: "ROOT/shims:ROOT/waits:/bin", script: "terraform init -backend=false"},
		"a script that changes the folder": {path: "ROOT/shims:ROOT/changes:/bin", script: "terraform version"},
		"init by a script":                 {path: "ROOT/shims:ROOT/becomes:/bin", script: "terraform init"},

		"an empty variable":              {script: "terraform version", environ: []string{"STATECRYPT_CONFIG="}},
		"a blank variable":               {environ: []string{"STATECRYPT_CONFIG= "}},
		"no such file":                   {environ: []string{"STATECRYPT_CONFIG=key.hcl"}},
		"no such file, and no such word": {script: "terraform foo", environ: []string{"STATECRYPT_CONFIG=key.hcl"}},
		"no such file, a version":        {script: "terraform version", environ: []string{"STATECRYPT_CONFIG=key.hcl"}, runs: true},
		"a folder without settings":      {environ: []string{"STATECRYPT_CONFIG=ROOT/module"}},
		"settings without a method":      {environ: []string{"STATECRYPT_CONFIG=main.tf"}},
		"settings that run a program":    {environ: []string{"STATECRYPT_CONFIG=ROOT/runs.hcl"}},
		"other settings":                 {script: "STATECRYPT/ wrap -config keys.hcl -shim -- terraform plan"},
		"a help in a variable":           {script: "terraform apply", environ: []string{"TF_CLI_ARGS=-help"}, runs: true},
		"a place in a variable":          {script: "terraform apply", environ: []string{"TF_CLI_ARGS_apply=-state=x"}},
		"a completion":                   {script: "terraform terraform pl terraform", environ: []string{"COMP_LINE=terraform pl"}},
		"a version before the command":   {script: "terraform -version apply"},
		"a help behind the command":      {script: "terraform workspace new -help"},
		"tests":                          {script: "terraform test"},
		"the mark of another run":        {environ: []string{"STATECRYPT_STARTED=x"}, runs: true},

		"no statecrypt": {before: "sed 's/statecrypt. wrap/gone&/' ../shims/terraform >../more/x; chmod +x ../more/x",
			script: "../more/x plan 2>/dev/null; test $? = 127"},
		"no statecrypt, bash": {before: bash + "sed -n '3s/statecrypt. wrap/gone&/p' ../shims/terraform >../more/x",
			script: "BASHOPTS=execfail bash ../more/x plan 2>/dev/null; test $? = 127"},
		"a function of bash": {before: bash, runs: true,
			script: "bash -c 'exec() { command exec ROOT/real/terraform plan; }; export -f exec; terraform plan'"},
		"a run in a run":           {before: "touch ../nests", runs: true},
		"a run in a run, its path": {before: "touch ../nests", script: "terraform -chdir=ROOT/module plan", runs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShimmed(t)
			for name, text := range map[string]string{
				"becomes/terraform": `exec ROOT/shims/terraform "$@"`,
				"starts/terraform":  `ROOT/shims/terraform "$@"`,
				"adds/terraform":    `exec ROOT/shims/terraform "$@" -no-color`,
				"waits/terraform":   `ROOT/shims/terraform "$@" -lock-timeout=5m`,
				"changes/terraform": `cd / && test "$PWD" != "$OLDPWD" || cd ROOT; exec ROOT/shims/terraform "$@"`,
				"wraps/terraform":   `exec STATECRYPT/ wrap -config keys.hcl -- terraform "$@"`,
				"manager/terraform": `cd ROOT; exec ROOT/real/terraform "$@"`,
				"goes/terraform":    `cd ROOT && exec ROOT/shims/terraform "$@"`,
			} {
				if err := os.Mkdir(filepath.Join(s.root, filepath.Dir(name)), 0o700); err != nil {
					t.Fatal(err)
				}
				s.program(t, name, text)
			}
			write(t, filepath.Join(s.root, "runs.hcl"), s.fill("backend \"file\" {}\nkey_provider \"external\" \"p\" {\n"+
				"  command = [\"touch\", \"ROOT/calls\"]\n}\nmethod \"aes_gcm\" \"m\" { keys = key_provider.external.p }\n"+
				"state { method = method.aes_gcm.m }\n"))
			script := cmp.Or(c.before, ":") + "\nPATH=" + cmp.Or(c.path, "$PATH") + "\n" + cmp.Or(c.script, "terraform plan")
			out, err := s.sh(t, script, append([]string{"STATECRYPT_CONFIG=keys.hcl"}, c.environ...)...)
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 77 {
				t.Skip("there is no bash")
			}
			ran, bare := s.calls(t)
			if bare != "" || ran != c.runs {
				t.Errorf("Terraform runs: %t; without wrap: %s\n%s", ran, bare, out)
			}
			code := 0
			if err != nil {
				code = 1
			}
			mistakes.check(t, name, called{code: code, stderr: strings.ReplaceAll(out, s.root, "/root")})
		})
	}
}

// TestShimOff: where the variable is not set, Terraform runs as if there were no shim, and a script that starts the
// shim again is told.
func TestShimOff(t *testing.T) {
	t.Parallel()
	s := newShimmed(t)
	out, err := s.sh(t, "TF_DATA_DIR=data TF_CLI_ARGS=x terraform workspace new 'a  b'\n"+
		"cp ../shims/terraform ../more; PATH=ROOT/more:$PATH terraform version")
	if text := read(t, filepath.Join(s.root, "calls")); err != nil || out != "" || text != "data workspace new a  b\n version\n" {
		t.Errorf("%v, %s\n%s", err, out, text)
	}
	mistakes := openMistakes(t, "shim without the variable")
	s.program(t, "more/terraform", `exec ROOT/shims/terraform "$@"`)
	for name, path := range map[string]string{"a script that becomes it": "ROOT/shims:ROOT/more:/bin", "shims alone": "ROOT/shims:/bin"} {
		out, err := s.sh(t, "PATH="+path+" terraform plan")
		if err == nil {
			t.Errorf("%s: it runs", name)
		}
		mistakes.check(t, name, called{code: 1, stderr: strings.ReplaceAll(out, s.root, "/root")})
	}
}

// TestShimIsWritten: a shim replaces no other file, and a shim that is there already only if it is one.
func TestShimIsWritten(t *testing.T) {
	t.Parallel()
	s := newShimmed(t)
	mistakes := openMistakes(t, "shim is written")
	s.program(t, "more/tofu", "true")
	for name, script := range map[string]string{
		"again":              "chmod 600 ../shims/terraform; STATECRYPT/ shim ../shims",
		"tofu":               "STATECRYPT/ shim ../shims tofu",
		"not in PATH":        "STATECRYPT/ shim ../more",
		"in place of a file": "STATECRYPT/ shim ../real",
		"a new folder":       "STATECRYPT/ shim ../new",
		"no folder above":    "STATECRYPT/ shim ../none/shims",
		"a file":             "STATECRYPT/ shim main.tf",
		"another program":    "STATECRYPT/ shim ../shims packer",
		"no folder":          "STATECRYPT/ shim terraform",
		"the program first":  "STATECRYPT/ shim tofu ../shims",
		"by a link":          "ln -s ../more/terraform ../other/terraform && STATECRYPT/ shim ../other",
	} {
		out, err := s.sh(t, script)
		code := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		}
		mistakes.check(t, name, called{code: code, stderr: strings.ReplaceAll(out, s.root, "/root")})
	}
	for _, name := range []string{"shims/terraform", "shims/tofu", "more/terraform", "new/terraform"} {
		if info, err := os.Stat(filepath.Join(s.root, name)); err != nil || info.Mode() != 0o755 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if text := read(t, filepath.Join(s.root, "real", "terraform")); !strings.Contains(text, "calls") {
		t.Errorf("the program is now %s", text)
	}
}
