// Package git keeps a state in a branch of a git repository. It uses the same files and locks as terraform-backend-git.
// Each lock is a separate branch. All work is done in a temporary repository, and nothing is checked out.
package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	gitsource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// Kind returns the git store.
func Kind() store.Kind {
	return store.Kind{
		Table: gitsource.Backend(), Named: "path", Older: "the history of the branch", Counts: true,
		Withhold: []string{"GIT_PASSWORD", "GIT_PASSWORD_FILE"}, Open: open,
	}
}

const (
	maxWrites  = 40 // attempts at one write, while other writers are faster
	maxRefusal = 5  // refused pushes in a row to a branch that nobody else seems to have changed

	locks = "refs/heads/locks/" // the prefix of all lock branches
)

// branch is the branch that contains the states.
type branch struct {
	store.Settings
	server *gitsource.Server

	begun atomic.Bool // whether the server has a branch that is not a lock

	mu     sync.Mutex // guards opened
	opened []*state   // all of them, for Close

	writing sync.Mutex // guards the branch, so that states of the same process are not written against each other

	asking sync.Mutex // guards maker
	maker  *maker     // nil until the first commit
}

func open(s store.Settings) (store.Store, error) {
	server, err := gitsource.Connect(s.Values)
	for _, part := range []string{"author_name", "author_email"} {
		text := s.String(part)
		if strings.ContainsAny(text, "<>\r\n\x00") || text != "" && strings.Trim(text, ` .,:;"\'`) == "" {
			const why = "git does not accept this value, because it contains a <, a > or a line break, or consists only of punctuation; correct it"
			err = errors.Join(err, s.Errorf(part, "%w", errors.New(why)))
		}
	}
	if err != nil {
		return nil, err
	}
	return &branch{Settings: s, server: server}, nil
}

// Close deletes the temporary repositories that [state.Versions] and [state.ReadVersion] leave for later calls.
func (b *branch) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, s := range b.opened {
		s.mu.Lock()
		errs = append(errs, s.forget())
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// Properties returns the properties of a branch. The store verifies writes itself: it looks up each commit after
// pushing it.
func (*branch) Properties() store.Properties {
	return store.Properties{HasLocks: true, KeepsAll: true, Verifies: true}
}

// State returns the state in the named file.
func (b *branch) State(name string) (store.State, error) {
	name, err := gitsource.CleanPath(name)
	if err == nil {
		if err = gitsource.CheckBranch("locks/" + name); err != nil {
			err = fmt.Errorf("the lock of this state would be the branch locks/%s, but git does not allow that name: %w; choose "+
				"another path", outside.Line(name, 300), err)
		}
	}
	if err != nil {
		return nil, b.Errorf("path", "%w", err)
	}
	one := &state{branch: b, name: name, lockRef: locks + name}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = append(b.opened, one)
	return one, nil
}

// List returns the files at the tip of the branch whose names begin with prefix.
func (b *branch) List(ctx context.Context, prefix string) (names []string, err error) {
	err = b.visit(ctx, func(ctx context.Context, v *gitsource.Visit) error {
		names, err = v.Files(ctx, b.server.Branch)
		return reached(err)
	})
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) }), err
}

// state is the state in one file.
type state struct {
	*branch
	name, lockRef string

	mu   sync.Mutex
	held *held    // our lock, or nil
	lost string   // the ID of a lock that the server reported as ours, although it was not
	past *history // nil until versions are listed or read
}

// held is our lock and its commit.
type held struct {
	store.Lock
	commit string
	seen   bool // whether a fetch after the push has found the lock
}

func (s *state) String() string { return s.in(s.server.String()) }

// Address returns the same text as String, but with the full address of the repository.
func (s *state) Address() string { return s.in(s.server.Address()) }

func (s *state) in(repository string) string {
	return fmt.Sprintf("%s in the branch %s of %s", s.name, strings.TrimPrefix(s.server.Branch, "refs/heads/"), repository)
}

