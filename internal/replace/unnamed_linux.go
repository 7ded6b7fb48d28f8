package replace

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// unnamed returns a new file in dir that has no name yet, or nil if this is not supported there.
func unnamed(dir string) *os.File {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), dir)
	if _, err := os.Stat(descriptor(f)); err != nil { // link needs this path
		_ = f.Close()
		return nil
	}
	return f
}

// link gives a name to an unnamed file.
func link(f *os.File, name string) error {
	return unix.Linkat(unix.AT_FDCWD, descriptor(f), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}

func descriptor(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// keepOwner gives f the owner and group of another file. It ignores errors, because only root may give files away.
func keepOwner(f *os.File, of os.FileInfo) {
	if owner, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(owner.Uid), int(owner.Gid))
	}
}

const acl = "system.posix_acl_access"

// keepACL gives f the access control list of the file named of. If only the mode were copied, the mask of the list
// would become the group permissions, and the default list of the folder would apply.
func keepACL(f *os.File, of string) error {
	list := make([]byte, 64<<10) // the size limit on Linux
	n, err := unix.Getxattr(of, acl, list)
	if err == nil {
		err = unix.Fsetxattr(int(f.Fd()), acl, list[:n], 0)
	} else if err = unix.Fremovexattr(int(f.Fd()), acl); errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("its access control list cannot be kept: %w", err)
	}
	return err
}
