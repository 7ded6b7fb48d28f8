package states

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// Leftover finds and encrypts the files in which Terraform leaves states outside the backend, and saves states that
// Terraform cannot leave in a file.
type Leftover struct {
	dir     string // the folder of the module
	home    string // the file in which wrap saves a state of this module, or "" without a home directory
	target  encryption.Target
	backend *Backend
	memory  *Memory
	say     func(text string)

	// Lock is the lock that the run could not release, or nil. If there is a leftover, the message about it says what to
	// do about both, and Lock becomes nil.
	Lock *LockLeftError

	savedAt string                       // the file in which this run saved a state, or ""
	seen    map[string][sha256.Size]byte // digests of the files before the run, keyed by file name
}

const Errored = "errored.tfstate"

// recovers is the command that writes a leftover to the backend.
const recovers = "statecrypt recover -config " + fault.Config

// NewLeftover returns the Leftover for a module. It records the digests of the files that exist before the run.
func NewLeftover(m *module.Module, g *Guard) *Leftover {
	l := &Leftover{
		dir: m.Dir, target: g.Target, backend: g.Backend, memory: g.Memory, say: g.Say, seen: map[string][sha256.Size]byte{},
	}
	for _, name := range []string{Errored, "terraform.tfstate", "terraform.tfstate.backup"} {
		l.seen[name], _, _ = digest(filepath.Join(l.dir, name))
	}
	if home, err := world.Home(); err == nil {
		l.home = filepath.Join(home, "errored-"+m.ID()+".tfstate")
	}
	return l
}

// digest returns the digest and the content of a file. A missing file counts as empty. If the file cannot be read, the
// digest is all zeros.
func digest(path string) (sum [sha256.Size]byte, content []byte, err error) {
	content, err = files.ReadFile(path)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		sum = sha256.Sum256(content)
	}
	return sum, content, err
}

// Check returns an error if an earlier run left a state, and this run would change resources, or push that state from
// the file called pushed. In all other cases, it only warns. The resources of the earlier run are recorded in no other
// state. The child would overwrite the leftover, or print an encrypted one. A push would skip the check whether another
// run has written to the backend since.
func (l *Leftover) Check(changes bool, pushed string) error {
	err := l.find()
	if err != nil && !changes && (pushed == "" || !l.isIn(pushed)) {
		l.say("warning: " + err.Error())
		return nil
	}
	return err
}

// NotePlaintext warns about a plaintext errored.tfstate in dir. wrap leaves such a file unencrypted if it is killed.
func NotePlaintext(dir string, say func(text string)) {
	if isInPlaintext(dir) {
		say("warning: " + Errored + " holds a plaintext state that an earlier run could not write")
	}
}

func isInPlaintext(dir string) bool {
	path := filepath.Join(dir, Errored)
	if files.IsLink(path) { // a run that changes resources refuses a link
		return false
	}
	content, err := files.ReadFile(path)
	info, _ := encryption.Inspect(content) // if Inspect returns an error, the kind is unknown
	return err == nil && info.Kind == encryption.KindState
}

// Seal encrypts a plaintext errored.tfstate in place. It takes the state lock, because the process that left the file
// behind may still be writing to it. If it fails, it prints a warning.
func (l *Leftover) Seal(ctx context.Context) {
	if !isInPlaintext(l.dir) {
		return
	}
	path := filepath.Join(l.dir, Errored)
	others := replace.OtherNames(path)
	err := l.backend.underLock(ctx, "statecrypt wrap", func() error {
		content, err := files.ReadFile(path)
		if err != nil {
			return keyfile.Reason(err)
		}
		if _, _, err := store.Label(content); err != nil || !json.Valid(content) {
			return errors.New("the file is incomplete, perhaps because the program is still writing it")
		}
		sealed, _, err := Seal(ctx, l.target, content, nil)
		if err == nil {
			err = replace.Name(ctx, path, sealed)
		}
		if err == nil {
			l.memory.moves(ctx, content, sealed)
		}
		return err
	})
	if err != nil {
		l.say("warning: " + Errored + " is still in plaintext: " + words.Seal(err))
		return
	}
	l.tellSealed(sealedInPlace, others)
}

const sealedInPlace = Errored + " is now encrypted; to write it to the backend, run " + recovers

// tellSealed prints where the leftover is now encrypted, and warns about other names of the plaintext file.
func (l *Leftover) tellSealed(where, others string) {
	l.say(where)
	if others != "" {
		l.say("warning: " + Errored + ": " + others)
	}
}