// visit calls do with a temporary repository.
func (b *branch) visit(ctx context.Context, do func(ctx context.Context, v *gitsource.Visit) error) error {
	return b.inTime(ctx, func(ctx context.Context) error {
		v, err := b.server.Visit(ctx)
		if v != nil {
			defer func() {
				if left := v.Close(); left != "" {
					notice.Show(ctx, left)
				}
			}()
		}
		if err == nil {
			err = do(ctx, v)
		}
		return err
	})
}

// inTime calls do with the time limit for one request.
func (b *branch) inTime(ctx context.Context, do func(ctx context.Context) error) error {
	if b.Patience > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, b.Patience,
			&store.UnansweredError{Err: errors.New("the server of the repository takes too long")})
		defer cancel()
		ctx = limited
	}
	return b.Voice().Speak(do(ctx))
}

// Read reads the file at the tip of the branch. The first Read under a lock also checks the lock, because some servers
// report success for a push that lost a race.
func (s *state) Read(ctx context.Context) (data []byte, version store.Version, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.visit(ctx, func(ctx context.Context, v *gitsource.Visit) error {
		unsure := s.held != nil && !s.held.seen
		var beside []string
		if unsure {
			beside = []string{s.besideLock()}
		}
		found, err := s.tip(ctx, v, s.Limit, beside...)
		if err == nil && unsure {
			err = s.checkLock(ctx, v, found.Commit)
		}
		if err == nil {
			data, version = found.Data, store.Version(found.ID)
		}
		return err
	})
	return data, version, err
}

// tip returns the state at the tip of the branch. The commit is empty if the branch does not exist yet but may be
// created.
func (s *state) tip(ctx context.Context, v *gitsource.Visit, limit int64, beside ...string) (*gitsource.Found, error) {
	found, err := v.Fetch(ctx, s.server.Branch, s.name, limit, beside...)
	if none, ok := errors.AsType[*gitsource.NoBranchError](err); ok {
		return &gitsource.Found{}, s.mayCreate(none)
	}
	return found, reached(err)
}

// mayCreate returns an error if the branch does not exist and must not be created.
func (b *branch) mayCreate(none *gitsource.NoBranchError) error {
	if !none.Empty && !b.Bool("create_ref") {
		return fmt.Errorf("the branch does not exist, and wrap creates it only with create_ref = true: %w", none)
	}
	return nil
}

// reached turns a connection error into a [store.UnansweredError], because another attempt may succeed.
func reached(err error) error {
	if gitsource.IsUnanswered(err) {
		return &store.UnansweredError{Err: err}
	}
	return err
}

// Write pushes a commit that contains the state.
func (s *state) Write(ctx context.Context, data []byte, read store.Version) (store.Version, error) {
	return s.change(ctx, data, read)
}

// Remove pushes a commit that removes the state.
func (s *state) Remove(ctx context.Context, read store.Version) error {
	_, err := s.change(ctx, nil, read)
	return err
}

// change pushes a commit. It tries again as long as others change the branch but not this state.
func (s *state) change(ctx context.Context, data []byte, read store.Version) (next store.Version, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing.Lock()
	defer s.writing.Unlock()
	c := &change{state: s, data: data, read: read}
	for try := range maxWrites {
		var again bool
		err = s.visit(ctx, func(ctx context.Context, v *gitsource.Visit) (err error) {
			next, again, err = c.attempt(ctx, v)
			return err
		})
		if !again {
			break
		}
		if stopped := pause(ctx, try); stopped != nil {
			return "", stopped
		}
		err = &store.UnansweredError{Err: fmt.Errorf("others changed the branch in the meantime, %d times", try+1)}
	}
	return next, err
}

// pause waits for a random time, which grows with the number of tries.
func pause(ctx context.Context, try int) error {
	most := min(100*time.Millisecond<<min(try, 5), 2*time.Second)
	return store.Pause(ctx, most/10+rand.N(most)) //nolint:gosec // spreads the attempts of several runs
}

// change is one change to the state.
type change struct {
	*state
	data []byte // the new state, or nil to remove it
	read store.Version

	sent     bool   // whether an earlier attempt pushed a commit
	blob     string // the blob of the state in that commit
	tip      string // the parent of that commit
	refusals int    // the number of refused attempts in a row that left the tip unchanged
}

