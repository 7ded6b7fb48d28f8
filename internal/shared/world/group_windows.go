package world

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

const createNoWindow = 0x08000000 // CREATE_NO_WINDOW: without a console, programs cannot ask for passwords

// ownGroup makes sure that cancelling the context also ends the command's children.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: createNoWindow, HideWindow: true}
	cmd.Cancel = func() error {
		// Unlike Process.Kill, taskkill /T also ends child processes.
		if err := exec.CommandContext(context.Background(), "taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run(); err != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
}

// KillGroup does nothing, because taskkill has already ended the whole process tree.
func KillGroup(*exec.Cmd) {}

// RunDependent runs a command like [Command]. The command and its children end when this process ends, even
// if this process is killed, because that closes the last handle to their job. If no job can be created, the
// command runs without one.
func RunDependent(cmd *exec.Cmd) error {
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	if job, err := windows.CreateJobObject(nil, nil); err == nil {
		defer windows.CloseHandle(job) //nolint:errcheck // nothing can be done
		defer setLimits(job, 0)        // processes that the program left behind may keep running
		setLimits(job, windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE)
		assign(job, cmd.Process.Pid)
	}
	return cmd.Wait()
}

func setLimits(job windows.Handle, flags uint32) {
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: flags},
	}
	_, _ = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))) //nolint:gosec // as the call wants it
}

func assign(job windows.Handle, pid int) {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false,
		uint32(pid)) //nolint:gosec // Windows made it of 32 bits
	if err == nil {
		_ = windows.AssignProcessToJobObject(job, process)
		_ = windows.CloseHandle(process)
	}
}
