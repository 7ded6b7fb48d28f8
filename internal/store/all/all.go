// Package all lists the kinds of stores.
package all

import (
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/file"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/gcs"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/httpstore"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/s3"
)

// Kinds returns all kinds of stores. The first is the only one that variables may describe without a block.
func Kinds() []store.Kind {
	return []store.Kind{httpstore.Kind(), file.Kind(), git.Kind(), s3.Kind(), gcs.Kind(), azurerm.Kind()}
}