// errUntrue means that the server reports commits that it does not have.
var errUntrue = errors.New("the server confirmed the commit, but the branch does not contain it; check that the server stores commits, " +
	"and that nobody force-pushes to the branch")

// attempt pushes one commit. If it fails, again reports whether another attempt may succeed.
func (c *change) attempt(ctx context.Context, v *gitsource.Visit) (next store.Version, again bool, err error) {
	found, err := c.state.tip(ctx, v, 0, c.besideLock())
	if err == nil {
		err = c.checkLock(ctx, v, found.Commit)
	}
	if err != nil {
		return "", false, err
	}
	blob := ""
	if c.data != nil {
		if blob, err = hashObject(ctx, v, c.data); err != nil {
			return "", false, err
		}
	}
	now := store.Version(found.ID)
	switch {
	case found.ID == blob && (now == c.read || c.sent && c.blob == blob): // the last attempt succeeded
		return now, false, nil
	case now != c.read:
		return "", false, store.ErrChanged
	}
	if c.refusals++; !c.sent || found.Commit != c.tip {
		c.refusals = 0
	}
	c.sent, c.blob, c.tip = true, blob, found.Commit
	commit, err := c.commit(ctx, v, found.Commit, blob)
	if err != nil {
		return "", false, err
	}
	p, err := c.push(ctx, v, int64(len(c.data)), c.server.Branch, found.Commit, commit)
	if err != nil {
		return "", p.isRace() && c.refusals < maxRefusal, err
	}
	there := ""
	if _, err = v.Branches(ctx, c.server.Branch, func(id, name string) {
		if name == c.server.Branch {
			there = id
		}
	}); err != nil {
		return "", false, reached(v.Explain(err))
	}
	if there != commit { // the push lost a race, or a later push replaced it
		return "", c.refusals < maxRefusal, errUntrue
	}
	return store.Version(blob), false, nil
}

const lockHere = "refs/statecrypt/lock/"

// besideLock returns the refspec that makes a fetch bring the lock too.
func (s *state) besideLock() string { return "+" + s.lockRef + "*:" + lockHere + s.name + "*" }

// checkLock returns an error if someone else holds the lock, or if our lock is gone. The fetch of the tip has also
// fetched the lock. Without a tip, checkLock fetches the lock itself.
func (s *state) checkLock(ctx context.Context, v *gitsource.Visit, tip string) error {
	lock := ""
	if tip != "" {
		lock = resolve(ctx, v, lockHere+s.name)
	} else if found, err := v.Fetch(ctx, s.lockRef, s.name+".lock", 0); err == nil {
		lock = found.Commit
	} else if _, none := errors.AsType[*gitsource.NoBranchError](err); !none {
		return reached(err)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.held != nil && lock == s.held.commit:
		s.held.seen = true
		return nil
	case s.held != nil && s.held.seen:
		return store.ErrLost
	case s.held == nil && lock == "":
		return nil
	}
	if s.held != nil {
		s.lost, s.held = s.held.ID, nil
	}
	by, _, err := s.look(ctx, v)
	if err == nil && by != nil {
		err = &store.HeldError{By: by}
	}
	return cmp.Or(err, store.ErrLost)
}

// commit creates the commit that follows tip, with blob as the state file. An empty tip creates the first commit. An
// empty blob removes the file.
func (c *change) commit(ctx context.Context, v *gitsource.Visit, tip, blob string) (string, error) {
	root := ""
	var parents []string
	if tip != "" {
		root, parents = tip+"^{tree}", []string{"-p", tip}
	}
	tree, err := put(ctx, v, root, c.name, blob)
	if err != nil {
		return "", err
	}
	message := "Update " + c.name
	if c.data == nil {
		message = "Delete " + c.name
	}
	by := store.NewLock("change")
	if c.held != nil {
		by = c.held.Lock
	}
	message += fmt.Sprintf("\n\n%s by %s", outside.Line(cmp.Or(by.Operation, "change"), 100), outside.Line(cmp.Or(by.Who, "someone"), 100))
	return c.commitTree(ctx, v, message, append(parents, tree)...)
}

