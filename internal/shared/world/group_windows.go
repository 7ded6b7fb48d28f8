package world

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
)

const createNoWindow = 0x08000000 // CREATE_NO_WINDOW: no console to ask for passwords on

// ownGroup makes the end of the context end the command's children as well.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: createNoWindow, HideWindow: true}
	cmd.Cancel = func() error {
		// taskkill /T walks the tree, which Process.Kill does not.
		if err := exec.CommandContext(context.Background(), "taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run(); err != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
}

// KillGroup has nothing to do: taskkill has ended the whole tree.
func KillGroup(*exec.Cmd) {}
