package file

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// setsLock and getsLock are the fcntl commands for locks on an open file description. All processes that inherit the
// description share such a lock.
const setsLock, getsLock = unix.F_OFD_SETLK, unix.F_OFD_GETLK

// openToLend opens a file for a child to inherit. The child can only read it. openToLend returns nil if it fails, or if
// the file is on SMB, where a read lock blocks all writes, even by the lock holder.
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
