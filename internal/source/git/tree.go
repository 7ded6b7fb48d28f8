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

// tree lists files of one commit, and the locks at the time of the fetch. It lists either all files or only
// those in the folders above requested files. Once a tree is shared, it does not change.
type tree struct {
	commit  string
	format  string // object id format: "sha1" or "sha256"
	listing []byte // output of git ls-tree -r -t -z, a compact form that is seldom searched
	partial bool   // whether only the folders above one name are listed
	slow    string // warning that all files of a large commit were fetched, and why; may be empty

	// If the folders are read one by one, these fields hold them, and listing is empty. See [tree.toward].
	root      string            // id of the root folder; "" if listing has all files
	folders   map[string][]byte // folders in git's format, by id
	lockRoots map[string]string // root folder ids of the lock branches, by locked path

	locks    map[string]string // ids of the lock descriptions, by locked path; "" if unknown or missing
	locksErr error             // why the locks are unknown
}

// entry is one file or folder of the listing.
type entry struct{ mode, id string }

const (
	modeFile       = "100644"
	modeExecutable = "100755"
	modeGroup      = "100664" // file mode in some very old repositories
	modeSymlink    = "120000"
	modeSubmodule  = "160000"
	modeDirectory  = "040000"
)

var errListing = errors.New("git's list of files cannot be parsed")

// checkListing returns an error if [tree.each] cannot read every entry. A damaged list must not make it look
// as if a file did not exist.
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

// parseEntry parses "<mode> <type> <id>\t<name>". It returns false for any other record.
func parseEntry(record []byte) (entry, bool) {
	meta, name, ok := bytes.Cut(record, []byte{'\t'})
	fields := strings.Split(string(meta), " ")
	if !ok || len(name) == 0 || len(fields) != 3 || len(fields[0]) != len(modeFile) || !objectID.MatchString(fields[2]) {
		return entry{}, false
	}
	return entry{mode: fields[0], id: fields[2]}, true
}

// each calls yield for every entry of the listing until yield returns false.
func (t *tree) each(yield func(record, name []byte) bool) {
	for record := range bytes.SplitSeq(t.listing, []byte{0}) {
		if tab := bytes.IndexByte(record, '\t'); tab >= 0 && !yield(record, record[tab+1:]) {
			return
		}
	}
}

// find returns the entry with exactly this name. If there is none, it returns the only entry whose name
// spells the same characters with other Unicode code points. Terraform composes all characters in its
// strings, so without this, nobody could name a file from a system that decomposes them.
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

// resolve returns the entry of a file or symbolic link. For any other entry, it returns an error that
// describes it.
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
	return entry{}, fmt.Errorf("the path %s is neither a file nor a directory (mode %s); check the path", shown(name), e.mode)
}

func (t *tree) missing(name string, credentialsSent bool) error {
	detail := fmt.Sprintf("commit %s contains no file %s", t.commit, shown(name))
	belowFile := false
	for parent := path.Dir(name); parent != "." && parent != "/"; parent = path.Dir(parent) {
		e, ok := t.find(parent)
		if !ok {
			continue
		}
		switch e.mode {
		case modeSymlink:
			return fmt.Errorf("the path %s is a symbolic link, and links are not followed; set the argument path to the real path of the "+
				"file", shown(parent))
		case modeSubmodule:
			return fmt.Errorf("the path %s is a submodule; read the file from the submodule's own repository", shown(parent))
		case modeDirectory:
		default:
			detail += fmt.Sprintf(", because %s is a file, not a directory", shown(parent))
			belowFile = true
		}
		break
	}
	isMistake := false
	sought := t.missed(name)
	if sought != name && !belowFile {
		detail += ": there is no folder " + shown(sought)
	}
	t.each(func(_, n []byte) bool {
		if strings.EqualFold(string(n), sought) && string(n) != sought {
			detail += fmt.Sprintf(". There is %s, but paths in git are case-sensitive", shown(string(n)))
			isMistake = true
			return false
		}
		return true
	})
	if strings.ContainsAny(name, "*?") {
		detail += "; set the argument path to one file, not to a pattern"
		isMistake = true
	}
	if near := t.near(sought, sought != name); near != "" && !isMistake && !belowFile {
		detail += fmt.Sprintf(" (did you mean %s?)", shown(near))
		isMistake = true
	}
	return &source.MissingError{Detail: detail, CredentialsSent: credentialsSent, Listed: true, Mistaken: isMistake}
}

// near returns the file that was probably meant, or the folder if isFolder is true. The path of the result
// differs from name by one or two letters or by a suffix such as .enc, or leaves out leading folders of
// name. near returns an empty string if there is no such path.
func (t *tree) near(name string, isFolder bool) string {
	const limit = 200 // bytes; computing the distance takes time proportional to the product of both lengths
	nearest, best, inner := "", 3, ""
	t.each(func(record, n []byte) bool {
		if bytes.HasPrefix(record, []byte(modeDirectory)) != isFolder || len(n) > limit || len(name) > limit {
			return true
		}
		if strings.HasPrefix(name, string(n)+".") || strings.HasPrefix(string(n), name+".") {
			nearest, best = string(n), 1 // the names differ only in an ending such as .enc
			return false
		}
		if strings.HasSuffix(name, "/"+string(n)) && len(n) > len(inner) {
			inner = string(n) // name has further folders before this path, perhaps from outside the repository
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
