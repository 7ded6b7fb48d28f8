package git

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// remote is the address of a repository after it was checked.
type remote struct {
	protocol string   // "https", "http", "ssh" or "file"
	address  string   // the address that git gets
	url      *url.URL // the URL that credentials blocks must cover; nil for file
}

// String returns the address for people, escaped and truncated. It contains no secret: parseRepository
// refuses passwords, and an HTTP user name, which may be a token, is removed.
func (r remote) String() string {
	return shown(r.place())
}

// place returns the address without an HTTP user name, which may be a token.
func (r remote) place() string {
	if r.url == nil || r.url.User == nil || r.url.Scheme == "ssh" {
		return r.address
	}
	place := *r.url
	place.User = nil
	return place.String()
}

// is reports whether u is the address of the same repository.
func (r remote) is(u *url.URL) bool {
	return r.url != nil && (r.url.String() == u.String() || source.Covers(r.url, u) && source.Covers(u, r.url))
}

// ofPage returns advice if the address looks like a web page that shows a folder or file of a repository.
// Otherwise it returns an empty string.
func (r remote) ofPage() string {
	part := pageOfRepository.FindStringSubmatch(r.address)
	if part == nil {
		return ""
	}
	return fmt.Sprintf(". This looks like the address of a web page; end the address before %s, and set the arguments ref and path to the "+
		"rest", part[0])
}

var tokenParameter = lazyregexp.New(`(?i)(^|&)(private_|access_|job_)?token=`)

var secretOfSSH = lazyregexp.New(`^ssh://[^/@]*:[^/@]*@`)

var pageOfRepository = lazyregexp.New(`/(-/)?(tree|blob|raw|src/branch|src/commit)/`)

// user returns the user name in the address, or an empty string if there is none.
func (r remote) user() string {
	if r.url == nil {
		return ""
	}
	return r.url.User.Username()
}

// Errors in this file never repeat the address, because it may contain a password.
var (
	errSecretForSSH = errors.New("the address contains a password, so the password would be stored in plans and states, although ssh does " +
		"not use it; remove the password. If no ssh agent has the key, set ssh_private_key_file in {credentials}")
	errSecretInURL = errors.New("the address contains a password or token, so that secret would be stored in plans and states; set it in " +
		"{credentials}")
	errNotAnURL = errors.New("this is not the address of a repository; write an address like https://git.example.com/acme/infra.git or " +
		"git@git.example.com:acme/infra.git, or an absolute local path")
)

// parseRepository parses a GIT URL as defined in git-fetch(1). It returns an error for addresses that run
// commands (ext::, fd::), are not authenticated (git://), or depend on the working directory.
func parseRepository(text string) (remote, error) {
	switch {
	case text == "":
		return remote{}, errors.New("the address of the repository is empty; check whether a variable is empty")
	case strings.ContainsFunc(text, unicode.IsControl):
		return remote{}, errors.New("the address contains control characters; type it again")
	case strings.HasPrefix(text, "-"):
		return remote{}, errors.New("the address starts with a dash; remove the dash")
	case strings.ContainsAny(text, "<>"):
		return remote{}, errors.New("the address contains < or >, like a placeholder; replace the placeholder with its value")
	case strings.HasPrefix(text, "git::"):
		return remote{}, errors.New("git:: belongs in the source of a module, not in the address of a repository; remove git::. Move the part " +
			"after the later // to the argument path, and the value of ?ref= to the argument ref")
	case remoteHelper.MatchString(text):
		return remote{}, errors.New(`remote helpers ("name::address") are not supported, because they can run any ` +
			"program; use an address with https:// or ssh://")
	case filepath.IsAbs(text):
		return localPath(text), nil
	case strings.Contains(text, "://"):
		return parseURL(text)
	}
	return parseSCP(text)
}

// remoteHelper matches the start of "transport::address"; see gitremote-helpers(7).
var remoteHelper = lazyregexp.New(`^[A-Za-z0-9+.-]*::`)

func localPath(path string) remote {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/x becomes file:///C:/x
	}
	return remote{protocol: "file", address: (&url.URL{Scheme: "file", Path: slashed}).String()}
}

func parseURL(text string) (remote, error) {
	if secretOfSSH.MatchString(text) {
		return remote{}, errSecretForSSH
	}
	if scpWithScheme.MatchString(text) {
		return remote{}, errors.New("an ssh:// address has a slash after the host, not a colon; write an address like " +
			"ssh://git@git.example.com/acme/infra.git, or remove ssh://")
	}
	u, err := url.Parse(text)
	if err != nil {
		return remote{}, errNotAnURL // err would repeat the address
	}
	if _, has := u.User.Password(); has && strings.HasPrefix(text, "ssh") {
		return remote{}, errSecretForSSH
	} else if has {
		return remote{}, errSecretInURL
	}
	if tokenParameter.MatchString(u.RawQuery) {
		return remote{}, errSecretInURL
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#") || u.Opaque != "" {
		return remote{}, errors.New("the address of a repository cannot contain ? or #; remove that part, and set the argument ref to a " +
			"branch, tag or commit")
	}
	if u.Scheme == "file" {
		if u.Host != "" || u.User != nil || u.Path == "" {
			return remote{}, errors.New("the file URL lacks an absolute path; write a URL with three slashes like file:///srv/git/infra.git")
		}
		return remote{protocol: "file", address: u.String()}, nil
	}
	if u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" {
		return remote{}, errors.New("only https, http, ssh and file URLs are supported; replace git:// with https://")
	}
	if err := checkAuthority(u, text); err != nil {
		return remote{}, err
	}
	if strings.Contains(u.Path, "//") {
		return remote{}, errors.New("the part after // belongs only in the source of a module; move that part to the argument path")
	}
	if strings.Trim(u.Path, "/") == "" {
		return remote{}, errors.New("the address names a server, but no repository; add the path of the repository")
	}
	// Git gets the address as formatted by package url, so that git and the search for credentials see the
	// same host.
	return remote{protocol: u.Scheme, address: u.String(), url: u}, nil
}

