package wrap

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
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// traces are the files in which Terraform leaves states beside a backend.
type traces struct {
	*invocation
	seen map[string][sha256.Size]byte // :: name → digest of what there is
}

const errored = "errored.tfstate"

// recovers is what writes it.
const recovers = "statecrypt recover -config FILE"

// lookAround notes what is there before the run.
func (i *invocation) lookAround() *traces {
	t := &traces{invocation: i, seen: map[string][sha256.Size]byte{}}
	for _, name := range []string{errored, "terraform.tfstate", "terraform.tfstate.backup"} {
		t.seen[name], _, _ = digest(filepath.Join(i.dir, name))
	}
	return t
}

// digest is that of the content of a file, all zeros if it cannot be read.
func digest(path string) (sum [sha256.Size]byte, content []byte, err error) {
	content, err = readFile(path)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		sum = sha256.Sum256(content)
	}
	return sum, content, err
}

// checkErrored is about what an earlier run could not write. Nothing is changed beside it:
// what it has made is in no other state. The child would replace it by the next one, or,
// if it is sealed, print that.
func (i *invocation) checkErrored(stderr io.Writer) error {
	err := i.findErrored()
	switch {
	case err == nil || i.effect() == changes:
		return err
	case i.Name == "state push" && i.pushesErrored(): // without a look whether somebody has gone on
		return err
	}
	say(stderr, "warning: "+err.Error())
	return nil
}

// notePlaintext is about a state that a run has left whose wrap was killed: nobody has encrypted it.
func (i *invocation) notePlaintext(stderr io.Writer) {
	if i.leftInPlaintext() {
		say(stderr, "warning: "+errored+" holds a state in plaintext, which an earlier run could not write")
	}
}

func (i *invocation) leftInPlaintext() bool {
	path := filepath.Join(i.dir, errored)
	if isLink(path) { // which a run that changes something refuses
		return false
	}
	content, err := readFile(path)
	info, _ := encryption.Inspect(content) // of the unknown kind, if it knows none
	return err == nil && info.Kind == encryption.KindState
}

// sealLeft encrypts such a state, under the lock of the state: the program of that run may still be writing it.
func (p *proxy) sealLeft(ctx context.Context) {
	if !p.call.leftInPlaintext() {
		return
	}
	path := filepath.Join(p.call.dir, errored)
	others := replace.OtherNames(path)
	err := p.backend.underLock(ctx, "statecrypt wrap", func() error {
		content, err := readFile(path)
		if err != nil {
			return keyfile.Reason(err)
		}
		if _, _, err := store.Label(content); err != nil || !json.Valid(content) {
			return errors.New("it is not whole; its program may still be writing it")
		}
		sealed, _, err := Seal(ctx, p.State, content)
		if err == nil {
			err = replace.Name(ctx, path, sealed)
		}
		if err == nil {
			p.memory.moves(ctx, content, sealed)
		}
		return err
	})
	if err != nil {
		say(p.Stderr, "warning: "+errored+" stays in plaintext: "+words.Seal(err))
		return
	}
	tellSealed(p.Stderr, sealedInPlace, others)
}

const sealedInPlace = errored + " is encrypted now; " + recovers + " writes it"

// tellSealed says where a state is encrypted now that could not be written.
func tellSealed(stderr io.Writer, where, others string) {
	say(stderr, where)
	if others != "" {
		say(stderr, "warning: "+errored+": "+others)
	}
}

// pushesErrored reports whether the argument is that state, by whatever name.
func (i *invocation) pushesErrored() bool {
	if len(i.args) == 0 {
		return false
	}
	pushed, err := readFile(join(i.dir, i.args[0]))
	return err == nil && slices.ContainsFunc([]string{filepath.Join(i.dir, errored), i.atHome()}, func(path string) bool {
		left, err := readFile(path)
		return err == nil && bytes.Equal(pushed, left)
	})
}

// findErrored looks where Terraform leaves such a state, and where wrap does.
func (i *invocation) findErrored() error {
	err := asErrored(filepath.Join(i.dir, errored), errored)
	if path := i.atHome(); err == nil && path != "" {
		err = asErrored(path, path)
	}
	return err
}

func asErrored(path, name string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > maxState {
		return fmt.Errorf("%s may hold the only copy of a state, in plaintext, and is larger than the %d bytes that wrap writes; keep it, and "+
			"store it without wrap", outside.Line(name, 300), maxState)
	}
	content, err := readFile(path)
	if isLink(path) { // the child would write to wherever it leads
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
		return fmt.Errorf("%s is in the way of a state that cannot be written, so move it away: %w", name, keyfile.Reason(err))
	case info.Kind != encryption.KindEmpty:
		return fmt.Errorf("%s holds a state that could not be written; %s writes it", name, recovers)
	}
	return nil
}

// atHome is where wrap leaves a state of this module, "" if there is no home directory.
func (i *invocation) atHome() string {
	home, err := world.Home()
	if err != nil {
		return ""
	}
	return filepath.Join(home, "errored-"+i.id()+".tfstate")
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// canLeave reports whether the child can leave a state in the folder of the module, and wrap the
// encrypted one beside it, which then takes its place. If the child cannot, it prints the state, or
// says that it has left it. The bytes are random, because some file systems compress the rest.
func (i *invocation) canLeave(plain, sealed int) bool {
	if info, err := os.Lstat(filepath.Join(i.dir, errored)); err == nil && !info.Mode().IsRegular() {
		return false
	}
	f, err := os.CreateTemp(i.dir, "."+errored+".*")
	if err != nil {
		return false
	}
	const beside = 64 << 10 // bytes, for the rest of blocks, and the notes of the memory
	_, err = io.CopyN(f, rand.Reader, int64(plain)+int64(sealed)+beside)
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())) == nil
}

