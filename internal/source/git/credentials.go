package git

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const (
	keyFileAttr  = "ssh_private_key_file"
	hostKeysAttr = "strict_host_key_checking"

	passwordFileVar = "GIT_PASSWORD_FILE"
	keyFileVar      = "SSH_PRIVATE_KEY"
)

// These variables say where terraform-backend-git keeps a state.
const (
	repositoryVar = "TF_BACKEND_GIT_GIT_REPOSITORY"
	refVar        = "TF_BACKEND_GIT_GIT_REF"
	stateVar      = "TF_BACKEND_GIT_GIT_STATE"
)

// defaults holds the values of terraform-backend-git's environment variables. The variable repositoryVar
// names the repository that the others are meant for.
type defaults struct {
	defaultRef string
	repository remote // the zero value if repositoryVar is not set or not a valid address
	named      bool   // whether repositoryVar is set
}

func newDefaults(lookup attr.LookupEnv) defaults {
	text, named := lookup.Get(repositoryVar)
	repository, _ := parseRepository(text) // an error does not matter: the read may be from another source
	ref, _ := lookup.Get(refVar)
	return defaults{defaultRef: ref, named: named, repository: repository}
}

// ref returns the default ref for where, or an empty string for the remote's HEAD. If the environment does
// not name a repository, its ref applies to every repository. Otherwise the ref applies only to the named
// repository, and it defaults to master, as in terraform-backend-git.
func (d defaults) ref(where remote) string {
	switch {
	case !d.named:
		return d.defaultRef
	case d.repository.address == where.address, where.url != nil && d.repository.is(where.url):
		return cmp.Or(d.defaultRef, "master")
	}
	return ""
}

// over returns c without the environment variables of the other transport, ssh or http, so that they cannot
// cause errors.
func over(c source.Credentials, ssh bool) source.Credentials {
	c.Table.Attrs, c.Table.Variables = slices.Clone(c.Table.Attrs), slices.Clone(c.Table.Variables)
	for _, attrs := range [][]attr.Attr{c.Table.Attrs, c.Table.Variables} {
		for i, a := range attrs {
			if (a.Name == keyFileVar || a.Name == hostKeysAttr) != ssh {
				attrs[i].Env = nil
			}
		}
	}
	return c
}

// accessTo returns the access to the server of where. The credentials come from a block, or from variables
// that are meant for this server.
func (r *run) accessTo(where remote) (*access, error) {
	switch where.protocol {
	case "file":
		return &access{}, nil
	case "ssh":
		grant, err := r.ssh.For(where.url)
		if err != nil {
			return nil, err
		}
		socket, _ := r.environment(false).Lookup("SSH_AUTH_SOCK")
		return r.sshAccess(grant, where, socket != "")
	}
	grant, err := r.http.Redirected(where.url) // the method For would return an error for a password even if there is a token
	if err != nil {
		return nil, err
	}
	a, err := r.httpAccess(where, grant)
	if err != nil || a.password != "" || grant.Found || grant.ReadsEnvironment() {
		return a, err
	}
	_, err = r.http.For(where.url)
	return &access{}, err
}

func (r *run) httpAccess(where remote, grant source.Grant) (*access, error) {
	a := &access{username: grant.String("username"), password: grant.String("password"), grant: grant, stays: !r.followsRedirects}
	named := where // the repository whose user name is used
	var err error
	switch {
	case grant.Found:
		err = a.useBlock(where, grant)
	case grant.ReadsEnvironment():
		named = r.defaults.repository
		a.useRepository(where)
	default:
		a.scope = scope(where, "/")
	}
	if err == nil && a.password == "" {
		a.password, err = secretFile(passwordFileVar, grant.String(passwordFileVar))
	}
	if err == nil && a.password == "" {
		err = r.useToken(a, where, named, grant.Found && r.tokenForBlocks)
	}
	if err != nil {
		return nil, err
	}
	// The user's insteadOf settings must not send a block's password to another server. Git therefore gets a
	// random address, for which our own insteadOf is the longest match. If several settings are equally long,
	// git applies the last one.
	if a.server = a.scope; a.ownPassword {
		a.placeholder, a.server = "statecrypt:"+rand.Text(), a.address(where)
	}
	a.username = cmp.Or(a.username, named.user())
	if a.password != "" && a.username == "" {
		return nil, grant.Errorf("username", "a password is set, but no username is; set username (GIT_USERNAME). For a token, "+
			`most hosts accept any username, for example "git"`)
	}
	exposed := netfail.IsExposed(where.url, nil)
	a.local = a.password != "" && where.protocol == "http" && !exposed
	return a, a.check(where, exposed && !grant.Bool("allow_plain_http"))
}

