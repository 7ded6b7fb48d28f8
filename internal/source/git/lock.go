package git

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// terraform-backend-git locks the state at a path by making the branch
// locks/<path>, which adds the file <path>.lock to whatever the state's branch
// held at that time. So the branch also holds a copy of the state, which may
// be an old one; nothing but the added file is read there.
const (
	remoteLocks = "refs/heads/locks/"
	localLocks  = "refs/statecrypt/locks/"

	maxLockNames = 1 << 20  // bytes: about ten thousand locks, with the ids of folders
	maxLockTree  = 16 << 20 // bytes of one folder in a lock's branch
)

// onLocked is what a read does about a lock.
type onLocked string

const (
	lockIgnored onLocked = "ignore"
	lockWarns   onLocked = "warn"
	lockFails   onLocked = "error"
)

// accept decides about a lock, nil if there is none, and about the reason why it
// cannot be read, nil if it can. The notice is for the user, "" if there is
// nothing to say.
func (o onLocked) accept(lock *source.Lock, unread error) (notice string, err error) {
	switch {
	case o == lockIgnored || lock == nil && unread == nil:
		return "", nil
	case lock == nil:
		notice = fmt.Sprintf("whether the state is locked is not known: %v", unread)
	case unread != nil:
		notice = fmt.Sprintf("the state is locked, and who holds the lock cannot be read: %v", unread)
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

// lockOf returns the id of the description of the lock on a path, "" if it has
// none, and whether there is a lock. As in [tree.find], a name may have other
// code points for the same characters.
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

// idOfFile is "" for anything else.
func (e entry) idOfFile() string {
	switch e.mode {
	case modeFile, modeExecutable, modeGroup:
		return e.id
	}
	return ""
}

// lock returns the lock on a path, nil if there is none. With an error, an empty
// lock cannot be read, and a nil lock may exist.
func (t *tree) lock(name string, blobs map[string]blob) (*source.Lock, error) {
	id, locked := t.lockOf(name)
	if !locked {
		return nil, t.locksErr
	}
	if id == "" {
		return &source.Lock{}, fmt.Errorf("the branch locks/%s holds no file %s.lock; delete that branch if nobody has the "+
			"lock", shown(name), shown(name))
	}
	b, ok := blobs[id]
	if !ok {
		return &source.Lock{}, errors.New("git did not deliver the lock")
	}
	if b.size > source.MaxLock { // and so not read
		return &source.Lock{}, fmt.Errorf("the lock's description is larger than %d bytes", source.MaxLock)
	}
	return source.ParseLock(b.data)
}

// listLocks notes in list which paths are locked, and where that is described.
// An error is only for those who care about locks.
func (d *repository) listLocks(ctx context.Context, list *tree) error {
	if d.withoutLocks {
		list.locksErr = errors.New("the locks of this repository have names that cannot be stored on this system")
		return nil
	}
	format := "--format=%(refname)"
	if list.root != "" {
		format += ":%(tree)" // no ref has a colon
	}
	out, err := d.output(ctx, maxLockNames, "for-each-ref", format, localLocks)
	switch refs := strings.Fields(string(out)); {
	case err != nil || len(refs) == 0:
	case list.root != "":
		list.locks, list.lockRoots = d.findLockRoots(refs)
	default:
		list.locks, err = d.findDescriptions(ctx, refs)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		list.locks, list.lockRoots, list.locksErr = nil, nil, errors.New("the locks of this repository cannot be listed")
	}
	return nil
}

// findLockRoots notes where the folders of the locks begin; which of them are read is
// up to [repository.walk].
func (d *repository) findLockRoots(refs []string) (locks, roots map[string]string) {
	locks, roots = map[string]string{}, map[string]string{}
	for _, ref := range refs {
		name, root, _ := strings.Cut(strings.TrimPrefix(ref, localLocks), ":")
		locks[name] = ""
		if objectID.MatchString(root) {
			roots[name], d.here[root] = root, true
		}
	}
	return locks, roots
}

// findDescriptions looks for the added file of each lock's branch in its folder.
// The folders have been fetched, the file itself has not: to name it to git now
// would have git fetch it.
func (d *repository) findDescriptions(ctx context.Context, refs []string) (map[string]string, error) {
	var in strings.Builder
	for _, ref := range refs { // neither refs nor, hence, paths hold spaces or line breaks
		folder := path.Dir(strings.TrimPrefix(ref, localLocks)) + "/" // with the slash, it is a folder or missing
		in.WriteString(ref + ":" + strings.TrimPrefix(folder, "./") + "\n")
	}
	locks := map[string]string{}
	idSize := (&tree{format: d.format}).idSize()
	_, err := d.git(ctx, strings.NewReader(in.String()), func(stdout io.Reader) error {
		r := bufio.NewReader(stdout)
		for _, ref := range refs {
			name := strings.TrimPrefix(ref, localLocks)
			folder, err := readFolder(r)
			if err != nil {
				return err
			}
			locks[name] = findInFolder(folder, path.Base(name)+".lock", idSize)
		}
		return nil
	}, "cat-file", "--batch")
	return locks, err
}

// readFolder reads the next folder; nil if it is missing, no folder or too large.
func readFolder(r *bufio.Reader) ([]byte, error) {
	_, _, folder, err := readObject(r, "tree", func(string) int64 { return maxLockTree })
	return folder.data, err
}

// findInFolder returns the id of a file in a folder, "" if it is not there.
func findInFolder(folder []byte, name string, idSize int) string {
	for e := range entries(folder, idSize) {
		if string(e.name) == name {
			return entry{mode: string(e.mode), id: hex.EncodeToString(e.id)}.idOfFile()
		}
	}
	return ""
}
