package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	gitsource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// pushed describes the result of a failed push.
type pushed struct {
	reason      string // the reason that git or the server gave, or ""
	otherFormat bool   // whether the server uses longer object IDs; the next try uses them too
}

// race matches git's messages for a push that lost against another push, or met one in progress.
var race = lazyregexp.New(`stale info|fetch first|non-fast-forward|already exists|failed to (update ref|lock)|cannot lock ref|` +
	`unable to (lock|update)|incorrect old value`)

// aborted matches git's message for a hook that aborts the whole push.
var aborted = lazyregexp.New(`aborted by hook`)

// inUse matches git's message for a branch that is checked out in the repository.
var inUse = lazyregexp.New(`checked out`)

// isStale reports whether git found an unexpected commit before it sent anything.
func (p pushed) isStale() bool { return strings.Contains(p.reason, "stale info") }

func (p pushed) isRace() bool { return race.MatchString(p.reason) }

// push moves a branch from the commit expected to the commit called commit. If expected is empty, push creates the
// branch. If commit is empty, push removes the branch. push fails if the branch is at any other commit.
func (s *state) push(ctx context.Context, v *gitsource.Visit, size int64, branch, expected, commit string) (pushed, error) {
	out, err := v.Push(ctx, size, "-q", "--porcelain", "--no-verify", "--no-signed", "--no-recurse-submodules", "--no-follow-tags",
		"--no-force-if-includes", "--no-thin", "--force-with-lease="+branch+":"+expected, gitsource.Remote, commit+":"+branch)
	if err == nil {
		return pushed{}, nil
	}
	if v.IsOtherFormat(err) {
		return pushed{otherFormat: true}, v.Explain(err)
	}
	for line := range strings.Lines(string(out)) { // "!\t<from>:<to>\t[rejected] (<reason>)"
		if rest, ok := strings.CutPrefix(line, "!\t"); ok {
			_, reason, _ := strings.Cut(rest, "\t")
			p := pushed{reason: strings.TrimSpace(reason)}
			return p, s.refusal(branch, commit, p.reason, v.Said(err))
		}
	}
	if aborted.MatchString(v.Said(err)) {
		p := pushed{reason: "a hook there refuses it"}
		return p, s.refusal(branch, commit, p.reason, v.Said(err))
	}
	err = v.Explain(err)
	if gitsource.IsDenied(err) && !gitsource.IsRejected(err) {
		return pushed{}, fmt.Errorf("%w. %s", s.unreached(err), s.rights(branch, commit))
	}
	return pushed{}, s.unreached(err)
}

// unreached returns the error for a server that denies access, or that another try may reach.
func (s *state) unreached(err error) error {
	if gitsource.IsDenied(err) {
		return fmt.Errorf("%w to %s: %w", store.ErrDenied, outside.Line(s.server.String(), 300), err)
	}
	return reached(err)
}

// refusal returns the error for a push that the server refused.
func (s *state) refusal(branch, commit, reason, said string) error {
	short := strings.TrimPrefix(branch, "refs/heads/")
	what := "to create the branch"
	switch {
	case commit == "":
		what = "to remove the branch"
	case branch == s.server.Branch:
		what = "a commit in the branch"
	}
	text := fmt.Sprintf("the server refuses %s %s: %s", what, outside.Quoted(short, 300),
		outside.End(cmp.Or(reason, "it does not say why"), 300))
	if remote := ofServer(said); remote != "" {
		text += ". It said: " + outside.End(remote, 1000)
	}
	if inUse.MatchString(reason) {
		text += ". Use a bare repository"
	} else {
		text += ". " + s.rights(branch, commit)
	}
	if commit == "" {
		text += ". The lock stays until someone with that right deletes the branch"
	}
	return store.Denied(errors.New(text))
}

// rights returns a text that names the permissions a push needs.
func (s *state) rights(branch, commit string) string {
	switch {
	case commit == "":
		return "You need the right to delete branches below locks/; check receive.denyDeletes, rules and protected branches"
	case branch == s.server.Branch:
		return "You need the right to push to the branch without a merge request; check rules, protected branches and hooks"
	}
	return "You need the right to create branches below locks/; check rules, protected branches and hooks"
}

// ofServer returns the server messages in git's output.
func ofServer(said string) string {
	var lines []string
	for part := range strings.SplitSeq(said, "; ") {
		if text, ok := strings.CutPrefix(part, "remote: "); ok && strings.TrimSpace(text) != "" {
			lines = append(lines, strings.TrimSpace(text))
		}
	}
	return strings.Join(lines, "; ")
}