// Lock pushes the lock branch.
func (s *state) Lock(ctx context.Context, lock store.Lock) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil && s.held.ID != lock.ID {
		return &store.HeldError{By: &s.held.Lock}
	}
	if s.held != nil {
		return nil
	}
	s.lost = ""
	for try := range maxRefusal {
		again := false
		err = s.visit(ctx, func(ctx context.Context, v *gitsource.Visit) (err error) {
			again, err = s.lock(ctx, v, lock)
			return err
		})
		if !again {
			break
		}
		if stopped := pause(ctx, try); stopped != nil {
			return stopped
		}
	}
	return err
}

// begin creates the state branch if there are no branches except locks. Many hosts make the first pushed branch the
// default branch, which nobody can delete. If begin fails, again reports whether another try may succeed.
func (s *state) begin(ctx context.Context, v *gitsource.Visit) (again bool, err error) {
	if s.begun.Load() {
		return false, nil
	}
	head, err := v.Branches(ctx, "refs/heads/*", func(_, name string) {
		if !strings.HasPrefix(name, locks) {
			s.begun.Store(true)
		}
	})
	if err != nil {
		return false, s.unreached(v.Explain(err))
	}
	if strings.HasPrefix(head, locks) {
		notice.Show(ctx, "warning: "+isDefault(head))
	}
	if s.begun.Load() {
		return false, nil
	}
	found, err := s.tip(ctx, v, 0)
	if err != nil || found.Commit != "" {
		return false, err
	}
	tree, err := put(ctx, v, "", s.name, "")
	commit := ""
	if err == nil {
		commit, err = s.commitTree(ctx, v, "Begin", tree)
	}
	if err != nil {
		return false, err
	}
	p, err := s.push(ctx, v, 0, s.server.Branch, "", commit)
	s.begun.Store(err == nil)
	return p.otherFormat || p.isRace(), err
}

// isDefault returns advice about a lock whose branch is the default branch.
func isDefault(branch string) string {
	return fmt.Sprintf("the lock %s is the default branch of the repository, so the server does not remove it; make another branch the "+
		"default branch", outside.Quoted(strings.TrimPrefix(branch, "refs/heads/"), 300))
}

// lock pushes the lock branch once. If it fails, again reports whether another try may succeed.
func (s *state) lock(ctx context.Context, v *gitsource.Visit, lock store.Lock) (again bool, err error) {
	if again, err = s.begin(ctx, v); err != nil {
		return again, err
	}
	blob, err := hashObject(ctx, v, lock.JSON())
	tree := ""
	if err == nil {
		tree, err = put(ctx, v, "", s.name+".lock", blob)
	}
	commit := ""
	if err == nil {
		// The commit has no parent. terraform-backend-git fetches branches without their history, and would otherwise
		// mistake the lock of one state for the history of other locks.
		commit, err = s.commitTree(ctx, v, "Lock "+s.name, tree)
	}
	if err != nil {
		return false, err
	}
	p, err := s.push(ctx, v, int64(len(lock.JSON())), s.lockRef, "", commit)
	if err == nil {
		s.held = &held{Lock: lock, commit: commit}
		return false, nil
	}
	if p.otherFormat {
		return true, err
	}
	if ctx.Err() != nil { // the server may have the lock, but nobody would use it
		s.takeBack(ctx, lock.ID, commit)
		return false, err
	}
	by, there, failed := s.look(ctx, v)
	switch {
	case failed != nil && p.reason != "":
		return false, failed
	case failed != nil:
		return false, err
	case by == nil:
		if conflict := s.conflict(ctx, v); conflict != nil {
			return false, conflict
		}
		return p.isRace(), err
	case by.ID == lock.ID && lock.ID != "":
		s.held = &held{Lock: lock, commit: there, seen: true}
		return false, nil
	}
	return false, &store.HeldError{By: by}
}

// takeBack removes a lock whose requester has stopped waiting.
func (s *state) takeBack(ctx context.Context, id, commit string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	_ = s.visit(ctx, func(ctx context.Context, v *gitsource.Visit) error {
		_, there, err := s.look(ctx, v)
		if there == "" {
			notice.Show(ctx, fmt.Sprintf("the server may still lock %s after this; in that case, "+
				"%s", outside.Quoted(s.name, 300), store.Unlocking(id)))
		}
		if there != commit {
			return err
		}
		_, err = s.push(ctx, v, 0, s.lockRef, commit, "")
		return err
	})
}

