// Command consul is Consul's agent without the rest of its commands, for tests.
// It takes the arguments of consul agent, and runs until it is told to stop.
package main

import (
	"io"
	"log"
	"os"

	"github.com/hashicorp/consul/command/agent"
	"github.com/hashicorp/consul/command/cli"
	mcli "github.com/mitchellh/cli"
)

func main() {
	log.SetOutput(io.Discard) // its libraries' own, as the real one does
	ui := &cli.BasicUI{BasicUi: mcli.BasicUi{Writer: os.Stdout, ErrorWriter: os.Stderr}}
	os.Exit(agent.New(ui).Run(os.Args[1:]))
}
