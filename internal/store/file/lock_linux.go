package file

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// setsLock and getsLock are the fcntl commands for locks of an open file description, which is shared by all
// processes that have inherited it.
const setsLock, getsLock = unix.F_OFD_SETLK, unix.F_OFD_GETLK

// openToLend opens a file for a child to inherit, which can only read it. It returns nil if that fails, and on SMB,
// where a read lock keeps out every writer, with the lock or without it.
func openToLend(path string) *os.File {
	f, err := openRegular(path, os.O_RDONLY|os.O_CREATE)
	if err != nil {
		return nil
	}
	var system unix.Statfs_t
	smb := []uint32{unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC}
	if unix.Fstatfs(int(f.Fd()), &system) != nil || slices.Contains(smb, uint32(system.Type)) { //nolint:gosec // the number has 32 bits
		_ = f.Close()
		return nil
	}
	return f
}