// useBlock copies the values that only a block can set.
func (a *access) useBlock(where remote, block source.Grant) error {
	base, err := source.ParseBase(block.String("url"))
	if err != nil {
		return block.Errorf("url", "%w", err)
	}
	a.scope = scope(where, base.Path)
	if source.Covers(where.url, base) {
		a.useRepository(where)
	}
	a.caFile, err = readableFile("ca_file", block)
	a.ownPassword = block.Hands("password")
	return err
}

// useRepository restricts the credentials to the one repository that the block, or terraform-backend-git's
// environment, names.
func (a *access) useRepository(where remote) {
	path := strings.TrimSuffix(where.url.EscapedPath(), "/")
	a.scope = scope(where, path)
	if !strings.HasSuffix(path, ".git") {
		a.alias = scope(where, path+".git") // GitLab redirects to this address
	}
}

// useToken looks for a GitHub token in the environment. The token is meant for GitHub's own server. Another
// server gets it only if it has a block and tokenForBlocks is set, or if a user name is set for it. Otherwise
// the token is ignored without an error, because CI systems always set one.
func (r *run) useToken(a *access, where, named remote, block bool) (err error) {
	github := source.Home{Vars: []string{"GITHUB_SERVER_URL"}, Default: "https://github.com/"}
	isGitHub := github.Is(r.lookup, where.url)
	beside := world.Beside{OtherServer: !isGitHub && !block && a.username == ""}
	if world.Decide("GITHUB_TOKEN", world.Attribute{IsIdentity: true}, beside).Answer != world.Used {
		return nil
	}
	if token, set := r.lookup.Get("GITHUB_TOKEN"); set {
		a.password = token
	} else if path, _ := r.lookup.Get("GITHUB_TOKEN_FILE"); path != "" {
		a.password, err = secretFile("GITHUB_TOKEN_FILE", path)
	}
	if a.password == "" {
		return err
	}
	if a.username == "" && isGitHub {
		a.username, _ = r.lookup.Get("GIT_USERNAME")
	}
	a.username = cmp.Or(a.username, named.user(), "x-access-token") // the documented user name for tokens of GitHub apps and actions
	return nil
}

// scope returns the URL of a path on the server of where. It spells the host as where does, because git
// compares spellings.
func scope(where remote, path string) string {
	return where.url.Scheme + "://" + where.url.Host + strings.TrimSuffix(path, "/") + "/"
}

func (a *access) check(where remote, exposed bool) error {
	words := cmp.Or(source.CheckWord("username", a.username), source.CheckWord("password", a.password))
	switch {
	case a.password == "":
		return nil
	case words != nil:
		return words
	case strings.Contains(a.username, ":"):
		return errors.New("a git username cannot contain a colon; if this is user:password, move the part after the colon to the argument " +
			"password")
	case exposed:
		return fmt.Errorf("credentials are not sent to %s over plain http; "+
			"use https, or set allow_plain_http in {credentials}", where.url.Host)
	}
	return nil
}

// secretFile reads the file that an environment variable names. It returns an empty string if path is empty.
func secretFile(variable, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	content, err := keyfile.ReadText(path)
	if err != nil {
		// The error must not contain the path, which may be the secret itself by mistake.
		return "", fmt.Errorf("the environment variable %s: %w", variable, errors.Unwrap(err))
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", fmt.Errorf("the environment variable %s: the file is empty; check the path", variable)
	}
	return secret, nil
}