// conflict returns an error if the path of another lock branch continues ours, or the reverse: git cannot have the
// branches a and a/b at the same time.
func (s *state) conflict(ctx context.Context, v *gitsource.Visit) error {
	names, err := v.List(ctx, locks+"*")
	if err != nil {
		return nil //nolint:nilerr // the caller then shows its own error
	}
	for _, other := range names {
		if strings.HasPrefix(other, s.lockRef+"/") || strings.HasPrefix(s.lockRef, other+"/") {
			return fmt.Errorf("%s cannot be locked while %s is locked, because git allows no branch below another branch; rename one of "+
				"the two states",
				outside.Quoted(s.name, 300), outside.Quoted(strings.TrimPrefix(other, locks), 300))
		}
	}
	return nil
}

// Holder reads the lock branch.
func (s *state) Holder(ctx context.Context) (by *store.Lock, err error) {
	err = s.visit(ctx, func(ctx context.Context, v *gitsource.Visit) (err error) {
		by, _, err = s.look(ctx, v)
		return err
	})
	return by, err
}

// look returns the lock and its commit, or nil if the lock is free.
func (s *state) look(ctx context.Context, v *gitsource.Visit) (by *store.Lock, commit string, err error) {
	found, err := v.Fetch(ctx, s.lockRef, s.name+".lock", source.MaxLock)
	if _, none := errors.AsType[*gitsource.NoBranchError](err); none {
		return nil, "", nil
	}
	if meter.IsTooLarge(err) {
		err = fmt.Errorf("the branch locks/%s contains no lock: %w", outside.Line(s.name, 300), err)
	}
	if err != nil {
		return nil, "", reached(err)
	}
	if by, err = store.LockIn(found.Data, "branch", "locks/"+outside.Line(s.name, 300)); err != nil {
		return nil, "", err
	}
	return by, found.Commit, nil
}

// Unlock removes the lock branch if the lock has this ID and does not change meanwhile.
func (s *state) Unlock(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == id && id != "" { // there is no lock to release
		s.lost = ""
		return nil
	}
	err := s.visit(ctx, func(ctx context.Context, v *gitsource.Visit) error {
		if s.held != nil && s.held.ID == id {
			return s.release(ctx, v, s.held.commit)
		}
		by, commit, err := s.look(ctx, v)
		switch {
		case err != nil:
			return err
		case by == nil:
			return store.ErrMissing
		case by.ID != id:
			return &store.HeldError{By: by}
		}
		return s.release(ctx, v, commit)
	})
	if err == nil && s.held != nil && s.held.ID == id {
		s.held = nil
	}
	return err
}

// release removes the lock with this commit. It trusts a success report only for our own lock. Otherwise, it checks the
// result.
func (s *state) release(ctx context.Context, v *gitsource.Visit, commit string) error {
	p, err := s.push(ctx, v, 0, s.lockRef, commit, "")
	isOther := s.held == nil || s.held.commit != commit // the user releases another lock by its ID
	if err == nil && !isOther {
		return nil
	}
	by, there, failed := s.look(ctx, v)
	if err == nil && failed == nil && there == commit {
		return errors.New("the server confirmed the removal of the lock, but the lock is still there; look for a hook that restores " +
			"branches")
	}
	if err == nil {
		return nil
	}
	if failed == nil && there == commit {
		head, unknown := v.Branches(ctx, "HEAD", func(string, string) {})
		if unknown == nil && head == s.lockRef {
			err = store.Denied(fmt.Errorf("%s, and then %s", isDefault(head), store.Unlocking(by.ID)))
		}
	}
	if failed != nil || there == commit {
		return err
	}
	ours := s.held != nil && s.held.commit == commit
	if ours {
		s.held = nil
	}
	switch {
	case there == "" && !p.isStale(): // the response was lost, or belongs to a repeated request
		return nil
	case there == "":
		return store.ErrMissing
	case ours:
		return store.ErrLost
	}
	return &store.HeldError{By: by}
}
