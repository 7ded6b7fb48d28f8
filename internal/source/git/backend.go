package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Backend returns the table for a block that names the repository in which a program keeps a state.
func Backend() attr.Table {
	t := attr.Table{
		Name: "git",
		Doc:  "A branch of a git repository, as terraform-backend-git writes it.",
		Attrs: []attr.Attr{
			{Name: "repository", Type: cty.String, Required: true, Env: []string{repositoryVar},
				Doc: "The address of the repository: an `https`, `ssh` or `file` URL, `git@host:path` or an absolute local path."},
			{Name: "ref", Type: cty.String,
				Doc: "The branch, such as `main`. Defaults to `TF_BACKEND_GIT_GIT_REF`, and in the repository of " +
					"`TF_BACKEND_GIT_GIT_REPOSITORY` to `master`."},
			{Name: "path", Type: cty.String, Required: true, Env: []string{stateVar},
				Doc: "The path of the file in the repository. The branch `locks/<path>` locks the state, so git must accept the path in the name of " +
					"a branch."},
			{Name: "create_ref", Type: cty.Bool, Default: cty.False,
				Doc: "Whether to create the branch if the repository does not have it. In an empty repository, the branch is always created."},
			{Name: "author_name", Type: cty.String, RequiredWith: "author_email",
				Doc: "The name of the author of the commits. Defaults to `GIT_AUTHOR_NAME`, then to `user.name` in the git configuration."},
			{Name: "author_email", Type: cty.String, RequiredWith: "author_name",
				Doc: "The e-mail address of the author of the commits. Defaults to `GIT_AUTHOR_EMAIL`, then to `user.email` in the git configuration."},
		},
	}
	for _, a := range credentialsTable().Without("url").Attrs { // the attribute repository replaces url
		a.Env = nil // [source.Credentials] reads the variables
		t.Attrs = append(t.Attrs, a)
	}
	return t
}

// Server is the repository of a backend block, for a program that writes to it. The program makes the
// commits, and this package fetches and pushes them.
type Server struct {
	Branch string // the full name of the state's branch

	run    *run
	remote remote

	mu     sync.Mutex // guards the fields below, which are known from earlier visits
	format string
	reach  reach
	users  *userSettings
}

// Connect returns the repository of a backend block. It does not contact the server.
func Connect(v attr.Values) (*Server, error) {
	where, err := parseRepository(v.String("repository"))
	switch {
	case errors.Is(err, errSecretForSSH):
		err = errors.New("the address contains a password, but ssh does not use passwords; remove it. If no ssh agent has the key, set " +
			"ssh_private_key_file in this block")
	case errors.Is(err, errSecretInURL):
		err = errors.New("the address contains a password or token; move it to the argument password in this block, or to the variable " +
			"GIT_PASSWORD")
	}
	if err != nil {
		return nil, v.Errorf("repository", "%w", err)
	}
	s := source.Settings{LookupEnv: v.Environment()}
	if where.url != nil {
		s.Credentials.Entries = []*unstable.Entry{inline(v, where)}
	}
	r := newRun(s.For(Kind()))
	branch, _ := strings.CutPrefix(v.String("ref"), "refs/heads/")
	if branch == "" {
		branch = r.defaults.ref(where)
	}
	if branch == "" {
		return nil, v.Errorf("ref", "no branch is set; set the argument ref to the branch with the state, for example to main")
	}
	at, err := parseRef(branch)
	if err == nil && (at.isID || branch == "HEAD" || strings.HasPrefix(branch, "refs/")) {
		err = errors.New("this is not the name of a branch, but only branches can be written; set a name like main")
	}
	if err == nil && strings.HasPrefix(branch+"/", "locks/") {
		err = errors.New("the branch locks and the branches below it are reserved for locks; use another branch")
	}
	if err != nil {
		return nil, v.Errorf("ref", "%w", err)
	}
	return &Server{Branch: "refs/heads/" + branch, run: r, remote: where}, nil
}

