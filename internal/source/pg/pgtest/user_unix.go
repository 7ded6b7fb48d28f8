//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"syscall"
)

func asSomebodyElse(cmd *exec.Cmd) {
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}
