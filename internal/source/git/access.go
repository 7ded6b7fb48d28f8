package git

import (
	"encoding/base64"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// access holds git's settings for one repository's server. The zero value leaves all settings to the user's
// own git configuration.
type access struct {
	scope    string // the URL below which username and password are used
	server   string // the URL that git's server settings apply to
	alias    string // a second URL like scope, to which the server may redirect; may be empty
	username string
	password string // if empty, authentication is left to git
	caFile   string
	grant    source.Grant

	ownPassword bool   // whether the password comes from a block, so that git gets no variable that could send it elsewhere
	placeholder string // the random address that git gets as an argument; insteadOf replaces it with the real one

	sshKeyFile     string
	keyMistake     string // why ssh cannot use the file as a key; "" if it can
	onlyKey        bool   // whether ssh must not use the agent's other keys
	hostKeys       string // the value of StrictHostKeyChecking
	passwordUnused bool   // whether a password is set although ssh does not send it
	asGit          bool   // whether to log in as git: the address has no user, and the key comes from SSH_PRIVATE_KEY or the agent

	local      bool // whether the server is on this machine and gets the password without TLS
	stays      bool // whether git must not follow redirects
	overSSH    bool
	redirected bool // whether a credential helper supplies the password instead of a header
	warnings   []source.Warning
}

// sent reports whether the server gets credentials. Over ssh, it always does.
func (a *access) sent() bool { return a.password != "" || a.overSSH }

// address returns the address for git. If there is a password, the address has no user, because git would ask
// for another password for that user. Otherwise the user stays, for git's own helpers.
func (a *access) address(where remote) string {
	if a.password == "" || where.url.User == nil {
		return where.address
	}
	u := *where.url
	u.User = nil
	return u.String()
}

// gitConfig returns the settings that git gets in its environment, where other programs may see them. They
// contain no secret.
func (a *access) gitConfig() (settings []setting) {
	if a.ownPassword {
		settings = append(settings, setting{"url." + a.server + ".insteadOf", a.placeholder},
			setting{"credential.helper", ""}, // a helper that git asks for a proxy password could read ours
			setting{"http." + a.server + ".sslVerify", "true"}, setting{"http." + a.server + ".curloptResolve", ""})
	}
	if a.stays {
		settings = append(settings, setting{"http." + a.server + ".followRedirects", "false"})
	}
	if a.caFile != "" {
		settings = append(settings, setting{"http." + a.server + ".sslCAInfo", filepath.ToSlash(a.caFile)})
	}
	if a.local { // curl would use a proxy even for this machine
		settings = append(settings, setting{"http." + a.server + ".proxy", ""})
	}
	if a.password == "" {
		if a.username != "" && a.scope != "" {
			settings = append(settings, setting{"credential." + a.scope + ".username", a.username})
		}
		return settings
	}
	// The empty value removes the user's own helpers. If our password is wrong, git would ask them next, and
	// then tell them to erase their passwords.
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

// helper is the setting for a credential helper; see gitcredentials(7). Git runs it in its own shell, on
// Windows too.
const helper = `!f() { test "$1" = get && ` + printAnswer + `; }; f`

// answer returns the output of the credential helper.
func (a *access) answer() string {
	return "username=" + a.username + "\npassword=" + a.password + "\n"
}

// header returns the setting that sends the credentials in a header.
func (a *access) header() setting {
	return setting{"http." + a.server + ".extraHeader", "Authorization: Basic " + a.basic()}
}

func (a *access) basic() string {
	return base64.StdEncoding.EncodeToString([]byte(a.username + ":" + a.password))
}

// inAddress matches the start of an address that has a user name, which may be a token.
var inAddress = lazyregexp.New(`(?i)\b(https?://)[^/\s'"@]+@`)

// redact removes the password, in all its spellings, and HTTP user names from git's output.
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