var scpWithScheme = lazyregexp.New(`^ssh://[^/]*:[^/0-9]`)

func checkAuthority(u *url.URL, written string) error {
	if err := checkHost(u.Hostname()); err != nil {
		return err
	}
	if strings.HasSuffix(u.Host, ":") {
		return errors.New("the port is missing; write it after the colon, or remove the colon")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return errors.New("the port must be a number from 1 to 65535")
		}
	}
	switch {
	case u.User == nil:
		return nil
	case strings.Contains(u.User.Username(), "@") && !strings.Contains(written, "%40"):
		return errors.New("the address contains two @; write the @ inside the user name as %40")
	}
	return checkUser(u.User.Username())
}

var hostName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// checkHost returns an error for a host that parsers may read differently: one with encoded or international
// characters, which some parsers map to other hosts, or with a leading dash, which ssh mistakes for an
// option.
func checkHost(host string) error {
	if host == "" {
		return errNotAnURL
	}
	if hostName.MatchString(host) || strings.Contains(host, ":") && net.ParseIP(host) != nil {
		return nil
	}
	return errors.New("the host is not a plain name or address; write an international name in its xn-- form")
}

var (
	userName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._@+-]*$`)
	// tokenPrefix matches the prefixes that common hosts give their tokens.
	tokenPrefix = lazyregexp.New(`^(gh[a-z]_|github_pat_|gl[a-z]+-|ATBB|ATCTT|hf_)`)
)

// checkUser returns an error for a user name that is probably a token. Many hosts accept a token instead of a
// user name, and classic tokens have 40 hexadecimal digits.
func checkUser(name string) error {
	switch {
	case name == "" || !userName.MatchString(name):
		return errors.New("the user in the address is not a plain name; use a name like git")
	case tokenPrefix.MatchString(name), len(name) > 39 && !strings.Contains(name, "@"), len(name) > 128:
		return errSecretInURL
	}
	return nil
}

var schemeName = lazyregexp.New(`(?i)^(https?|ssh|file|git|ftps?)$`)

// scpAddress matches user@host:path, without a slash before the colon. IPv6 addresses are in brackets.
var scpAddress = lazyregexp.New(`^(?:([^@/:\[\]]+)@)?(\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\]|[^@/:\[\]]+):(.+)$`)

var secretInSCP = lazyregexp.New(`^(?:[^/@\[][^/@]*)?:[^/@]*@`) // matches the start of user:password@host

// parseSCP parses the short form of an ssh address. It cannot contain a port: host:2222/x means the path
// 2222/x.
func parseSCP(text string) (remote, error) {
	if secretInSCP.MatchString(text) {
		return remote{}, errSecretInURL
	}
	m := scpAddress.FindStringSubmatch(text)
	if m == nil {
		return remote{}, errNotAnURL
	}
	user, host, path := m[1], m[2], m[3]
	if schemeName.MatchString(host) || len(host) == 1 {
		return remote{}, errNotAnURL // https:host/path lacks its slashes, and C:\\x is a path on another system
	}
	if err := checkHost(strings.Trim(host, "[]")); err != nil {
		return remote{}, err
	}
	if strings.HasPrefix(path, "-") {
		return remote{}, errors.New("the path starts with a dash; remove the dash")
	}
	u := &url.URL{Scheme: "ssh", Host: host, Path: "/" + strings.TrimPrefix(path, "/")}
	if user != "" {
		if err := checkUser(user); err != nil {
			return remote{}, err
		}
		u.User = url.User(user)
	}
	return remote{protocol: "ssh", address: text, url: u}, nil
}

// folder returns the path of a repository on this machine, or an empty string if the address names a server.
func (r remote) folder() string {
	if r.protocol != "file" {
		return ""
	}
	path := strings.TrimPrefix(r.address, "file://")
	if len(path) > 2 && path[0] == '/' && path[2] == ':' { // a Windows path, such as /C:/
		path = path[1:]
	}
	return filepath.FromSlash(path)
}

// whyNoRepository returns why git does not accept a local path as a repository.
func whyNoRepository(path string) string {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "this machine has no such folder; check the path, or set the address of the server"
	case err != nil:
		return "the folder cannot be read: " + keyfile.Reason(err).Error()
	case !info.IsDir():
		return "this is a file, not the folder of a repository; set the argument repository to that folder, and the argument path to the file"
	}
	for at := filepath.Dir(path); filepath.Dir(at) != at; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return fmt.Sprintf("this is a folder inside the repository %s; set the argument repository to the folder of the repository, and begin "+
				"the argument path with the rest", shown(at))
		}
	}
	return "this folder is neither a git repository with .git nor a bare repository; check the path. To read a file outside of " +
		"repositories, use the source file"
}
