package git

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// accessTo says what may be told to the server of where: what the root module
// put into a credentials block for it, or what the environment clearly meant
// for it. A data source, which any module can write, chose the server.
func (r *run) accessTo(where remote) (*access, error) {
	if where.protocol == "file" {
		return &access{}, nil
	}
	credentials := r.settings.Credentials
	if !r.backend.mayFill(where) {
		credentials.Env = nil
	}
	block, covered, err := credentials.For(where.url)
	switch {
	case err != nil:
		return nil, err
	case where.protocol == "ssh" && covered:
		return blockSSHAccess(block)
	case covered:
		return r.httpAccess(where, block)
	case r.backend.covers(where):
		return r.backendAccess(where)
	case where.protocol == "ssh":
		return &access{overSSH: true}, r.refuseStray(where, "SSH_PRIVATE_KEY")
	}
	return r.uncoveredAccess(where)
}

// backendAccess is for the repository that terraform-backend-git's environment
// names, and follows its rules: the same variables, in the same order.
func (r *run) backendAccess(where remote) (*access, error) {
	env := r.settings.LookupEnv
	if where.protocol == "ssh" {
		key, _ := env.Get("SSH_PRIVATE_KEY")
		checking, _ := env.Get("StrictHostKeyChecking")
		return sshAccess(key, checking, func(attr, format string, args ...any) error {
			name := "SSH_PRIVATE_KEY"
			if attr == hostKeysAttr {
				name = "StrictHostKeyChecking"
			}
			return fmt.Errorf("the environment variable "+name+": "+format, args...)
		})
	}
	username, _ := env.Get("GIT_USERNAME")
	password, err := r.secret("GIT_PASSWORD", "GIT_PASSWORD_FILE")
	// A token of GitHub is in the environment of many runs that are about
	// other servers: only together with a name it is meant for this one.
	if err == nil && password == "" && (username != "" || r.isGitHub(where)) {
		if password, err = r.secret("GITHUB_TOKEN", "GITHUB_TOKEN_FILE"); password != "" {
			username = tokenUser(r.backend.repository, username)
		}
	}
	if err != nil {
		return nil, err
	}
	if username == "" && r.backend.repository.url.User != nil {
		username = r.backend.repository.url.User.Username()
	}
	if password != "" && username == "" {
		return nil, errors.New("a git password is set, and no GIT_USERNAME; for a token, most hosts accept any, such as \"git\"")
	}
	repository := strings.TrimSuffix(where.url.EscapedPath(), "/")
	a := &access{scope: scope(where, repository), username: username, password: password}
	if !strings.HasSuffix(repository, ".git") {
		a.alias = scope(where, repository+".git") // GitLab redirects to it
	}
	return a, a.check(where, false)
}

// refuseStray is the error for a secret of the environment that would be
// dropped in silence otherwise, or sent where a module says. Secrets that come
// with the name of their repository have a place.
func (r *run) refuseStray(where remote, names ...string) error {
	if r.backend.claims(where) {
		return nil
	}
	for _, name := range names {
		if _, set := r.settings.LookupEnv.Get(name); set {
			origin := source.Origin(&url.URL{Scheme: where.url.Scheme, Host: where.url.Host})
			return fmt.Errorf("%s is set, but nothing says that it is meant for %s; to use it there, add credentials { git { url = %q } } to the provider, otherwise unset it", name, origin, origin+"/")
		}
	}
	return nil
}

// uncoveredAccess is for http and https without a block. A GitHub token names
// its server by itself; where it is not meant, it is no mistake either, because
// CI systems set it always.
func (r *run) uncoveredAccess(where remote) (*access, error) {
	if !r.isGitHub(where) {
		return &access{}, r.refuseStray(where, "GIT_PASSWORD", "GIT_PASSWORD_FILE")
	}
	token, err := r.secret("GITHUB_TOKEN", "GITHUB_TOKEN_FILE")
	if err != nil {
		return nil, err
	}
	if token == "" {
		return &access{}, r.refuseStray(where, "GIT_PASSWORD", "GIT_PASSWORD_FILE")
	}
	username, _ := r.settings.LookupEnv.Get("GIT_USERNAME")
	a := &access{scope: scope(where, "/"), username: tokenUser(where, username), password: token}
	return a, a.check(where, false)
}

