package git

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// tree is the list of all files of one commit, or of those in the folders on the way to
// wanted ones, and of the locks of that moment. It is not changed.
type tree struct {
	commit  string
	format  string // of object ids: "sha1" or "sha256"
	listing []byte // as git ls-tree -r -t -z prints it: compact, and searched seldom
	partial bool   // folders beside those on the way to one name are not listed
	slow    string // why all files of the commit had to be fetched, "" if they were few or were not

	// If not all folders are listed, these are the folders that were read, and only the folders on the
	// way to toward are listed.
	root      string            // id; "" if all are listed
	folders   map[string][]byte // id → as git stores it
	lockRoots map[string]string // path that is locked → id of the root of the lock's branch

	locks    map[string]string // :: path that is locked → id of the lock's description, "" if there is none
	locksErr error             // why the locks could not be listed
}

// entry is one line of the listing.
type entry struct{ mode, id string }

const (
	modeFile       = "100644"
	modeExecutable = "100755"
	modeGroup      = "100664" // in some very old repositories
	modeSymlink    = "120000"
	modeSubmodule  = "160000"
	modeDirectory  = "040000"
)

var errListing = errors.New("git printed a list of files that cannot be read")

// checkListing makes sure that each reads every entry: a damaged list must not
// look like a missing file.
func checkListing(listing []byte) error {
	if len(listing) > 0 && listing[len(listing)-1] != 0 {
		return errListing
	}
	for record := range bytes.SplitSeq(bytes.TrimSuffix(listing, []byte{0}), []byte{0}) {
		if _, ok := parseEntry(record); !ok && len(listing) > 0 {
			return errListing
		}
	}
	return nil
}

// parseEntry reads "<mode> <type> <id>\t<name>".
func parseEntry(record []byte) (entry, bool) {
	meta, name, ok := bytes.Cut(record, []byte{'\t'})
	fields := strings.Split(string(meta), " ")
	if !ok || len(name) == 0 || len(fields) != 3 || len(fields[0]) != len(modeFile) || !objectID.MatchString(fields[2]) {
		return entry{}, false
	}
	return entry{mode: fields[0], id: fields[2]}, true
}

// each calls yield for every name.
func (t *tree) each(yield func(record, name []byte) bool) {
	for record := range bytes.SplitSeq(t.listing, []byte{0}) {
		if tab := bytes.IndexByte(record, '\t'); tab >= 0 && !yield(record, record[tab+1:]) {
			return
		}
	}
}

// find looks for exactly this name. If there is none, it takes the only name with
// other Unicode code points for the same characters: Terraform composes all
// characters of its strings, so that nobody could name a file from a system that
// decomposes them.
func (t *tree) find(name string) (found entry, ok bool) {
	t.each(func(record, n []byte) bool {
		if string(n) == name {
			found, ok = parseEntry(record)
		}
		return !ok
	})
	if ok || isASCII(name) {
		return found, ok
	}
	matches := 0
	t.each(func(record, n []byte) bool {
		if sameName(n, name) {
			found, ok = parseEntry(record)
			matches++
		}
		return true
	})
	return found, ok && matches == 1
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// resolve returns the entry of a file or symbolic link. It returns an error that describes any other
// entry.
func (t *tree) resolve(name string, credentialsSent bool) (entry, error) {
	t = t.toward(name)
	e, ok := t.find(name)
	if !ok {
		return entry{}, t.missing(name, credentialsSent)
	}
	switch e.mode {
	case modeFile, modeExecutable, modeGroup, modeSymlink:
		return e, nil
	case modeDirectory:
		return entry{}, fmt.Errorf("the path %s is a directory; add the name of the file in it", shown(name))
	case modeSubmodule:
		return entry{}, fmt.Errorf("the path %s is a submodule; read the file from the submodule's own repository", shown(name))
	}
	return entry{}, fmt.Errorf("the path %s is neither a file nor a directory (mode %s); check path", shown(name), e.mode)
}

func (t *tree) missing(name string, credentialsSent bool) error {
	detail := fmt.Sprintf("commit %s holds no file %s", t.commit, shown(name))
	for parent := path.Dir(name); parent != "." && parent != "/"; parent = path.Dir(parent) {
		e, ok := t.find(parent)
		if !ok {
			continue
		}
		switch e.mode {
		case modeSymlink:
			return fmt.Errorf("the path %s is a symbolic link, which is not followed; set path to where the file is", shown(parent))
		case modeSubmodule:
			return fmt.Errorf("the path %s is a submodule; read the file from the submodule's own repository", shown(parent))
		case modeDirectory:
		default:
			detail += fmt.Sprintf("; %s is a file, not a directory", shown(parent))
		}
		break
	}
	isMistake := false
	sought := t.missed(name)
	if sought != name {
		detail += ": there is no folder " + shown(sought)
	}
	t.each(func(_, n []byte) bool {
		if strings.EqualFold(string(n), sought) && string(n) != sought {
			detail += fmt.Sprintf("; there is %s, and paths in git are case-sensitive", shown(string(n)))
			isMistake = true
			return false
		}
		return true
	})
	if strings.ContainsAny(name, "*?") {
		detail += "; path is the name of one file, and not a pattern: name that file"
		isMistake = true
	}
	if near := t.near(sought, sought != name); near != "" && !strings.Contains(detail, ";") {
		detail += fmt.Sprintf(" (did you mean %s?)", shown(near))
		isMistake = true
	}
	return &source.MissingError{Detail: detail, CredentialsSent: credentialsSent, Listed: true, Mistaken: isMistake}
}

// near returns the file that was probably meant: one with a path that differs in a letter
// or two, or in an ending such as .enc, or without the first folders; or such a folder.
func (t *tree) near(name string, isFolder bool) string {
	const limit = 200 // bytes; the distance takes the product of both lengths
	nearest, best, inner := "", 3, ""
	t.each(func(record, n []byte) bool {
		if bytes.HasPrefix(record, []byte(modeDirectory)) != isFolder || len(n) > limit || len(name) > limit {
			return true
		}
		if strings.HasPrefix(name, string(n)+".") || strings.HasPrefix(string(n), name+".") {
			nearest, best = string(n), 1 // but for the end of its name, such as .enc
			return false
		}
		if strings.HasSuffix(name, "/"+string(n)) && len(n) > len(inner) {
			inner = string(n) // as if a folder outside the repository was in the path
		}
		if apart := len(n) - len(name); -best < apart && apart < best {
			if d := levenshtein.Distance(string(n), name, nil); d < best {
				nearest, best = string(n), d
			}
		}
		return true
	})
	return cmp.Or(nearest, inner)
}