// inline returns a credentials block for the address of a backend block, with the credentials in that block.
func inline(v attr.Values, where remote) *unstable.Entry {
	u := *where.url
	u.User = nil
	values := map[string]cty.Value{"url": cty.StringVal(u.String())}
	for _, a := range credentialsTable().Without("url").Attrs {
		switch {
		case !v.Has(a.Name):
		case a.Type == cty.Bool:
			values[a.Name] = cty.BoolVal(v.Bool(a.Name))
		default:
			values[a.Name] = cty.StringVal(v.String(a.Name))
		}
	}
	return unstable.NewEntry(v.Address(), credentialsTable(), values)
}

func (s *Server) String() string { return s.remote.String() }

// Address returns the same address as String, but neither truncated nor escaped.
func (s *Server) Address() string { return s.remote.place() }

// Visit is a throw-away repository for one operation.
type Visit struct {
	server *Server
	d      *repository
}

// Visit returns an empty throw-away repository.
func (s *Server) Visit(ctx context.Context) (*Visit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &repository{run: s.run, remote: s.remote, withoutLocks: true, format: s.format, reach: s.reach, users: s.users}
	if err := d.prepare(ctx, false); err != nil {
		return nil, err
	}
	s.users = d.users
	return &Visit{s, d}, d.create()
}

// Close deletes the throw-away repository. If that fails, it returns a warning.
func (v *Visit) Close() string {
	v.server.mu.Lock()
	defer v.server.mu.Unlock()
	v.server.format, v.server.reach = v.d.format, v.d.reach
	return v.d.remove()
}

// Found is a file in a branch.
type Found struct {
	Commit string
	ID     string // "" if there is no such file
	Data   []byte // nil if the content was not requested
}

// NoBranchError is the error for a branch that does not exist in the repository.
type NoBranchError struct {
	Empty bool // whether the repository has no branches at all
	err   error
}

func (e *NoBranchError) Error() string { return e.err.Error() }

// Fetch fetches the commit of a branch and the folders above a file. Unless limit is 0, it also fetches the
// file; a file of more than limit bytes is an error. Fetch drops the results of earlier fetches. It also
// fetches the refspecs in beside; a pattern among them need not match anything.
func (v *Visit) Fetch(ctx context.Context, branch, name string, limit int64, beside ...string) (*Found, error) {
	d, w := v.d, &want{path: name, maxSize: limit, unread: limit == 0}
	p, list, err := v.tip(ctx, branch, beside)
	if err == nil {
		list, err = p.gather(ctx, d, list, []*want{w})
	}
	if err != nil {
		return nil, d.explain(err, p.ref)
	}
	found := &Found{Commit: list.commit}
	e, err := list.resolve(name, d.access.sent())
	if _, missing := source.IsMissing(err); missing {
		return found, list.room(name)
	}
	if err == nil {
		err = list.isExact(name)
	}
	if err != nil || limit == 0 {
		found.ID = e.id
		return found, err
	}
	blobs, err := d.readBlobs(ctx, list.wanted([]*want{w}))
	if err == nil {
		var b blob
		b, err = content(e, name, limit, blobs)
		found.ID, found.Data = e.id, b.data
	}
	return found, err
}

// tip fetches the commit of a branch. The caller must explain the error.
func (v *Visit) tip(ctx context.Context, branch string, beside []string) (*pin, *tree, error) {
	d := v.d
	d.remove()
	d.beside = beside
	p := &pin{run: d.run, remote: d.remote, ref: ref{name: strings.TrimPrefix(branch, "refs/heads/"), candidates: []string{branch}}}
	list, err := p.fetchList(ctx, d)
	if says(err, noSuchRef) {
		err = &NoBranchError{Empty: d.others != nil && len(d.others) == 0, err: d.explain(err, p.ref)}
	}
	return p, list, err
}

// Files returns the names of all files in a branch, except symbolic links.
func (v *Visit) Files(ctx context.Context, branch string) (names []string, err error) {
	v.d.reach = min(v.d.reach, allFolders)
	p, list, err := v.tip(ctx, branch, nil)
	if err != nil {
		return nil, v.d.explain(err, p.ref)
	}
	if len(list.listing) == 0 && v.d.reach == walk {
		return nil, errors.New("the repository has too many folders to list")
	}
	for line := range strings.SplitSeq(string(list.listing), "\x00") {
		about, name, ok := strings.Cut(line, "\t")
		if ok && strings.Contains(about, " blob ") && !strings.HasPrefix(about, "120000") {
			names = append(names, name)
		}
	}
	return names, nil
}

