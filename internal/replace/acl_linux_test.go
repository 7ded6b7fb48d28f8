package replace

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// aclOf is a list in which the user 12345 may do what the mask allows, and the group of the
// file may do nothing.
func aclOf(mask uint16) []byte {
	const none = 0xffffffff
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, may uint16
		id       uint32
	}{{1, 6, none}, {2, 6, 12345}, {4, 0, none}, {16, mask, none}, {32, 0, none}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.may)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	return list
}

// What the mask of a list allows is shown as the rights of the group, which has others.
//
// Promise: Files of the command
func TestACL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	listed, plain := write(t, filepath.Join(dir, "listed"), "before"), write(t, filepath.Join(dir, "plain"), "before")
	if err := unix.Setxattr(listed, acl, aclOf(6), 0); err != nil {
		t.Skipf("there are no such lists here: %v", err)
	}
	if err := os.Chmod(plain, 0o640); err != nil { //nolint:gosec // that is the case
		t.Fatal(err)
	}
	if err := unix.Setxattr(dir, "system.posix_acl_default", aclOf(6), 0); err != nil { // which new files get
		t.Fatal(err)
	}
	for _, name := range []string{listed, plain} {
		before, err := os.Stat(name)
		if err == nil {
			err = File(t.Context(), name, []byte("after"), before)
		}
		if err != nil || read(t, name) != "after" {
			t.Fatalf("%v, %s", err, read(t, name))
		}
		if after, err := os.Stat(name); err != nil || after.Mode() != before.Mode() {
			t.Errorf("the mode was %s, and is %s, %v", before.Mode(), after.Mode(), err)
		}
	}
	got := make([]byte, 1000)
	n, err := unix.Getxattr(listed, acl, got)
	if err != nil || !bytes.Equal(got[:n], aclOf(6)) {
		t.Errorf("the list is %x, %v", got[:max(n, 0)], err)
	}
	if n, err := unix.Getxattr(plain, acl, got); err == nil {
		t.Errorf("there is a list now: %x", got[:n])
	}
}
