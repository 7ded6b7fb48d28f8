// Command statecrypt decrypts, encrypts, checks and converts states and plans in the format of OpenTofu's
// state encryption. It works on files and standard streams. With wrap and -backend, it also works on states
// in a store.
package main

import (
	"context"
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/logs"
)

// version is set by the release build.
var version = "dev"

func main() {
	logs.Silence()
	c := newCall(os.Stdin, os.Stdout, os.Stderr, os.Environ())
	c.tells = true
	os.Exit(c.run(context.Background(), os.Args[1:]))
}