// sshAccess returns the access over ssh. As in terraform-backend-git, the agent's keys are tried before
// SSH_PRIVATE_KEY, and with either of them the default user is git.
func (r *run) sshAccess(grant source.Grant, where remote, agent bool) (*access, error) {
	a := &access{overSSH: true, onlyKey: grant.Has(keyFileAttr), hostKeys: grant.String(hostKeysAttr), grant: grant}
	a.passwordUnused = grant.Has("password")
	keyFile := keyFileAttr
	if !a.onlyKey {
		keyFile = keyFileVar
		a.asGit = where.user() == "" && (grant.Has(keyFileVar) || agent)
	}
	switch a.hostKeys {
	case "", "yes", "accept-new":
	case "no":
		a.warnings = []source.Warning{{Title: netfail.NotVerified, Text: "The ssh server's host key was not verified " +
			"(strict_host_key_checking, or StrictHostKeyChecking in the environment, is \"no\"), so the state may come from someone " +
			"else's server."}}
	default:
		return nil, grant.Errorf(hostKeysAttr, `the value must be "yes", "accept-new" or "no"`)
	}
	var err error
	a.sshKeyFile, err = readableFile(keyFile, grant)
	if err == nil && strings.Contains(a.sshKeyFile, "${") {
		err = grant.Errorf(keyFile, `ssh would treat the "${" in this path as a variable; use another path`)
	}
	if err == nil && a.sshKeyFile != "" {
		if content, unread := keyfile.Read(a.sshKeyFile); unread == nil {
			a.keyMistake = notPrivateKey(content)
		}
	}
	return a, err
}

// notPrivateKey describes why ssh cannot use a file as a private key, and how to fix it. It returns an empty
// string if the file is such a key.
func notPrivateKey(content []byte) string {
	_, err := ssh.ParseRawPrivateKey(content)
	_, protected := errors.AsType[*ssh.PassphraseMissingError](err)
	public, _, _, _, notPublic := ssh.ParseAuthorizedKey(content)
	switch {
	case err == nil:
		return ""
	case protected:
		return "the private key has a passphrase, but nobody can enter it here; load the key into the ssh agent, or remove the passphrase with " +
			"ssh-keygen -p"
	case notPublic == nil && public != nil:
		return "the file contains a public key; use the private key from the file of the same name without .pub"
	}
	return cmp.Or(recognize.NoSSHKey(content),
		"the private key is truncated, or its type is not supported; check it with ssh-keygen -y -f FILE")
}

// readableFile returns the absolute path of a file, or an empty string if the attribute is not set. Its
// errors do not repeat a value that may be a key, pasted instead of a path.
func readableFile(name string, grant source.Grant) (string, error) {
	path := grant.String(name)
	if path == "" {
		return "", nil
	}
	if recognize.IsContent(path) {
		return "", grant.Errorf(name, "this is the content of a file, not its path; set the path")
	}
	path, err := world.ExpandHome(path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", grant.Errorf(name, "%w", err)
	}
	switch info, err := os.Stat(path); {
	case err != nil:
		return "", grant.Errorf(name, "%s cannot be read: %w", shownFile(grant.String(name), path), keyfile.Explain(path, err))
	case !info.Mode().IsRegular():
		return "", grant.Errorf(name, "this is not a regular file; set the path of a regular file")
	}
	return path, nil
}

// shownFile returns how an error message refers to a file. It includes the path only if the setting surely is
// a path, because it may be the key itself.
func shownFile(given, path string) string {
	if recognize.IsPath(given) {
		return fmt.Sprintf("the file %q", shown(path))
	}
	return "the file"
}

// nearRepository returns the [source.Match] between the repository that terraform-backend-git's environment
// names and the address in asked. It returns Undecided if only one of them uses ssh, or if the environment
// names a folder.
func nearRepository(home, asked string) source.Match {
	named, err := parseRepository(home)
	where, askedErr := url.Parse(asked)
	switch {
	case err != nil || askedErr != nil:
		return source.OtherServer
	case named.url == nil || (named.protocol == "ssh") != (where.Scheme == "ssh"):
		return source.Undecided
	case named.is(where):
		return source.SamePlace
	case source.Covers(&url.URL{Scheme: named.url.Scheme, Host: named.url.Host}, where):
		return source.SameServer
	}
	return source.OtherServer
}
