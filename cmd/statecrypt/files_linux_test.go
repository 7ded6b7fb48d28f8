package main

import (
	"os"
	"syscall"
	"testing"
)

// Root rotates the files of others, who go on reading them.
func TestRotateKeepsTheOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has files of others")
	}
	r := newRotating(t)
	file := r.file(t, "theirs", must(t, onlyOld, plain, "encrypt"))
	if err := os.Chown(file, 1234, 2345); err != nil {
		t.Skip(err) // in a namespace without these users
	}
	if got := r.rotate(t, file); got.code != 0 {
		t.Fatalf("%d, %s", got.code, got.stderr)
	}
	var now syscall.Stat_t
	if err := syscall.Stat(file, &now); err != nil || now.Uid != 1234 || now.Gid != 2345 {
		t.Errorf("the file belongs to %d:%d, %v", now.Uid, now.Gid, err)
	}
	if got := must(t, onlyNew, read(t, file), "decrypt"); got != plain {
		t.Errorf("got %s", got)
	}
}