// room returns an error if a folder above name is a file.
func (t *tree) room(name string) error {
	t = t.toward(name)
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if e, ok := t.find(parent); ok && e.mode != modeDirectory {
			return fmt.Errorf("%s is a file, so no state can be written below it; change the argument path", shown(parent))
		}
	}
	return nil
}

// isExact returns an error if the existing file spells name with other Unicode code points, because writing
// to name would add a second file.
func (t *tree) isExact(name string) error {
	exact := false
	t.toward(name).each(func(_, n []byte) bool {
		exact = exact || string(n) == name
		return !exact
	})
	if !exact {
		return fmt.Errorf("the repository has a file %s whose name looks the same but has other code points; rename that file", shown(name))
	}
	return nil
}

// Git runs a command that contacts no server. more holds further environment variables. The command gets no
// password, because it may run the user's own programs, for example to sign commits.
func (v *Visit) Git(ctx context.Context, stdin io.Reader, more []string, args ...string) ([]byte, error) {
	var out []byte
	environ := v.d.commitEnviron().With(more...)
	_, err := execute(ctx, environ, stdin, keep(&out, maxListing), (*exec.Cmd).Run, append([]string{"git"}, args...))
	return out, v.d.explain(err, ref{})
}

// Push pushes commits whose largest object has size bytes. It returns git's output even if it fails.
func (v *Visit) Push(ctx context.Context, size int64, args ...string) (out []byte, err error) {
	// Otherwise git would fetch missing objects over http in order to send deltas against them.
	if err := v.d.configure(false); err != nil {
		return nil, err
	}
	// Git sends everything in one request, because some servers refuse uploads of unknown size.
	upload := 1<<20 + size + size>>10
	most := limits{object: min(spare+upload, v.d.run.largest), file: maxSnapshot}
	// A server may work for a long time before it responds. Push options are sent only if requested.
	command := append([]string{"git", "-c", fmt.Sprintf("http.postBuffer=%d", upload), "-c", "http.lowSpeedLimit=0", "-c", "push.pushOption=",
		"push"}, args...)
	_, err = v.d.ask(ctx, nil, keep(&out, maxNames), most, command)
	return out, err
}

// List returns the full names of the branches that match a pattern.
func (v *Visit) List(ctx context.Context, pattern string) (names []string, err error) {
	names, err = v.d.refs(ctx, pattern)
	return names, v.d.explain(err, ref{})
}

// Branches calls do with the commit and the full name of each branch that matches a pattern. It returns the
// full name of the branch that HEAD points to, or an empty string if the server does not say. It sends one
// request.
func (v *Visit) Branches(ctx context.Context, pattern string, do func(commit, name string)) (head string, err error) {
	err = v.d.eachRef(ctx, func(id, name string) error {
		target, isSymbolic := strings.CutPrefix(id, "ref: ")
		switch {
		case name == "HEAD" && isSymbolic:
			head = target
		case strings.HasPrefix(name, "refs/heads/") && !isSymbolic:
			do(id, name)
		}
		return nil
	}, "--symref", Remote, "HEAD", pattern)
	return head, err
}

// Explain adds advice and git's messages to an error from Branches or Push.
func (v *Visit) Explain(err error) error { return v.d.explain(err, ref{}) }

// Said returns git's messages, redacted and on one line, but not truncated. It returns an empty string if err
// is not a git error.
func (v *Visit) Said(err error) string {
	if e, ok := errors.AsType[*commandError](err); ok {
		return oneLine(v.d.access.redact(e.said))
	}
	return ""
}

// IsOtherFormat reports whether err means that the repository uses SHA-256 object ids. If so, the next visit
// uses them too.
func (v *Visit) IsOtherFormat(err error) bool {
	if !says(err, otherFormat) || v.d.format != "sha1" {
		return false
	}
	v.d.format = "sha256"
	return true
}
