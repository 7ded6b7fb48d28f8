package file

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
)

// Reverts reports whether git tracks the file, because switching branches may restore an older state. It parses the git
// index itself instead of running git. git would first read the repository's configuration, which can name programs to
// run, and the repository may be untrusted. If the index is split in two, names in the second file are not found.
func (s *state) Reverts(context.Context) bool {
	path, err := filepath.EvalSymlinks(s.path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return false
	}
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		at := filepath.Join(folder, ".git")
		if _, err := os.Stat(at); err == nil {
			name, err := filepath.Rel(folder, path)
			return err == nil && isListed(indexOf(at), filepath.ToSlash(name))
		}
		if folder == filepath.Dir(folder) {
			return false
		}
	}
}

// indexOf returns the path of a repository's index. In worktrees and submodules, .git is a file that contains the path
// of the repository.
func indexOf(git string) string {
	text, err := keyfile.Read(git)
	name, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	switch {
	case err != nil || !ok:
		return filepath.Join(git, "index")
	case filepath.IsAbs(name):
		return filepath.Join(name, "index")
	}
	return filepath.Join(filepath.Dir(git), name, "index")
}

// isListed reports whether the git index in the given file lists name. The index does not contain the length of its
// object IDs, so isListed tries both possible lengths.
func isListed(index, name string) bool {
	const ofSHA1, ofSHA256 = 20, 32
	f, err := openRegular(index, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, length := range []int{ofSHA1, ofSHA256} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return false
		}
		if found, err := find(bufio.NewReaderSize(f, 1<<16), length, name); err == nil {
			return found
		}
	}
	return false
}

var errNoIndex = errors.New("it is not a git index")

// find reports whether a git index lists name. The ids argument is the length of an object ID in bytes. The format is
// described in gitformat-index(5); names are sorted. find returns an error if the index does not have this format.
func find(index *bufio.Reader, ids int, name string) (bool, error) {
	var head struct {
		Signature        [4]byte
		Version, Entries uint32
	}
	if err := binary.Read(index, binary.BigEndian, &head); err != nil {
		return false, err
	}
	if string(head.Signature[:]) != "DIRC" || head.Version < 2 || head.Version > 4 {
		return false, errNoIndex
	}
	const extended, lengthOfName = 0x4000, 0xfff // bit masks for the flags
	fixed := make([]byte, 40+ids+2)              // times, mode, owner and size; object ID; flags
	var listed []byte
	for range head.Entries {
		if _, err := io.ReadFull(index, fixed); err != nil {
			return false, err
		}
		flags, more := binary.BigEndian.Uint16(fixed[40+ids:]), 0
		if head.Version > 2 && flags&extended != 0 {
			more = 2
		}
		if _, err := index.Discard(more); err != nil {
			return false, err
		}
		kept := 0
		if head.Version == 4 {
			dropped, err := offset(index)
			if err != nil || dropped > len(listed) {
				return false, errNoIndex
			}
			kept = len(listed) - dropped
		}
		end, err := index.ReadSlice(0) // at most the size of the buffer
		if err != nil {
			return false, err
		}
		listed = append(listed[:kept], end[:len(end)-1]...)
		if min(len(listed), lengthOfName) != int(flags&lengthOfName) {
			return false, errNoIndex // or its object IDs are longer
		}
		if c := bytes.Compare(listed, []byte(name)); c >= 0 {
			return c == 0, nil
		}
		if used := len(fixed) + more + len(end); head.Version < 4 && used%8 != 0 {
			if _, err := index.Discard(8 - used%8); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// offset reads a number in the encoding that git uses for offsets in pack files.
func offset(r io.ByteReader) (n int, err error) {
	const most = 1 << 24 // far longer than any file name
	for {
		b, err := r.ReadByte()
		if err != nil || n > most {
			return 0, errNoIndex
		}
		if n = n<<7 | int(b&0x7f); b&0x80 == 0 {
			return n, nil
		}
		n++
	}
}
