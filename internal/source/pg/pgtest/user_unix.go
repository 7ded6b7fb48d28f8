//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// nobody is a user who owns nothing else.
const nobody = 65534

func asSomebodyElse(cmd *exec.Cmd) {
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

// giveAway makes somebody else the owner of the files.
func giveAway(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Lchown(filepath.Join(dir, f.Name()), nobody, nobody); err != nil {
			return err
		}
	}
	return os.Lchown(dir, nobody, nobody)
}
