package httpsource

import (
	"cmp"
	"net/url"
	"strconv"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// The variables of Terraform's http backend.
const (
	addressVar     = "TF_HTTP_ADDRESS"
	usernameVar    = "TF_HTTP_USERNAME"
	passwordVar    = "TF_HTTP_PASSWORD" //nolint:gosec // a name, not a password
	certificateVar = "TF_HTTP_CLIENT_CERTIFICATE_PEM"
	keyVar         = "TF_HTTP_CLIENT_PRIVATE_KEY_PEM"
	caVar          = "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM"
	skipVar        = "TF_HTTP_SKIP_CERT_VERIFICATION"
	retryMaxVar    = "TF_HTTP_RETRY_MAX"
	waitMinVar     = "TF_HTTP_RETRY_WAIT_MIN"
	waitMaxVar     = "TF_HTTP_RETRY_WAIT_MAX"
)

// environment is the TF_HTTP_* family. It is set by whoever starts the run,
// and TF_HTTP_ADDRESS says for which place.
type environment struct {
	lookup  attr.LookupEnv
	address *url.URL // TF_HTTP_ADDRESS; nil when it is not set, or not a URL
	named   bool     // TF_HTTP_ADDRESS is set
}

func newEnvironment(lookup attr.LookupEnv) environment {
	text, named := lookup.Get(addressVar)
	e := environment{lookup: lookup, named: named}
	if u, err := url.Parse(text); named && err == nil {
		e.address = u
	}
	return e
}

func (e environment) get(name string) string {
	value, _ := e.lookup.Get(name)
	return value
}

// covers reports whether the family is meant for target, without any block.
// The very address that it names is covered however it is spelled: GitLab's
// documentation has encoded slashes in it.
func (e environment) covers(target *url.URL) bool {
	return e.address != nil && (source.Covers(e.address, target) || e.address.String() == target.String())
}

// mayFill reports whether the family may complete the credentials block for
// target. A family that names one server has nothing to say to another.
func (e environment) mayFill(target *url.URL) bool {
	if !e.named {
		return true
	}
	return e.address != nil && source.Covers(&url.URL{Scheme: e.address.Scheme, Host: e.address.Host}, target)
}

// strayed names a secret of the family that would go nowhere, although nothing
// says which place it is meant for; "" when there is none.
func (e environment) strayed() string {
	for _, name := range []string{passwordVar, keyVar} {
		if _, ok := e.lookup.Get(name); ok && !e.named {
			return name
		}
	}
	return ""
}

// fill completes what the block, if any, says.
func (e environment) fill(g grant) grant {
	if !g.hasAuthorization() {
		g.username = cmp.Or(g.username, e.get(usernameVar))
		g.password = cmp.Or(g.password, e.get(passwordVar))
	}
	if g.certificate == "" && g.key == "" { // a pair
		g.certificate, g.key = e.get(certificateVar), e.get(keyVar)
	}
	g.ca = cmp.Or(g.ca, e.get(caVar))
	if !g.saysVerify {
		// Anything but a plain yes leaves the check on.
		g.unverified, _ = strconv.ParseBool(e.get(skipVar))
	}
	return g
}
