package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Terraform-backend-git locks the state at a path by creating the branch locks/<path>. The commit of that
// branch adds the file <path>.lock to the commit of the state's branch. The lock branch therefore also has a
// copy of the state, which may be old. Only the added file is read from it.
const (
	remoteLocks = "refs/heads/locks/"
	localLocks  = "refs/statecrypt/locks/"

	maxLockNames = 1 << 20 // size limit, in bytes, of lock names and their folder ids: about ten thousand locks
)

// onLocked says how a read treats a lock.
type onLocked string

const (
	lockIgnored onLocked = "ignore"
	lockWarns   onLocked = "warn"
	lockFails   onLocked = "error"
)

// accept returns an error if a lock forbids the read. Otherwise it returns a notice for the user, which may
// be empty. lock is nil if there is none; unread is the error from reading it.
func (o onLocked) accept(lock *source.Lock, unread error) (notice string, err error) {
	switch {
	case o == lockIgnored || lock == nil && unread == nil:
		return "", nil
	case lock == nil:
		notice = fmt.Sprintf("could not find out whether the state is locked: %v", unread)
	case unread != nil:
		notice = fmt.Sprintf("the state is locked, but the lock holder cannot be read: %v", unread)
	default:
		notice = "the state is locked " + describe(*lock)
	}
	if o == lockWarns {
		return notice, nil
	}
	return "", errors.New(notice + `; wait until the lock is released, or set on_locked to "warn" or "ignore"`)
}

func describe(l source.Lock) string {
	quoted := func(s string) string {
		if s == "" {
			return "unknown"
		}
		return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
	}
	return fmt.Sprintf("(who: %s, operation: %s, created: %s, id: %s)", quoted(l.Who), quoted(l.Operation), quoted(l.Created), quoted(l.ID))
}

// lockOf returns the id of the file that describes the lock on a path, and whether there is a lock. The id is
// empty if there is no such file. As in [tree.find], the file's name may use other Unicode code points for
// the same characters.
func (t *tree) lockOf(name string) (id string, locked bool) {
	name, locked = t.lockedName(name)
	if root := t.lockRoots[name]; root != "" {
		found, _ := (&tree{listing: t.along(root, name)}).find(name + ".lock")
		return found.idOfFile(), true
	}
	return t.locks[name], locked
}

func (t *tree) lockedName(name string) (as string, locked bool) {
	if _, locked = t.locks[name]; locked || isASCII(name) {
		return name, locked
	}
	for other := range t.locks {
		if sameName([]byte(other), name) {
			return other, true
		}
	}
	return name, false
}

// idOfFile returns the id of a regular file, or an empty string for any other entry.
func (e entry) idOfFile() string {
	switch e.mode {
	case modeFile, modeExecutable, modeGroup:
		return e.id
	}
	return ""
}

// lock returns the lock on a path, or nil if there is none. If it fails, an empty lock means that the path is
// locked but the lock cannot be read, and nil means that the path may be locked.
func (t *tree) lock(name string, blobs map[string]blob) (*source.Lock, error) {
	id, locked := t.lockOf(name)
	if !locked {
		return nil, t.locksErr
	}
	if id == "" {
		return &source.Lock{}, fmt.Errorf("the branch locks/%s contains no file %s.lock (if nobody holds the lock, delete that "+
			"branch)", shown(name), shown(name))
	}
	b, ok := blobs[id]
	if !ok {
		return &source.Lock{}, errors.New("git did not deliver the lock")
	}
	if b.size > source.MaxLock { // so its data was not read
		return &source.Lock{}, fmt.Errorf("the lock's description is larger than %d bytes", source.MaxLock)
	}
	return source.ParseLock(b.data)
}

// listLocks records the repository's locks in list. If that fails, it records list.locksErr instead of
// returning an error, because most reads ignore locks. It returns an error only if ctx is done.
func (d *repository) listLocks(ctx context.Context, list *tree) error {
	if d.withoutLocks {
		list.locksErr = errors.New("the locks of this repository have names that cannot be stored on this system")
		return nil
	}
	out, err := d.output(ctx, maxLockNames, "for-each-ref", "--format=%(refname):%(tree)", localLocks) // no ref contains a colon
	if err == nil {
		list.locks, list.lockRoots = d.findLockRoots(string(out))
		if list.root == "" {
			err = d.findDescriptions(ctx, list)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		list.locks, list.lockRoots, list.locksErr = nil, nil, errors.New("the locks of this repository cannot be listed")
	}
	return nil
}

// findLockRoots parses the list of locks. It returns two maps whose keys are the locked paths. The first has
// an empty string for each lock. The second has the root folder ids of the lock branches, which
// [repository.walk] reads if necessary.
func (d *repository) findLockRoots(refs string) (locks, roots map[string]string) {
	locks, roots = map[string]string{}, map[string]string{}
	for ref := range strings.Lines(refs) { // only the line break is removed, because a name may end with another blank
		name, root, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(ref, "\n"), localLocks), ":")
		locks[name] = ""
		if objectID.MatchString(root) {
			roots[name] = root
			if !d.allHere {
				d.here[root] = true
			}
		}
	}
	return locks, roots
}

// findDescriptions records which file describes each lock. It does so while all folders are present, because
// a later session would have to fetch them again. It does not fetch the file itself.
func (d *repository) findDescriptions(ctx context.Context, list *tree) error {
	var all []*want
	for name := range list.locks {
		all = append(all, &want{path: name})
	}
	grown, err := d.walk(ctx, list, all)
	if err != nil {
		return err
	}
	for name := range list.locks {
		list.locks[name], _ = grown.lockOf(name)
	}
	list.lockRoots = nil
	return nil
}
