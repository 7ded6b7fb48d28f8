// Package all lists all kinds of sources.
package all

import (
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/cos"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/file"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/httpsource"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/oci"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/oss"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/pg"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/remote"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3"
)

// Kinds returns all kinds of sources, in the order of the documentation.
func Kinds() []source.Kind {
	return []source.Kind{
		azurerm.Kind(),
		consul.Kind(),
		cos.Kind(),
		file.Kind(),
		gcs.Kind(),
		git.Kind(),
		httpsource.Kind(),
		kubernetes.Kind(),
		oci.Kind(),
		oss.Kind(),
		pg.Kind(),
		remote.Kind(),
		s3.Kind(),
	}
}
