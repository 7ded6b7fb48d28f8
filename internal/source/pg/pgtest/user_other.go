//go:build !unix

package pgtest

import "os/exec"

func asSomebodyElse(*exec.Cmd) {}