// isIn reports whether the file at path has the same content as a leftover.
func (l *Leftover) isIn(path string) bool {
	pushed, err := files.ReadFile(path)
	return err == nil && slices.ContainsFunc([]string{filepath.Join(l.dir, Errored), l.home}, func(path string) bool {
		unwritten, err := files.ReadFile(path)
		return err == nil && bytes.Equal(pushed, unwritten)
	})
}

// find returns an error if there is a leftover of Terraform or wrap, or if something else has the name of one.
func (l *Leftover) find() error {
	err := asErrored(filepath.Join(l.dir, Errored), Errored)
	if err == nil && l.home != "" {
		err = asErrored(l.home, l.home)
	}
	return err
}

func asErrored(path, name string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > files.MaxState {
		return fmt.Errorf("%s may contain the only copy of a state, but is larger than the %d bytes that wrap can write; keep the "+
			"file, and store the state without wrap", outside.Line(name, 300), files.MaxState)
	}
	content, err := files.ReadFile(path)
	if files.IsLink(path) { // the child would write to the target of the link
		err = errors.New("it is a link")
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	name = outside.Line(name, 300)
	var info encryption.Info
	if err == nil {
		info, err = encryption.Inspect(content)
	}
	if err == nil && (info.Kind == encryption.KindUnknown || info.Kind == encryption.KindPlan) {
		err = errors.New("it is not a state")
	}
	switch {
	case err != nil:
		return fmt.Errorf("a run needs the file name %s for a state that it cannot write, so move the existing file elsewhere: %w", name,
			keyfile.Reason(err))
	case info.Kind != encryption.KindEmpty:
		return fmt.Errorf("%s holds a state that could not be written; to write it to the backend, run %s", name, recovers)
	}
	return nil
}

// locate returns the path of the only leftover, and its name for messages. It returns an error if there is no leftover,
// or more than one.
func (l *Leftover) locate() (path, name string, err error) {
	var paths, names []string
	for _, path := range []string{filepath.Join(l.dir, Errored), l.home} {
		content, err := files.ReadFile(path)
		if path == "" || errors.Is(err, os.ErrNotExist) || err == nil && len(content) == 0 || l.backend.Keeps(path) {
			continue
		}
		name := outside.Line(path, 300)
		if filepath.Dir(path) == l.dir {
			name = Errored
		}
		paths, names = append(paths, path), append(names, name)
	}
	switch len(paths) {
	case 0:
		return "", "", fmt.Errorf("there is no %s in this folder, and no unwritten state of this module in the home directory; "+
			"if the run reported another file, add the name of that file", Errored)
	case 1:
		return paths[0], names[0], nil
	}
	return "", "", fmt.Errorf("both %s and %s exist; compare their serials with statecrypt inspect. Run this command with the name of the "+
		"newer file. Then delete both files", names[0], names[1])
}

// CanLeave reports whether the module folder has room for a plaintext state of plain bytes from the child, and for the
// encrypted state of sealed bytes with which wrap then replaces it. Without that room, the child prints the state, or
// wrongly claims to have saved it. The test writes random bytes, because some file systems compress other data.
func (l *Leftover) CanLeave(plain, sealed int) bool {
	if info, err := os.Lstat(filepath.Join(l.dir, Errored)); err == nil && !info.Mode().IsRegular() {
		return false
	}
	f, err := os.CreateTemp(l.dir, "."+Errored+".*")
	if err != nil {
		return false
	}
	const beside = 64 << 10 // bytes for partly filled blocks and for the files of Memory
	_, err = io.CopyN(f, rand.Reader, int64(plain)+int64(sealed)+beside)
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())) == nil
}

// Save saves an encrypted state that the child cannot save. It returns a text that names the saved file and the command
// that writes the state to the backend. If no file can be written, the text contains the state in base64.
func (l *Leftover) Save(ctx context.Context, sealed []byte) (where string) {
	if l.saveInFile(ctx, sealed, filepath.Join(l.dir, Errored)) {
		return l.whereSaved()
	}
	return "this base64 text; decode it into a file, and run " + recovers + " with the name of that file: " +
		base64.StdEncoding.EncodeToString(sealed)
}

