package git

import (
	"context"
	"slices"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// pin is one ref of one repository. The first fetch pins its commit, and all files of a run are read from
// that commit.
type pin struct {
	run    *run
	remote remote
	ref    ref

	mu         sync.Mutex
	session    *session // the current session, or nil
	tree       *tree    // nil until a fetch succeeds
	redirected bool     // whether the server redirects, so that a helper must supply the credentials
}

// want is one caller's request for a file.
type want struct {
	path     string
	maxSize  int64
	onLocked onLocked
	answer   chan answer // has room for one answer
	gone     bool        // whether the caller has stopped waiting
	unread   bool        // whether the file's content is not requested
}

type answer struct {
	snapshot *source.Snapshot
	err      error
}

// session is a series of fetches for all callers that need files from a pin at the same time. It owns a
// throw-away repository and deletes it before the last caller gets an answer, because a provider cannot clean
// up later.
type session struct {
	pin     *pin
	cancel  context.CancelFunc
	queue   []*want
	waiting int           // number of callers that are queued or being served, and still waiting
	done    chan struct{} // closed after the throw-away repository is deleted
}

// read returns a file through the current session, or starts a session if there is none.
func (p *pin) read(ctx context.Context, f *file) (*source.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	w := &want{path: f.path, maxSize: f.maxSize, onLocked: f.onLocked, answer: make(chan answer, 1)}
	v := p.join(w)
	select {
	case a := <-w.answer:
		return a.snapshot, a.err
	case <-ctx.Done():
		v.leave(w)
		return nil, context.Cause(ctx)
	}
}

func (p *pin) join(w *want) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil {
		// The session does not use this caller's context, because other callers may still be waiting after
		// this one has left.
		ctx, cancel := context.WithCancel(context.Background())
		p.session = &session{pin: p, cancel: cancel, done: make(chan struct{})}
		go p.session.run(ctx)
	}
	p.session.queue = append(p.session.queue, w)
	p.session.waiting++
	return p.session
}

// leave gives up on w. The last caller to leave ends the session and waits until the throw-away repository is
// deleted, because the process may exit right afterwards.
func (v *session) leave(w *want) {
	v.pin.mu.Lock()
	if len(w.answer) == 0 {
		w.gone = true
		v.waiting--
		v.queue = slices.DeleteFunc(v.queue, func(q *want) bool { return q == w })
	}
	last := v.waiting == 0
	if last && v.pin.session == v {
		v.pin.session = nil // later callers start another session
	}
	v.pin.mu.Unlock()
	if last {
		v.cancel()
		<-v.done
	}
}

func (v *session) run(ctx context.Context) {
	defer close(v.done)
	defer v.cancel()
	dir := &repository{run: v.pin.run, remote: v.pin.remote}
	defer dir.remove()
	for {
		batch, answers := v.serve(ctx, dir)
		last := v.nobodyQueued()
		if last {
			if warning := dir.remove(); warning != "" {
				warn(answers, warning)
			}
		}
		v.reply(batch, answers)
		if last {
			return
		}
	}
}

// serve waits for the list of files, then answers all requests that are queued by then. Requests that arrive
// while the files are fetched wait for the next call.
func (v *session) serve(ctx context.Context, dir *repository) ([]*want, []answer) {
	list, err := v.pin.list(ctx, dir)
	v.pin.mu.Lock()
	batch := v.queue
	v.queue = nil
	v.pin.mu.Unlock()

	if err == nil {
		list, err = v.pin.gather(ctx, dir, list, batch)
	}
	if err != nil {
		return batch, slices.Repeat([]answer{{err: dir.explain(err, v.pin.ref)}}, len(batch))
	}
	return batch, dir.answers(ctx, list, batch)
}

// gather calls collect. If the server refuses to send single files, gather fetches the list of files and
// tries again, at most twice. It returns the list that contains the fetched files.
func (p *pin) gather(ctx context.Context, dir *repository, list *tree, batch []*want) (*tree, error) {
	list, err := p.collect(ctx, dir, list, batch)
	for range 2 {
		if !isRefusal(err) {
			break
		}
		// Either the branch was rewritten and the server deleted its old files, or the server never sends
		// single files.
		if list, err = p.listAgain(ctx, dir, err); err == nil {
			list, err = p.collect(ctx, dir, list, batch)
		}
	}
	return list, err
}

// collect fetches the files of the batch and the folders above them.
func (p *pin) collect(ctx context.Context, dir *repository, list *tree, batch []*want) (*tree, error) {
	grown, err := dir.walk(ctx, list, batch)
	if err != nil {
		return nil, err
	}
	if grown != list {
		p.mu.Lock()
		p.tree = grown
		p.mu.Unlock()
	}
	return grown, dir.fetchBlobs(ctx, grown.wanted(batch))
}

// list returns the files of the pinned commit. If no commit is pinned yet, it pins one.
func (p *pin) list(ctx context.Context, dir *repository) (*tree, error) {
	p.mu.Lock()
	list, redirected := p.tree, p.redirected
	p.mu.Unlock()
	if err := dir.prepare(ctx, redirected); err != nil {
		return nil, err
	}
	if list != nil {
		dir.format = list.format
		return list, nil
	}
	return p.fetchList(ctx, dir)
}

func (p *pin) listAgain(ctx context.Context, dir *repository, refusal error) (*tree, error) {
	dir.remove()
	if dir.refusedBefore || says(refusal, unadvertised) {
		dir.reach = wholeSnapshot
	}
	dir.refusedBefore = true
	return p.fetchList(ctx, dir)
}

func (p *pin) fetchList(ctx context.Context, dir *repository) (*tree, error) {
	list, err := dir.fetchTree(ctx, p.ref)
	for range 2 {
		if !says(err, notOurRef) || p.ref.isID {
			break
		}
		// After the server listed its branches, but before the fetch, a branch was rewritten or a lock was
		// released, and the server deleted the old commit.
		dir.remove()
		list, err = dir.fetchTree(ctx, p.ref)
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.tree, p.redirected = list, dir.access.redirected
	p.mu.Unlock()
	return list, nil
}

// wanted returns the ids of the files that the batch requests, and of their locks. It maps each id to the
// largest size, in bytes, that a caller accepts.
func (t *tree) wanted(batch []*want) map[string]int64 {
	limits := map[string]int64{}
	for _, w := range batch {
		if e, err := t.resolve(w.path, false); err == nil && !w.unread {
			limits[e.id] = max(limits[e.id], w.maxSize)
		}
		if id, _ := t.lockOf(w.path); id != "" {
			limits[id] = max(limits[id], source.MaxLock)
		}
	}
	return limits
}

func (v *session) nobodyQueued() bool {
	v.pin.mu.Lock()
	defer v.pin.mu.Unlock()
	if len(v.queue) > 0 {
		return false
	}
	if v.pin.session == v {
		v.pin.session = nil
	}
	return true
}

func (v *session) reply(batch []*want, answers []answer) {
	v.pin.mu.Lock()
	defer v.pin.mu.Unlock()
	for i, w := range batch {
		w.answer <- answers[i]
		if !w.gone {
			v.waiting--
		}
	}
}

func warn(answers []answer, warning string) {
	for _, a := range answers {
		if a.snapshot != nil {
			a.snapshot.Warnings = append(a.snapshot.Warnings, source.Warning{Title: "Temporary files left behind", Text: warning})
		}
	}
}
