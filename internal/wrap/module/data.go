package module

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
)

// OwnData returns the path of the data directory under wrap, relative to the module. Its name contains the module ID.
// It holds the modules and providers shared by all runs. A record is there only while init runs. Terraform and
// OpenTofu do not see these providers without wrap, but a plugin cache serves both.
func (m *Module) OwnData() string { return files.OwnFolder + "/" + m.ID() }

// ID returns a string that identifies the module on this machine.
func (m *Module) ID() string {
	sum := sha256.Sum256([]byte(m.Dir))
	return hex.EncodeToString(sum[:8])
}

func (m *Module) own() files.Directory { return files.Own(m.Dir, m.ID()) }

// CheckOwn returns an error if wrap's own folder is reached through a link.
func (m *Module) CheckOwn() error {
	at, err := m.own().Open(false)
	if err == nil {
		return at.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// HideBackend prevents init -backend=false from finding a state, until end is called.
func (m *Module) HideBackend(ctx context.Context) (end func(), err error) {
	end, err = m.Lock(ctx)
	if err == nil {
		err = writeText(ctx, m.own(), noState())
	}
	return end, err
}

// Lock locks the module until end is called, so that other runs wait before they initialize it. The end function also
// removes the record. If wrap was killed while init ran, that init still uses the directory, so Lock waits until it
// ends.
func (m *Module) Lock(ctx context.Context) (end func(), err error) {
	at, err := m.own().Open(true)
	if err != nil {
		return func() {}, err
	}
	lock, err := files.LockOwn(ctx, at)
	orphans, _ := fs.Glob(at.FS(), runPrefix+"*/"+settingsName) // a live run with settings would have the lock
	for _, orphan := range orphans {
		if err == nil {
			err = files.AwaitEnd(ctx, m.own().File(filepath.Dir(orphan)))
		}
	}
	if err != nil {
		_ = errors.Join(lock.Close(), at.Close()) // closing a nil file is harmless
		return func() {}, err
	}
	return func() {
		_ = at.Remove(recordName)
		_ = errors.Join(lock.Close(), at.Close())
	}, nil
}

// RunData is the data directory of one run. It contains the record of the run's backend, and no other run uses it.
// Descendants of the child inherit the path of the directory, which is relative to the module. In another module, they
// find no record at this path, so Terraform and OpenTofu refuse to run there, even if wrap is in use.
type RunData struct {
	Record
	Path  string   // the path of the data directory, relative to the module
	Alive *os.File // a file that marks the run as active as long as wrap or the child has it open

	module    *Module
	run       files.Directory
	forgotten atomic.Bool
	end       func()
}

const (
	runPrefix    = "run-"
	settingsName = "backend.json" // in the run directory, if the run is an init
)

// Begin creates the data directory of a run, and removes the directories of killed runs.
func (m *Module) Begin(settings Settings) (d *RunData, err error) {
	at, err := m.own().Open(true)
	if err != nil {
		return nil, cannotBegin(err)
	}
	defer at.Close()
	entries, _ := fs.ReadDir(at.FS(), ".")
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), runPrefix) {
			files.TakeAbandoned(m.own().File(e.Name()), func() { _ = at.RemoveAll(e.Name()) })
		}
	}
	name, err := "", fs.ErrExist
	for number := 1; errors.Is(err, fs.ErrExist); number++ {
		name = fmt.Sprint(runPrefix, number)
		err = at.Mkdir(name, 0o700)
	}
	if err != nil {
		return nil, cannotBegin(err)
	}
	run := files.Own(m.Dir, m.ID(), name)
	return &RunData{
		Record: Record{run, settings}, Path: m.OwnData() + "/" + name, Alive: files.Mark(run.File("")), module: m, run: run, end: func() {},
	}, nil
}

func cannotBegin(err error) error {
	return fault.With(fmt.Errorf("could not create the run's folder in %s: %w", files.OwnFolder, keyfile.Reason(err)),
		"check that the module's folder is writable, and that the disk has free space")
}

// Remove removes the directory, and then lets other runs initialize the module.
func (d *RunData) Remove() {
	dir := d.run.File("")
	err := os.RemoveAll(dir)
	_ = d.Alive.Close() // closing a nil file is harmless
	if err != nil {     // some systems cannot remove open files
		files.TakeAbandoned(dir, func() { _ = os.RemoveAll(dir) })
	}
	d.end()
}

