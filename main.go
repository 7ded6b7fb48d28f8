// Command terraform-provider-statecrypt serves the provider to Terraform and OpenTofu, which start it.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/logs"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/provider"
)

// version is set by the release build.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger, and print how to attach Terraform to this process")
	flag.Parse()
	logs.Silence()
	var options []tf6server.ServeOpt
	if *debug {
		options = append(options, tf6server.WithManagedDebug())
	}
	server := provider.NewServer(version)
	go stopOnSignals(server)
	err := tf6server.Serve("registry.terraform.io/statecrypt/statecrypt", func() tfprotov6.ProviderServer { return server }, options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// stopOnSignals stops all reads when the user presses Ctrl-C. The terminal sends the signal to this process too, and
// "terraform apply" does not pass it on while it plans. Terraform or OpenTofu then ends this process. On SIGTERM, the
// process exits by itself, after a short time for the reads to clean up.
func stopOnSignals(server *provider.Server) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	for s := range signals {
		server.Stop()
		if s == syscall.SIGTERM {
			time.AfterFunc(1700*time.Millisecond, func() { os.Exit(1) })
		}
	}
}