// saveInFile saves an encrypted state in the first place that works: the home directory, the file this run saved
// before, the temporary folder, or the paths in more. In the home directory, it does not replace a file from another
// run. It returns true once the state is on disk.
func (l *Leftover) saveInFile(ctx context.Context, sealed []byte, more ...string) bool {
	paths := []string{l.home, l.savedAt}
	if _, err := os.Lstat(paths[0]); paths[0] != l.savedAt && !errors.Is(err, fs.ErrNotExist) {
		paths[0] = "" // there is a file from another run, or no home directory
	}
	temporary, err := os.MkdirTemp("", "errored-")
	if err == nil {
		paths = append(paths, filepath.Join(temporary, Errored))
	}
	paths = append(paths, more...)
	at := slices.IndexFunc(paths, func(path string) bool {
		return path != "" && replace.Name(ctx, path, sealed) == nil && replace.SyncFolder(filepath.Dir(path)) == nil
	})
	_ = os.Remove(temporary) // succeeds only if nothing was saved there
	if at < 0 {
		return false
	}
	if paths[at] != l.savedAt {
		_ = os.Remove(l.savedAt) // an older state from this run
		l.savedAt = paths[at]
	}
	return true
}

// whereSaved returns a text with the name of the saved file and the command that writes its state to the backend. If
// the file is in the home directory or in the module folder, the command finds it without a name.
func (l *Leftover) whereSaved() string {
	name, named := outside.Line(l.savedAt, 300), ""
	if l.savedAt != l.home && filepath.Dir(l.savedAt) != l.dir {
		named = " " + name
	}
	return name + "; to write it to the backend, run " + recovers + named
}

// Follow handles the files that the run left behind. It encrypts errored.tfstate in place, and returns an error for any
// other plaintext state.
func (l *Leftover) Follow(ctx context.Context) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(l.seen)) {
		path := filepath.Join(l.dir, name)
		sum, content, err := digest(path)
		if sum == l.seen[name] || errors.Is(err, os.ErrNotExist) {
			continue
		}
		kept := filepath.Ext(name) != ".backup" && l.backend.Keeps(path)
		if name == Errored && files.IsLink(path) { // created during the run
			to, _ := filepath.EvalSymlinks(path)
			errs = append(errs, fmt.Errorf("%s is a link, and its target %s may contain a plaintext state; if the target contains a state, "+
				"replace the link with that file. Then, to write the state to the backend, run %s", name, outside.Quoted(to, 300), recovers))
			continue
		}
		if err != nil && kept { // another program may have locked it
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s may contain a plaintext state, but cannot be read: %w", name, keyfile.Reason(err)))
			continue
		}
		if info, err := encryption.Inspect(content); err == nil && info.Kind == encryption.KindEncrypted {
			continue
		}
		if kept && len(content) == 0 {
			continue
		}
		if kept {
			errs = append(errs, fmt.Errorf("another program wrote a plaintext state to %s; to encrypt that state, run "+moves+
				". Otherwise, restore the encrypted state", name))
			continue
		}
		if name != Errored {
			errs = append(errs, fmt.Errorf("a plaintext state was written to %s; if the state is also in the backend, delete that file", name))
			continue
		}
		errs = append(errs, l.sealErrored(ctx, path, content))
	}
	return errors.Join(errs...)
}

func (l *Leftover) sealErrored(ctx context.Context, path string, content []byte) error {
	others := replace.OtherNames(path)
	sealed, again, err := Seal(ctx, l.target, content, nil)
	if sealed != nil && again == nil && !errors.Is(err, encryption.ErrNoKey) {
		err = nil // the key for decryption became unavailable after the rehearsal; plaintext would be worse
	}
	where, moved := sealedInPlace, false
	if err == nil {
		err = replace.Name(ctx, path, sealed)
		if moved = err != nil && l.saveInFile(ctx, sealed); moved {
			where = Errored + " could not be encrypted in place (" + keyfile.Reason(err).Error() + "), so it was deleted. " +
				"The encrypted state is in " + l.whereSaved()
			if err = os.Remove(path); err != nil {
				err = os.Truncate(path, 0)
			}
		}
	}
	if err != nil {
		l.memory.Leave(ctx, content)
		return fmt.Errorf("%s contains the state in plaintext, and could not be encrypted: %w. Correct that mistake. Then, to write the "+
			"state to the backend, run %s", Errored, keyfile.Reason(err), recovers)
	}
	l.memory.Leave(ctx, sealed)
	if l.Lock != nil && !moved {
		where = fmt.Sprintf("%s is now encrypted, and the lock %s was not released; to write the state to the backend and release the lock, "+
			"run %s", Errored, outside.Quoted(l.Lock.ID, 100), store.Proposed(recovers+" -unlock", l.Lock.ID, recovers))
		l.Lock = nil
	}
	l.tellSealed(where, others)
	return nil
}