// isGitHub reports whether where is on the server that a GitHub token is for.
func (r *run) isGitHub(where remote) bool {
	home := "https://github.com/"
	if server, set := r.settings.LookupEnv.Get("GITHUB_SERVER_URL"); set {
		home = server
	}
	base, err := source.ParseBase(home)
	return err == nil && base.Scheme == where.protocol && source.Covers(&url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/"}, where.url)
}

func (r *run) httpAccess(where remote, block attr.Values) (*access, error) {
	base, err := source.ParseBase(block.String("url"))
	if err != nil {
		return nil, block.Errorf("url", "%w", err)
	}
	a := &access{scope: scope(where, base.Path), username: block.String("username"), password: block.String("password")}
	own := r.settings.Credentials
	own.Env = nil
	bare, _, err := own.For(where.url)
	if err != nil {
		return nil, err
	}
	a.ownTLS = bare.Has("password") || bare.Has("ca_file")
	if a.caFile, err = readableFile("ca_file", block.String("ca_file"), block.Errorf); err != nil {
		return nil, err
	}
	if a.password == "" && r.backend.mayFill(where) {
		if a.password, err = r.secret("GIT_PASSWORD_FILE"); err != nil {
			return nil, err
		}
	}
	if a.password == "" {
		if a.password, err = r.secret("GITHUB_TOKEN", "GITHUB_TOKEN_FILE"); err != nil {
			return nil, err
		}
		if a.password != "" {
			a.username = tokenUser(where, a.username)
		}
	}
	if a.username == "" && where.url.User != nil {
		a.username = where.url.User.Username()
	}
	if a.password != "" && a.username == "" {
		return nil, block.Errorf("username", "a password needs a username; for a token, most hosts accept any, such as \"git\"")
	}
	return a, a.check(where, block.Bool("allow_plain_http"))
}

func tokenUser(where remote, username string) string {
	switch {
	case username != "":
		return username
	case where.url.User != nil:
		return where.url.User.Username()
	}
	return "x-access-token" // as GitHub documents it for tokens of apps and actions
}

// scope is written with the target's host, which is the one that git compares.
func scope(where remote, path string) string {
	return where.url.Scheme + "://" + where.url.Host + strings.TrimSuffix(path, "/") + "/"
}

func (a *access) check(where remote, allowPlainHTTP bool) error {
	if a.password == "" {
		return nil
	}
	if strings.ContainsAny(a.username+a.password, "\r\n\x00") {
		return errors.New("the git username or password holds a line break or NUL character")
	}
	if strings.Contains(a.username, ":") {
		return errors.New("a git username cannot hold a colon")
	}
	if where.protocol == "http" && !isLoopback(where.url.Hostname()) && !allowPlainHTTP {
		return fmt.Errorf("credentials are not sent to %s over plain http; use https, or set allow_plain_http in the credentials block", where.url.Host)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// secret returns the first of the variables that is set. One whose name ends
// with _FILE names a file.
func (r *run) secret(names ...string) (string, error) {
	for _, name := range names {
		value, set := r.settings.LookupEnv.Get(name)
		if !set {
			continue
		}
		if !strings.HasSuffix(name, "_FILE") {
			return value, nil
		}
		secret, err := readSecretFile(value)
		if err != nil {
			return "", fmt.Errorf("the environment variable %s: %w", name, err)
		}
		return secret, nil
	}
	return "", nil
}

const maxSecret = 64 << 10

func readSecretFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", errors.Unwrap(err) // without the path, which may be the secret itself by mistake
	}
	if !info.Mode().IsRegular() || info.Size() > maxSecret {
		return "", errors.New("it must name a regular file of at most 64 KiB")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", errors.Unwrap(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecret))
	if err != nil {
		return "", errors.Unwrap(err)
	}
	secret := strings.TrimSpace(string(data))
	if secret == "" {
		return "", errors.New("the file is empty")
	}
	return secret, nil
}

// complain makes an error about one setting, by the name that it has in a
// credentials block.
type complain func(attr, format string, args ...any) error

const (
	keyFileAttr  = "ssh_private_key_file"
	hostKeysAttr = "strict_host_key_checking"
)

func blockSSHAccess(block attr.Values) (*access, error) {
	return sshAccess(block.String(keyFileAttr), block.String(hostKeysAttr), block.Errorf)
}

func sshAccess(keyFile, hostKeys string, fail complain) (*access, error) {
	a := &access{overSSH: true, hostKeys: hostKeys}
	switch a.hostKeys {
	case "", "yes", "accept-new":
	case "no":
		a.warnings = []string{"The ssh server's host key was not verified (strict_host_key_checking, or StrictHostKeyChecking in the environment, is \"no\"), so the state may come from somebody else's server."}
	default:
		return nil, fail(hostKeysAttr, `"yes", "accept-new" or "no" is required`)
	}
	var err error
	a.sshKeyFile, err = readableFile(keyFileAttr, keyFile, fail)
	if err == nil && strings.Contains(a.sshKeyFile, "${") {
		err = fail(keyFileAttr, `ssh would take the "${" in this path for a variable`)
	}
	return a, err
}

// readableFile returns the absolute path of a file, or "" when there is none.
// The path may be a key, pasted by mistake: errors do not repeat it.
func readableFile(attr, path string, fail complain) (string, error) {
	if path == "" {
		return "", nil
	}
	if strings.Contains(path, "-----BEGIN") || strings.ContainsAny(path, "\r\n\x00") {
		return "", fail(attr, "the path of a file is required, not its content")
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fail(attr, "%w", err)
		}
		path = filepath.Join(home, rest)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fail(attr, "%w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fail(attr, "the file cannot be read: %w", errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() {
		return "", fail(attr, "this is not a regular file")
	}
	return path, nil
}
