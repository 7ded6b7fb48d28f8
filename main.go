// Command terraform-provider-statecrypt serves the provider to Terraform and OpenTofu, which start it.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
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
	collectLater()
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

// collectLater delays the first garbage collection until the heap has 8 MB. A start with its schema allocates 5 MB, of
// which it keeps most. By default, Go collects at 4 MB, and two collections took a fifth of the start. After the first
// collection, Go's usual pace applies.
func collectLater() {
	const usual = 100
	before := debug.SetGCPercent(2 * usual)
	if before != usual { // the user has set GOGC
		debug.SetGCPercent(before)
		return
	}
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
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