// save keeps a sealed state that the child cannot leave, and says where it is, and what writes it: if
// nothing can be written, it is here.
func (i *invocation) save(ctx context.Context, sealed []byte) (where string) {
	if i.saveInFile(ctx, sealed, filepath.Join(i.dir, errored)) {
		return i.whereSaved()
	}
	return "this text, in base64, and once it is decoded, " + recovers + " and the name of its file write it: " +
		base64.StdEncoding.EncodeToString(sealed)
}

// saveInFile keeps a sealed state in the home directory, in the folder for temporary files, or at one
// more path. It takes the place of the file that this run has saved before, and of no other, and is on the
// disk if the result is true.
func (i *invocation) saveInFile(ctx context.Context, sealed []byte, more ...string) bool {
	paths := []string{i.atHome(), i.saved}
	if _, err := os.Lstat(paths[0]); paths[0] != i.saved && !errors.Is(err, fs.ErrNotExist) {
		paths[0] = "" // somebody else's, or there is no home directory
	}
	temporary, err := os.MkdirTemp("", "errored-")
	if err == nil {
		paths = append(paths, filepath.Join(temporary, errored))
	}
	paths = append(paths, more...)
	at := slices.IndexFunc(paths, func(path string) bool {
		return path != "" && replace.Name(ctx, path, sealed) == nil && replace.SyncFolder(filepath.Dir(path)) == nil
	})
	_ = os.Remove(temporary) // if nothing is in it
	if at < 0 {
		return false
	}
	if paths[at] != i.saved {
		_ = os.Remove(i.saved) // an older one, if there is one
		i.saved = paths[at]
	}
	return true
}

// whereSaved is the name of that file, and the command that writes it: in the home directory, and in the folder of
// the module, that finds it.
func (i *invocation) whereSaved() string {
	name, named := outside.Line(i.saved, 300), ""
	if i.saved != i.atHome() && filepath.Dir(i.saved) != i.dir {
		named = " " + name
	}
	return name + ", and " + recovers + named + " writes it"
}

// follow deals with what the run has left: a state that could not be written is
// sealed in place, and any other in plaintext is an error.
func (t *traces) follow(ctx context.Context, o Options, m *memory) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(t.seen)) {
		path := filepath.Join(t.dir, name)
		sum, content, err := digest(path)
		if sum == t.seen[name] || errors.Is(err, os.ErrNotExist) {
			continue
		}
		kept := filepath.Ext(name) != ".backup" && t.keeps(path)
		if name == errored && isLink(path) { // it was made during the run
			to, _ := filepath.EvalSymlinks(path)
			errs = append(errs, fmt.Errorf("%s is a link to %s, which may hold a state in plaintext, and stays as it is; if it does, move it "+
				"here in place of the link, and %s writes it", name, outside.Quoted(to, 300), recovers))
			continue
		}
		if err != nil && kept { // somebody may have locked it
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s may hold a state that is not encrypted, and cannot be read: %w", name, keyfile.Reason(err)))
			continue
		}
		if info, err := encryption.Inspect(content); err == nil && info.Kind == encryption.KindEncrypted {
			continue
		}
		if kept && len(content) == 0 {
			continue
		}
		if kept {
			errs = append(errs, fmt.Errorf("somebody other than wrap has written to %s, and what is there now is not encrypted; encrypt it by "+
				"init with -encrypt-existing, or restore the state", name))
			continue
		}
		if name != errored {
			errs = append(errs, fmt.Errorf("a state that is not encrypted was written to %s; if it is in the backend, delete that file", name))
			continue
		}
		errs = append(errs, t.sealErrored(ctx, o, m, path, content))
	}
	return errors.Join(errs...)
}

func (t *traces) sealErrored(ctx context.Context, o Options, m *memory, path string, content []byte) error {
	others := replace.OtherNames(path)
	sealed, again, err := Seal(ctx, o.State, content)
	if sealed != nil && again == nil && !errors.Is(err, encryption.ErrNoKey) {
		err = nil // what opens it has gone, and it was rehearsed; plaintext would be worse
	}
	where := sealedInPlace
	if err == nil {
		err = replace.Name(ctx, path, sealed)
		if err != nil && t.saveInFile(ctx, sealed) {
			where = errored + " could not be encrypted in its place (" + keyfile.Reason(err).Error() + "), and is deleted. It is encrypted in " +
				t.whereSaved()
			if err = os.Remove(path); err != nil {
				err = os.Truncate(path, 0)
			}
		}
	}
	if err != nil {
		m.leave(ctx, content)
		return fmt.Errorf("%s holds the state in plaintext, and cannot be encrypted: %w; once that is mended, %s writes it", errored,
			keyfile.Reason(err), recovers)
	}
	m.leave(ctx, sealed)
	tellSealed(o.Stderr, where, others)
	return nil
}
