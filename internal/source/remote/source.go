package remote

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	svchost "github.com/hashicorp/terraform-svchost"
	"golang.org/x/net/http/httpproxy"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// run holds the services, tokens and connections that the sources of one configured provider share.
type run struct {
	credentials source.Credentials
	patience    web.Patience
	proxies     *httpproxy.Config
	world       world.World
	tokens      *cliTokens

	services memo.Memo[serviceKey, *url.URL]
	accesses memo.Memo[string, *access] // by url of the block; "" without a block
}

func start(s source.Settings) source.Open { return newRun(s).open }

func newRun(s source.Settings) *run {
	r := &run{
		credentials: s.Credentials,
		patience:    web.Patience{Timeout: 2 * time.Minute, Tries: 2, WaitMin: time.Second, WaitMax: 30 * time.Second},
		proxies:     web.Proxies(s.LookupEnv),
		world:       s.World(),
		tokens:      &cliTokens{lookup: s.LookupEnv},
	}
	r.credentials.CheckURL = checkURL
	return r
}

// isName reports whether s can be the name of an organization or a workspace. Services have different rules,
// but none allows a slash.
func isName(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	return s != "" && len(s) <= 200 && !strings.ContainsRune(".@~+-", first) && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_.@~+-", r)
	})
}

var idPattern = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// isID reports whether s can be an ID. IDs come from outside, and must be a single path segment.
func isID(s string) bool { return len(s) <= 200 && idPattern.MatchString(s) }

func isHost(s string) bool { _, err := svchost.ForComparison(s); return err == nil }

func isVersion(s string) bool { return strings.HasPrefix(s, "sv-") && isID(s) }

func (r *run) open(req source.Request) (source.Source, error) {
	host, err := svchost.ForComparison(req.String("hostname")) // the attribute's Check has found no error
	if err != nil {
		return nil, err
	}
	l := &location{
		run: r, host: host.String(), organization: req.String("organization"), limit: req.MaxSize,
		version: req.String("state_version"), outputsOnly: req.Bool("outputs_only"),
	}
	if l.workspace, err = workspaceName(req); err != nil {
		return nil, err
	}
	if !isName(l.workspace) {
		return nil, req.Errorf("workspaces", "this is not a valid workspace name; use only letters, digits, dashes, underscores and dots")
	}
	// Invalid settings are reported before anything is sent.
	_, err = l.accessTo(context.Background(), l.address())
	return l, err
}

// workspaceName returns the service's name for the backend's workspace.
func workspaceName(req source.Request) (string, error) {
	w, there := req.Block("workspaces")
	var name, prefix string
	if there {
		name, prefix = w.String("name"), w.String("prefix")
	}
	isDefault := req.OtherWorkspace() == ""
	switch {
	case name != "" && !isDefault && req.Workspace != name:
		return "", req.Errorf("workspaces", "name in workspaces selects the only workspace; remove the argument workspace, or set prefix "+
			"instead of name")
	case name != "":
		return name, nil
	case isDefault:
		return "", req.Errorf("workspaces", "no workspace is set; set name in workspaces. If prefix is set, set the argument workspace")
	case strings.HasPrefix(req.Workspace, prefix): // the backend does not add the prefix twice
		return req.Workspace, nil
	default:
		return prefix + req.Workspace, nil
	}
}

// location is the state of one workspace.
type location struct {
	*run
	host                    string // in ASCII, with its port
	organization, workspace string
	version                 string // ID of the state version; "" means the current one
	outputsOnly             bool
	limit                   int64
}

func (l *location) String() string {
	what := fmt.Sprintf("workspace %s/%s at %s", l.organization, l.workspace, svchost.ForDisplay(l.host))
	switch {
	case l.version != "":
		return fmt.Sprintf("state version %s of %s", l.version, what)
	case l.outputsOnly:
		return "the outputs of " + what
	}
	return what
}

// address returns the URL at which a browser shows the workspace. Credentials blocks must cover this URL, but
// no request is sent to it.
func (l *location) address() *url.URL {
	return &url.URL{Scheme: "https", Host: l.host, Path: "/app/" + l.organization + "/workspaces/" + l.workspace}
}

// Fetch finds the service, the workspace and the state version, and downloads the state.
func (l *location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	service, err := l.service(ctx)
	if err != nil {
		return nil, err
	}
	x := &exchange{location: l}
	w, err := x.readWorkspace(ctx, service)
	if err != nil {
		return nil, err
	}
	snapshot := &source.Snapshot{Lock: w.lock(l)}
	if l.outputsOnly {
		snapshot.Data, err = x.readOutputs(ctx, service, w)
	} else {
		snapshot.Data, snapshot.Revision, err = x.readState(ctx, service, w)
	}
	if missing, ok := source.IsMissing(err); ok {
		missing.Lock = snapshot.Lock
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	snapshot.Warnings = x.warnings
	return snapshot, nil
}
