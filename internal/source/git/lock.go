package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// terraform-backend-git locks the state at a path by making the branch
// locks/<path>, which adds the file <path>.lock to whatever the state's branch
// held at that time. So the branch also holds a copy of the state, which may
// be an old one; nothing but the added file is read there.
const (
	remoteLocks = "refs/heads/locks/"
	localLocks  = "refs/statecrypt/locks/"

	maxLockNames = 1 << 20  // bytes: about ten thousand locks
	maxLockTree  = 16 << 20 // bytes of one folder in a lock's branch
)

// onLocked is what a read does about a lock.
type onLocked string

const (
	lockIgnored onLocked = "ignore"
	lockWarns   onLocked = "warn"
	lockFails   onLocked = "error"
)

// accept decides about a lock, nil when there is none, and about the reason
// why it is not known, or not known well. The notice is for the user, "" when
// there is nothing to say.
func (o onLocked) accept(lock *source.Lock, unread error) (notice string, err error) {
	switch {
	case o == lockIgnored || lock == nil && unread == nil:
		return "", nil
	case lock == nil:
		notice = fmt.Sprintf("whether the state is locked is not known: %v", unread)
	case unread != nil:
		notice = fmt.Sprintf("the state is locked, by whom cannot be read: %v", unread)
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

// lockOf returns the id of the description of the lock on a path, "" when it
// has none, and whether there is a lock. As in [tree.find], a name may be
// spelled with other code points for the same characters.
func (t *tree) lockOf(name string) (id string, locked bool) {
	id, locked = t.locks[name]
	if locked || isASCII(name) {
		return id, locked
	}
	for other, id := range t.locks {
		if norm.NFC.String(other) == norm.NFC.String(name) {
			return id, true
		}
	}
	return "", false
}

// lock returns the lock on a path, nil when there is none. With an error,
// a lock is empty because it cannot be read, and none may be there or not.
func (t *tree) lock(name string, blobs map[string]blob) (*source.Lock, error) {
	id, locked := t.lockOf(name)
	if !locked {
		return nil, t.locksErr
	}
	if id == "" {
		return &source.Lock{}, fmt.Errorf("the branch locks/%s holds no file %s.lock", shown(name), shown(name))
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
// What goes wrong is for those to know who care for locks.
func (d *repository) listLocks(ctx context.Context, list *tree) error {
	if d.withoutLocks {
		list.locksErr = errors.New("the locks of this repository have names that cannot be stored on this system")
		return nil
	}
	out, err := d.output(ctx, maxLockNames, "for-each-ref", "--format=%(refname)", localLocks)
	if err == nil && len(out) > 0 {
		list.locks, err = d.findDescriptions(ctx, strings.Fields(string(out)))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		list.locks, list.locksErr = nil, errors.New("the locks of this repository cannot be listed")
	}
	return nil
}

// findDescriptions looks for the added file of each lock's branch in the
// folder where it belongs. The folders are here already, which the file itself
// is not: git must not be asked for it now, or it would fetch it.
func (d *repository) findDescriptions(ctx context.Context, refs []string) (map[string]string, error) {
	var in strings.Builder
	for _, ref := range refs { // neither refs nor, hence, paths hold spaces or line breaks
		folder := path.Dir(strings.TrimPrefix(ref, localLocks)) + "/" // with the slash, it is a folder or missing
		in.WriteString(ref + ":" + strings.TrimPrefix(folder, "./") + "\n")
	}
	locks := map[string]string{}
	_, err := d.git(ctx, strings.NewReader(in.String()), func(stdout io.Reader) error {
		r := bufio.NewReader(stdout)
		for _, ref := range refs {
			name := strings.TrimPrefix(ref, localLocks)
			folder, err := readFolder(r)
			if err != nil {
				return err
			}
			locks[name] = findInFolder(folder, path.Base(name)+".lock", idBytes(d.format))
		}
		return nil
	}, "cat-file", "--batch")
	return locks, err
}

// readFolder reads the next object of git-cat-file(1) BATCH OUTPUT; nil when it
// is none, no folder or too large.
func readFolder(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, errObjects
	}
	if strings.HasSuffix(line, " missing\n") {
		return nil, nil
	}
	_, kind, size, err := parseObjectHeader(line)
	if err != nil {
		return nil, err
	}
	var data []byte
	if kind == "tree" && size <= maxLockTree {
		data = make([]byte, size)
		_, err = io.ReadFull(r, data)
	} else {
		_, err = io.CopyN(io.Discard, r, size)
	}
	if end, e := r.ReadByte(); err != nil || e != nil || end != '\n' {
		return nil, errObjects
	}
	return data, nil
}

func idBytes(format string) int {
	if format == "sha256" {
		return 32
	}
	return 20
}

// findInFolder returns the id of a file in a tree object, "" when it is not
// there: "<mode> <name>\x00<id>", again and again.
func findInFolder(folder []byte, name string, idSize int) string {
	for len(folder) > 0 {
		head, rest, ok := bytes.Cut(folder, []byte{0})
		mode, n, named := bytes.Cut(head, []byte{' '})
		if !ok || !named || len(rest) < idSize {
			return ""
		}
		if string(n) == name {
			switch string(mode) {
			case modeFile, modeExecutable, modeGroup:
				return fmt.Sprintf("%x", rest[:idSize])
			}
			return ""
		}
		folder = rest[idSize:]
	}
	return ""
}
