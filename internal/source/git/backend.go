package git

import (
	"cmp"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// The variables with which terraform-backend-git is told where a state is.
const (
	repositoryVar = "TF_BACKEND_GIT_GIT_REPOSITORY"
	refVar        = "TF_BACKEND_GIT_GIT_REF"
	stateVar      = "TF_BACKEND_GIT_GIT_STATE"
)

// backend is the environment of terraform-backend-git. Whoever starts the run
// sets it, and repositoryVar says for which repository the rest is meant.
type backend struct {
	lookup     attr.LookupEnv
	repository remote // the zero value if the variable is not set, or no address
	named      bool   // repositoryVar is set
}

func newBackend(lookup attr.LookupEnv) backend {
	text, named := lookup.Get(repositoryVar)
	repository, _ := parseRepository(text) // another source may be asked
	return backend{lookup: lookup, named: named, repository: repository}
}

// ref is the default for where, "" for the remote's HEAD. A ref without a
// repository is meant for all of them; with one, for that one. In its own
// repository, terraform-backend-git writes to master if it is told nothing.
func (b backend) ref(where remote) string {
	text, _ := b.lookup.Get(refVar)
	switch {
	case !b.named:
		return text
	case b.repository.address == where.address, where.url != nil && b.repository.is(where.url):
		return cmp.Or(text, "master")
	}
	return ""
}
