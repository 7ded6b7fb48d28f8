// Command consul runs a Consul agent, without the other Consul commands, for tests. It takes the arguments of consul
// agent, and runs until it is stopped.
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
	log.SetOutput(io.Discard) // hides the libraries' messages, as the real consul does
	ui := &cli.BasicUI{BasicUi: mcli.BasicUi{Writer: os.Stdout, ErrorWriter: os.Stderr}}
	os.Exit(agent.New(ui).Run(os.Args[1:]))
}
