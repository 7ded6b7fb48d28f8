// Command terraform-provider-statecrypt serves the provider to Terraform and
// OpenTofu, which start it.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/provider"
)

// version is set by the release build.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger, and print how to attach Terraform to this process")
	flag.Parse()
	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: "registry.terraform.io/statecrypt/statecrypt",
		Debug:   *debug,
	})
	if err != nil {
		log.Fatal(err)
	}
}
