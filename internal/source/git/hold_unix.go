//go:build unix

package git

import (
	"os"
	"syscall"
)

// hold locks a directory until the returned file is closed or the process ends. It returns nil if another
// process holds the directory, if it does not exist, or if it belongs to another user.
func hold(dir string) *os.File {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	opened, openErr := f.Stat()
	named, nameErr := os.Lstat(dir)
	if err == nil && openErr == nil && nameErr == nil && os.SameFile(opened, named) {
		if stat, ok := opened.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == os.Geteuid() {
			return f
		}
	}
	_ = f.Close()
	return nil
}

// claim holds a directory unless a running process holds it.
func claim(dir string) (f *os.File, ok bool) {
	f = hold(dir)
	return f, f != nil
}
