package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// walk reads the folders above the batch's files, and above the descriptions of their locks, with at most one
// fetch per level. It returns a tree that contains these folders. It does not change t, which others may be
// reading.
func (d *repository) walk(ctx context.Context, t *tree, batch []*want) (*tree, error) {
	for {
		unread := t.unread(batch)
		if len(unread) == 0 {
			return t, nil
		}
		left := int64(maxListing)
		for _, folder := range t.folders {
			left -= int64(len(folder))
		}
		folders, err := d.fetchFolders(ctx, unread, left)
		if err != nil {
			return nil, err
		}
		grown := *t
		grown.folders = maps.Clone(t.folders)
		if grown.folders == nil {
			grown.folders = map[string][]byte{}
		}
		maps.Copy(grown.folders, folders)
		t = &grown
	}
}

// unread returns the ids of the folders above the batch's files that must be read next.
func (t *tree) unread(batch []*want) map[string]bool {
	ids := map[string]bool{}
	for _, w := range batch {
		roots := []string{t.root}
		if name, locked := t.lockedName(w.path); locked {
			roots = append(roots, t.lockRoots[name])
		}
		for _, root := range roots {
			if root != "" {
				t.follow(root, w.path, func(string, []byte) {}, func(id string) { ids[id] = true })
			}
		}
	}
	return ids
}

// toward returns a tree that lists the folders above name, as far as they have been read. It returns t itself
// if t lists everything.
func (t *tree) toward(name string) *tree {
	if t.root == "" {
		return t
	}
	return &tree{commit: t.commit, partial: true, listing: t.along(t.root, name)}
}

// along returns the entries of the folders above name, in the format of git ls-tree.
func (t *tree) along(root, name string) (listing []byte) {
	t.follow(root, name, func(prefix string, folder []byte) {
		for e := range entries(folder, t.idSize()) {
			listing = append(append(append(listing, modeNothing[len(e.mode):]...), e.mode...), " object "...)
			listing = append(append(hex.AppendEncode(listing, e.id), '\t'), prefix...)
			listing = append(append(listing, e.name...), 0)
		}
	}, func(string) {})
	return listing
}

// follow calls the function read for each folder above name, or the function unread for a folder that has not
// been read yet. The argument prefix of read is the folder's path, which precedes the names in the folder. As in
// [tree.find], several folders may have the same name in different Unicode code points.
func (t *tree) follow(root, name string, read func(prefix string, folder []byte), unread func(id string)) {
	level := map[string]string{"": root} // folder ids by prefix
	for rest := name; len(level) > 0; {
		part, after, more := strings.Cut(rest, "/")
		next := map[string]string{}
		for _, prefix := range slices.Sorted(maps.Keys(level)) {
			folder, ok := t.folders[level[prefix]]
			if !ok {
				unread(level[prefix])
				continue
			}
			read(prefix, folder)
			for e := range entries(folder, t.idSize()) {
				if more && e.isDirectory() && sameName(e.name, part) {
					next[prefix+string(e.name)+"/"] = hex.EncodeToString(e.id)
				}
			}
		}
		level, rest = next, after
	}
}

func sameName(a []byte, b string) bool {
	return string(a) == b || !isASCII(b) && !isASCII(string(a)) && norm.NFC.String(string(a)) == norm.NFC.String(b)
}

func (t *tree) idSize() int {
	if t.format == "sha256" {
		return 32
	}
	return 20
}

// fetchFolders returns the folders with these ids in git's format. It fetches missing folders. If the folders
// have more than left bytes in total, it returns an error.
func (d *repository) fetchFolders(ctx context.Context, ids map[string]bool, left int64) (map[string][]byte, error) {
	absent := maps.Clone(ids)
	maps.DeleteFunc(absent, func(id string, _ bool) bool { return d.allHere || d.here[id] })
	if len(absent) > 0 {
		most := limits{object: d.run.maxObject, file: maxListing, streams: true}
		if _, err := d.fetch(ctx, lines(absent), most, "--filter=tree:0", "--stdin", Remote); err != nil {
			return nil, err
		}
	}
	folders := map[string][]byte{}
	_, err := d.git(ctx, bytes.NewReader(lines(ids)), func(stdout io.Reader) error {
		r := bufio.NewReader(stdout)
		for range ids {
			id, _, folder, err := readObject(r, "tree", func(string) int64 { return left })
			switch {
			case err != nil:
				return err
			case folder.size > left:
				return errTooManyFiles
			case folder.data == nil || !ids[id] || !isFolder(folder.data, len(id)/2):
				return errListing
			}
			left -= folder.size
			folders[id] = folder.data
		}
		return nil
	}, "cat-file", "--batch")
	return folders, err
}

var errTooManyFiles = errors.New("the repository has more files than expected from what was fetched; keep the state in a smaller " +
	"repository")

// isFolder reports whether entries yields all of folder. A damaged folder must not look like a folder without
// the file.
func isFolder(folder []byte, idSize int) bool {
	n := 0
	for e := range entries(folder, idSize) {
		n += e.size
	}
	return n == len(folder)
}

// folderEntry is an entry in a folder.
type folderEntry struct {
	mode, name, id []byte
	size           int // size of the entry in the folder, in bytes
}

// modeNothing pads a mode to the six digits that git ls-tree prints.
const modeNothing = "000000"

func (e folderEntry) isDirectory() bool {
	return string(e.mode) == "40000" || string(e.mode) == modeDirectory
}

// entries yields the entries "<mode> <name>\x00<id>" of a folder, up to the end or the first damaged entry.
func entries(folder []byte, idSize int) func(yield func(folderEntry) bool) {
	return func(yield func(folderEntry) bool) {
		for len(folder) > 0 {
			head, rest, ok := bytes.Cut(folder, []byte{0})
			mode, name, named := bytes.Cut(head, []byte{' '})
			if !ok || !named || len(name) == 0 || len(mode) > len(modeFile) || len(rest) < idSize {
				return
			}
			if !yield(folderEntry{mode: mode, name: name, id: rest[:idSize], size: len(head) + 1 + idSize}) {
				return
			}
			folder = rest[idSize:]
		}
	}
}

// missed returns the topmost folder above name that does not exist, if only the folders above name are
// listed. Otherwise it returns name.
func (t *tree) missed(name string) string {
	if !t.partial {
		return name
	}
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if _, ok := t.find(at); ok {
			break
		}
		name = at
	}
	return name
}
