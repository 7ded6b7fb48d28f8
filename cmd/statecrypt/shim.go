package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/cmdline"
)

// shim writes a script that stands in PATH for terraform or tofu.
func (c *call) shim(ctx context.Context) error {
	program := "terraform"
	if len(c.args) > 1 {
		program = c.args[1]
	}
	switch isProgram := func(name string) bool { return name == "terraform" || name == "tofu" }; {
	case isProgram(c.args[0]):
		return usageError(fmt.Sprintf("the folder is missing, or is not the first argument; run statecrypt shim FOLDER %s. "+
			"If the folder has that name, write ./%[1]s", c.args[0]))
	case !isProgram(program):
		return usageError(fmt.Sprintf("a shim stands for terraform or tofu, but not for %s; run statecrypt shim FOLDER terraform",
			shown(program)))
	case runtime.GOOS == "windows":
		return errors.New("a shim is a script for a POSIX shell; on Windows, run statecrypt wrap -- terraform …")
	}
	if c.args[0] == "" {
		return usageError("the name of the folder is empty; check whether a variable is empty")
	}
	if recognize.IsContent(c.args[0]) {
		return usageError("a shim requires the path of a folder, but this is the content of a file")
	}
	dir, err := filepath.Abs(c.args[0])
	if err == nil {
		err = os.Mkdir(dir, 0o755) //nolint:gosec // everyone may run what it contains
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = writeShim(ctx, filepath.Join(dir, program), program)
	}
	if err != nil {
		return fmt.Errorf("a shim cannot be written to %s: %w", shown(c.args[0]), keyfile.Explain(c.args[0], err))
	}
	if first, err := world.Find(program); err != nil || !sameFile(first, filepath.Join(dir, program)) {
		c.say(yellow, "note:", fmt.Sprintf("%s does not run yet; begin PATH with %s", shown(filepath.Join(dir, program)), shown(dir)))
	}
	return nil
}

// writeShim writes a shim to a file, which may be an older shim.
func writeShim(ctx context.Context, file, program string) error {
	before, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err == nil && !before.Mode().IsRegular():
		return errors.New("the folder contains a link or a folder called " + program + "; remove it, or name another folder")
	case err != nil:
		return err
	case !cmdline.IsShim(file):
		return errors.New("the folder contains another " + program + "; name another folder")
	}
	statecrypt, err := ownPath()
	if err == nil {
		err = replace.File(ctx, file, cmdline.Shim(statecrypt, program), before)
	}
	if err == nil {
		err = os.Chmod(file, 0o755) //nolint:gosec // everyone may run it, as the program for which it stands
	}
	return err
}

// ownPath returns the path by which this program was called. An installer may have put a link there, which outlives the
// file to which the link leads.
func ownPath() (string, error) {
	if path, err := world.Find(os.Args[0]); err == nil {
		return filepath.Abs(path)
	}
	return os.Executable()
}

// shimOptions returns the options of wrap for a command line that a shim passes on. If STATECRYPT_CONFIG is not set,
// the program of the command line replaces this process.
func (c *call) shimOptions() (o wrap.Options, err error) {
	config, isSet := world.Lookup(c.environ)("STATECRYPT_CONFIG")
	_, missing := os.Stat(config)
	switch {
	case !c.configInVariable && c.text("config") != "":
		return o, usageError("-shim takes the settings from STATECRYPT_CONFIG; remove -config")
	case !isSet:
		return o, wrap.Become(c.args, c.environ)
	case strings.TrimSpace(config) == "":
		return o, errors.New("STATECRYPT_CONFIG is empty; set it to the name of a file, or unset it to run the program without wrap")
	case errors.Is(missing, fs.ErrNotExist) && wrap.NeedsNoState(c.args, c.environ): // before the file is generated, for example
		return wrap.Options{
			Command: c.args, Environ: c.environ, Withhold: []string{"TF_VAR_"}, Stdin: c.stdin, Stdout: c.stdout, Stderr: c.stderr,
		}, nil
	}
	return c.wrapOptions()
}
