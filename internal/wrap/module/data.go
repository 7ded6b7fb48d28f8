package module

import (
	"cmp"
	"context"
	"crypto/rand"
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

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
)

// OwnData returns the path of the data directory under wrap, relative to the module. The name contains the module ID.
// The directory holds the modules and providers shared by all runs, and a record only while init runs. Init installs
// providers there. Without wrap, Terraform and OpenTofu do not see them, but a plugin cache serves both.
func (m *Module) OwnData() string { return files.OwnFolder + "/" + m.ID() }

// ID returns a text that identifies the module on this machine.
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

// HideBackend makes init -backend=false find no state until end is called.
func (m *Module) HideBackend(ctx context.Context) (end func(), err error) {
	end, err = m.lock()
	if err == nil {
		err = writeText(ctx, m.own(), noState())
	}
	return end, err
}

// lock makes other runs that initialize the module wait until end is called. The end function also removes the record.
func (m *Module) lock() (end func(), err error) {
	at, err := m.own().Open(true)
	if err != nil {
		return func() {}, err
	}
	lock, err := files.LockOwn(at)
	return func() {
		_ = at.Remove(recordName)
		_ = lock.Close() // Close accepts a nil file
		_ = at.Close()
	}, err
}

// RunData is the data directory of one run, with the record of its backend, which no other run sees. Descendants of the
// child inherit the path of the directory. The path is relative to the module, so in another module, there is no record
// at this path. Without a record, Terraform and OpenTofu refuse to run, even if wrap is in use there too.
type RunData struct {
	Record
	Path  string   // the path of the data directory, relative to the module
	Alive *os.File // shows others that the run is still active, while the child has the file open

	module    *Module
	run       files.Directory
	forgotten atomic.Bool
	end       func()
}

const runPrefix = "run-"

// Begin creates the data directory of a run, and removes the directories of killed runs.
func (m *Module) Begin(settings Settings) (d *RunData, err error) {
	at, err := m.own().Open(true)
	if err != nil {
		return nil, cannotBegin(err)
	}
	defer at.Close()
	entries, _ := fs.ReadDir(at.FS(), ".")
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), runPrefix) && files.IsAbandoned(m.own().File(e.Name())) {
			_ = at.RemoveAll(e.Name())
		}
	}
	name := runPrefix + strings.ToLower(rand.Text())
	if err := at.Mkdir(name, 0o700); err != nil {
		return nil, cannotBegin(err)
	}
	run := files.Own(m.Dir, m.ID(), name)
	return &RunData{
		Record: Record{run, settings}, Path: m.OwnData() + "/" + name, Alive: files.Mark(run.File("")), module: m, run: run, end: func() {},
	}, nil
}

func cannotBegin(err error) error {
	return fmt.Errorf("the folder of the run, in %s, cannot be made: %w", files.OwnFolder, keyfile.Reason(err))
}

// Remove removes the directory.
func (d *RunData) Remove() {
	d.end()
	_ = os.RemoveAll(d.run.File(""))
	_ = d.Alive.Close()              // Close accepts a nil file
	_ = os.RemoveAll(d.run.File("")) // for systems that do not remove open files
}

// Forget removes the record, once the child has read it.
func (d *RunData) Forget() {
	d.forgotten.Store(true)
	_ = os.Remove(d.run.File(recordName))
}

// Check returns an error if, after the run, the record does not name the proxy. The record still exists if the child
// did not request its state, or used another backend.
func (d *RunData) Check() error {
	err := d.Record.Check()
	if d.forgotten.Load() && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Initialize makes this child use the data directory shared by all runs, and locks it for other runs. It returns the
// name of a file for -backend-config.
func (d *RunData) Initialize(ctx context.Context) (config string, err error) {
	if d.end, err = d.module.lock(); err != nil {
		return "", err
	}
	d.Data, d.Path = d.module.own(), d.module.OwnData()
	config = d.run.File("backend.json")
	return config, errors.Join(writeSettings(config, d.Settings), d.Write(ctx, 0))
}

func writeSettings(path string, s Settings) error {
	text, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	return err
}

// Share links to the modules and providers shared by all runs, and writes the record that init would write.
func (d *RunData) Share(ctx context.Context, run func(dir, data string, words ...string) error) error {
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
	return fmt.Errorf("the folder of the run, %s, cannot be filled: %w", outside.Quoted(d.run.File(""), 300), keyfile.Reason(err))
}

// link makes path lead to target, which is relative to the folder of path. If the user cannot create symbolic links on
// this system, link creates hard links to the files instead.
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
		return os.Link(at, to) //nolint:gosec // likewise
	})
}

// hash returns the hash of the module's block, as the program computes it. It makes the program initialize a module
// that has only the block, and no state. The folder is inside the module, so that a version manager chooses the same
// program. If the program writes no record, hash returns 0, and the program will later ask for init.
func (d *RunData) hash(run func(dir, data string, words ...string) error) (uint64, error) {
	const data = "data"
	dir := d.run.File("block")
	none := maps.Clone(d.Settings)
	none["address"] = fmt.Sprint(d.Settings["address"], "/none")
	config := filepath.Join(dir, "backend.json")
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		defer os.RemoveAll(dir)
		err = writeSettings(config, none)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "main.tf"), []byte("terraform {\n  backend \"http\" {}\n}\n"), 0o600)
	}
	if err != nil {
		return 0, d.cannotFill(err)
	}
	if err := run(dir, data, "init", "-input=false", "-no-color", "-backend-config="+config); err != nil {
		return 0, err
	}
	found, err := ReadRecord(filepath.Join(dir, data))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return found.Backend.Hash, err
}
