package file

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// The lock is of the open file description, and so of all who have inherited that.
const setsLock, getsLock = unix.F_OFD_SETLK, unix.F_OFD_GETLK

// openToLend opens a file for others to inherit, who can only read it. It is nil if that fails, and
// on SMB, where a lock to read keeps out everybody who writes, with the lock or without it.
func openToLend(path string) *os.File {
	f, err := openRegular(path, os.O_RDONLY|os.O_CREATE)
	if err != nil {
		return nil
	}
	var system unix.Statfs_t
	smb := []uint32{unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC}
	if unix.Fstatfs(int(f.Fd()), &system) != nil || slices.Contains(smb, uint32(system.Type)) { //nolint:gosec // it has 32 bits
		_ = f.Close()
		return nil
	}
	return f
}
