package git

import (
	"cmp"
	"net/url"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
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
	repository remote // the zero value when the variable is not set, or no address
	named      bool   // repositoryVar is set
}

func newBackend(lookup attr.LookupEnv) backend {
	text, named := lookup.Get(repositoryVar)
	b := backend{lookup: lookup, named: named}
	if named {
		if r, err := parseRepository(text); err == nil {
			b.repository = r
		}
	}
	return b
}

// covers reports whether where is the repository that the environment names.
func (b backend) covers(where remote) bool {
	mine := b.repository
	if mine.protocol == "" || mine.protocol != where.protocol {
		return false
	}
	return mine.address == where.address ||
		mine.url != nil && source.Covers(mine.url, where.url) && source.Covers(where.url, mine.url)
}

// claims reports whether the secrets that are good for where, a password or a
// key of ssh, belong to the named repository: whether they are of any use there.
func (b backend) claims(where remote) bool {
	switch b.repository.protocol {
	case "":
		return b.named // nobody can tell
	case "file":
		return false
	}
	return (b.repository.protocol == "ssh") == (where.protocol == "ssh")
}

// mayFill reports whether the variables may complete the credentials block for
// where. Those that come with the name of one server have nothing to say to
// another.
func (b backend) mayFill(where remote) bool {
	if !b.claims(where) {
		return true
	}
	mine := b.repository.url
	return mine != nil && where.url != nil && source.Covers(&url.URL{Scheme: mine.Scheme, Host: mine.Host}, where.url)
}

// ref is the default for where, "" for the remote's HEAD. A ref without a
// repository is meant for all of them; with one, for that one. In its own
// repository, terraform-backend-git writes to master if it is told nothing.
func (b backend) ref(where remote) string {
	text, _ := b.lookup.Get(refVar)
	switch {
	case !b.named:
		return text
	case b.covers(where):
		return cmp.Or(text, "master")
	}
	return ""
}
