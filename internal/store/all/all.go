// Package all is the list of stores.
package all

import (
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/file"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/httpstore"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/s3"
)

// Kinds are all of them. The first is the one that variables alone may describe.
func Kinds() []store.Kind { return []store.Kind{httpstore.Kind(), file.Kind(), git.Kind(), s3.Kind()} }
