// Package all is the list of the sources.
package all

import (
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/file"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/http"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes"
)

// Kinds returns all kinds of sources, in the order of the documentation.
func Kinds() []source.Kind {
	return []source.Kind{
		file.Kind(),
		git.Kind(),
		http.Kind(),
		kubernetes.Kind(),
	}
}
