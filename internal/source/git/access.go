package git

import (
	"encoding/base64"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// access holds git's settings for the server of one repository. The zero value leaves all settings to
// the user's own configuration.
type access struct {
	scope    string // the URL that username and password are good for, and all below it
	server   string // the URL that settings about the server are for
	alias    string // another such URL, to which the server may redirect; or ""
	username string
	password string // "" leaves authentication to git
	caFile   string
	grant    source.Grant

	ownPassword bool   // the password is a block's: git gets nothing that the environment says of other secrets
	placeholder string // the address that git receives as an argument; a setting of ours replaces it by the real one
	elsewhere   bool   // url.<base>.insteadOf of the user has another address, which does not get it

	sshKeyFile     string
	keyMistake     string // what is in that file in place of a key that ssh can use; "" for such a key
	onlyKey        bool   // no key of the agent beside it
	hostKeys       string // StrictHostKeyChecking
	passwordUnused bool   // one is set, which ssh does not send
	asGit          bool   // the address has no user, and terraform-backend-git's variables give the key

	local      bool // the server is on this machine, without TLS
	stays      bool // git does not follow redirects
	overSSH    bool
	redirected bool // offer the password by a credential helper, not in a header
	warnings   []source.Warning
}

// sent reports whether the server has seen credentials. ssh never goes without.
func (a *access) sent() bool { return a.password != "" || a.overSSH }

// address returns the address for git. Without credentials of the settings, it keeps the user for
// git's own helpers; with them, a user would make git ask for another password.
func (a *access) address(where remote) string {
	if a.password == "" || where.url.User == nil {
		return where.address
	}
	u := *where.url
	u.User = nil
	return u.String()
}

// gitConfig returns settings, none of which is a secret.
func (a *access) gitConfig() (settings []setting) {
	if a.ownPassword {
		settings = append(settings, setting{"url." + a.server + ".insteadOf", a.placeholder},
			setting{"credential.helper", ""}, // a helper that gives the password of a proxy could read ours
			setting{"http." + a.server + ".sslVerify", "true"}, setting{"http." + a.server + ".curloptResolve", ""})
	}
	if a.stays {
		settings = append(settings, setting{"http." + a.server + ".followRedirects", "false"})
	}
	if a.caFile != "" {
		settings = append(settings, setting{"http." + a.server + ".sslCAInfo", filepath.ToSlash(a.caFile)})
	}
	if a.local { // curl would ask a proxy for this machine, too
		settings = append(settings, setting{"http." + a.server + ".proxy", ""})
	}
	if a.password == "" {
		if a.username != "" && a.scope != "" {
			settings = append(settings, setting{"credential." + a.scope + ".username", a.username})
		}
		return settings
	}
	// This removes the user's own helpers. If our password is wrong, git would ask them next, and
	// then make them erase their passwords.
	settings = append(settings, setting{"credential." + a.scope + ".helper", ""})
	if !a.redirected {
		return append(settings, setting{"http." + a.server + ".followRedirects", "false"})
	}
	settings = append(settings, setting{"credential." + a.scope + ".helper", helper})
	if key := "credential." + a.alias + ".helper"; a.alias != "" {
		settings = append(settings, setting{key, ""}, setting{key, helper})
	}
	return settings
}

// helper is a credential helper as gitcredentials(7) describes it. git runs it
// in its own shell, on Windows too.
const helper = `!f() { test "$1" = get && ` + printAnswer + `; }; f`

// answer returns the output of the helper.
func (a *access) answer() string {
	return "username=" + a.username + "\npassword=" + a.password + "\n"
}

// header is a setting.
func (a *access) header() setting {
	return setting{"http." + a.server + ".extraHeader", "Authorization: Basic " + a.basic()}
}

func (a *access) basic() string {
	return base64.StdEncoding.EncodeToString([]byte(a.username + ":" + a.password))
}

// inAddress is a user name in an address, which may be a token.
var inAddress = lazyregexp.New(`(?i)\b(https?://)[^/\s'"@]+@`)

// redact removes the password, in each of its spellings, and user names of HTTP from git's output.
func (a *access) redact(text string) string {
	text = inAddress.ReplaceAllString(text, "$1")
	if a == nil || a.password == "" {
		return text
	}
	return strings.NewReplacer(
		a.basic(), "***",
		a.password, "***",
		url.PathEscape(a.password), "***",
		url.QueryEscape(a.password), "***",
	).Replace(text)
}
