//go:build !linux

package replace

import (
	"errors"
	"os"
)

// unnamed, link, keepOwner and keepACL are implemented only on Linux.
func unnamed(string) *os.File { return nil }

func link(*os.File, string) error { return errors.ErrUnsupported }

func keepOwner(*os.File, os.FileInfo) {}

func keepACL(*os.File, string) error { return nil }
