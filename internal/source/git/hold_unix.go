//go:build unix

package git

import (
	"os"
	"syscall"
)

// hold locks a directory of ours for as long as the file is open, which is no
// longer than this process lives. It returns nil if somebody else holds it, if it
// is gone, or if it is not what its name says.
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

// claim holds what a dead process held.
func claim(dir string) (f *os.File, ok bool) {
	f = hold(dir)
	return f, f != nil
}
