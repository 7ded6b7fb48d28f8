// Command statecrypt opens, seals, checks and converts states and plans in the
// format of OpenTofu's encryption. It reads and writes files and its standard
// streams; storage is the business of other tools.
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
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