// Forget removes the record, once the child has read it.
func (d *RunData) Forget() {
	d.forgotten.Store(true)
	_ = os.Remove(d.run.File(recordName))
}

// Check returns an error if the record does not name the proxy after the run. The record still exists if the child did
// not request its state, or used another backend.
func (d *RunData) Check() error {
	err := d.Record.Check()
	if d.forgotten.Load() && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Initialize prepares the data directory shared by all runs for this child, and locks it until the run ends. It
// returns the file name for -backend-config.
func (d *RunData) Initialize(ctx context.Context) (config string, err error) {
	if d.end, err = d.module.Lock(ctx); err != nil {
		return "", err
	}
	config = d.Path + "/" + settingsName
	d.Data, d.Path = d.module.own(), d.module.OwnData()
	if err := writeSettings(d.run.File(settingsName), d.Settings); err != nil {
		return "", d.cannotFill(err)
	}
	return config, d.Write(ctx, 0)
}

func writeSettings(path string, s Settings) error {
	text, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	return err
}

// Asked runs a command of the program in the folder dir, with the given data directory. It returns the exit code and
// the program's error output.
type Asked func(dir, data string, words ...string) (code int, said string, err error)

// Share prepares the data directory for a command other than init. It adds links to the shared modules and providers,
// and writes the record.
func (d *RunData) Share(ctx context.Context, run Asked) error {
	var err error
	for _, name := range []string{"modules", "providers", "plugin_path"} {
		if _, none := os.Stat(d.module.own().File(name)); none == nil {
			err = cmp.Or(err, link(filepath.Join("..", name), d.run.File(name)))
		}
	}
	if err != nil {
		return d.cannotFill(err)
	}
	hash, err := d.hash(run)
	if err != nil {
		return err
	}
	return d.Write(ctx, hash)
}

func (d *RunData) cannotFill(err error) error {
	return fault.With(fmt.Errorf("could not write to the run's folder, %s: %w", outside.Quoted(d.run.File(""), 300), keyfile.Reason(err)),
		"check that the disk has free space, and that no other program changes the folder")
}

// link creates a symbolic link at path to target, which is relative to the folder of path. If the user cannot create
// symbolic links on this system, link creates hard links to the files instead.
func link(target, path string) error {
	if os.Symlink(target, path) == nil {
		return nil
	}
	return secondNames(filepath.Join(filepath.Dir(path), target), path)
}

// secondNames creates hard links below path for all files below from.
func secondNames(from, path string) error {
	return filepath.WalkDir(from, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := path + strings.TrimPrefix(at, from)
		if e.IsDir() {
			return os.Mkdir(to, 0o700) //nolint:gosec // inside the new folder of this run
		}
		return os.Link(at, to) //nolint:gosec // inside the new folder of this run
	})
}

// hash returns the hash that the program computes for the module's backend block. To get it, hash runs init in a
// module that has only this block, and no state. That module is in a folder inside the real module, so that a version
// manager chooses the same program. If the program writes no record, hash returns 0, and the program will ask for
// init.
func (d *RunData) hash(run Asked) (uint64, error) {
	const data = "data"
	dir := d.run.File("block")
	none := maps.Clone(d.Settings)
	none["address"] = fmt.Sprint(d.Settings["address"], "/none")
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		defer os.RemoveAll(dir)
		err = writeSettings(filepath.Join(dir, settingsName), none)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "main.tf"), []byte("terraform {\n  backend \"http\" {}\n}\n"), 0o600)
	}
	if err != nil {
		return 0, d.cannotFill(err)
	}
	code, said, err := run(dir, data, "init", "-input=false", "-no-color", "-backend-config="+settingsName)
	if err != nil {
		return 0, err
	}
	if code != 0 {
		said = strings.ReplaceAll(said, fmt.Sprint(d.Settings["password"]), "(the password of wrap)")
		return 0, fault.With(fmt.Errorf("the program could not run init in an empty module (exit code %d): %s", code,
			outside.End(said, 1000)), "check the installation of the program, and its settings, for example the file in TF_CLI_CONFIG_FILE")
	}
	found, err := ReadRecord(filepath.Join(dir, data))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return found.Backend.Hash, err
}
