package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

// The results of verify and rotate for one file.
const (
	resultOK       = "ok"
	resultFallback = "fallback"
	resultRefused  = "refused" // the file can be opened, but does not match the pins
	resultRotated  = "rotated"
	resultSkipped  = "skipped"
	resultHeld     = "held"  // someone else holds the lock
	resultOther    = "other" // the name has the prefix, but the file is not a state
	resultFailed   = "failed"
)

// finding is the result for one of several files. Its JSON form is documented in the help of the commands.
type finding struct {
	File    string `json:"file"`
	Result  string `json:"result"`
	Method  string `json:"method,omitempty"`
	Serial  *int64 `json:"serial,omitempty"`
	Lineage string `json:"lineage,omitempty"`
	Error   string `json:"error,omitempty"`

	Recipients int `json:"recipients,omitempty"`

	Lock **lock `json:"lock,omitempty"` // see lockOf

	locked string // who holds the lock; "" if nobody does, or if it is unknown
	err    error
	notes  []string           // additional warnings
	opened *encryption.Opened // without the data; nil if the file was not opened
}

// add records a file that was opened, without its content.
func (f *finding) add(opened *encryption.Opened) {
	f.Method = opened.Method
	if opened.Kind == encryption.KindState {
		f.Serial, f.Lineage, _ = store.Label(opened.Data)
	}
	f.opened = new(*opened)
	f.opened.Data = nil
}

// all examines several files at once. It prints a line for each, in the order of the arguments, and returns
// the worst exit status.
func (c *call) all(ctx context.Context, examine func(ctx context.Context, name string) (finding, error)) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	c.noteUnused()
	ctx, work := c.begin(ctx, len(c.args))
	defer work.stop()
	var worst error
	others, unfinished := 0, 0
	for f := range c.inOrder(func(name string) finding {
		f, err := finding{Result: resultFailed}, context.Cause(ctx)
		if err == nil {
			f, err = examine(ctx, name)
		}
		if f.File = name; !c.isGiven("prefix") && recognize.IsContent(name) {
			f.File = shown(name)
		}
		if err = asInterrupted(err); err != nil {
			f.Error, f.err = c.audience().Text(err), err
		}
		work.done.Add(1)
		return f
	}) {
		switch {
		case f.Result == resultOther:
			others++
			continue
		case errors.Is(f.err, errInterrupted):
			if unfinished++; !c.on("json") {
				continue
			}
		}
		switch err := c.tell(f); {
		case err != nil:
			return err
		case f.err != nil:
			worst = exitStatus(exitFailure)
		case worst == nil && f.Result == resultFallback:
			worst = exitStatus(exitFallback)
		}
	}
	c.noteOthers(others, len(c.args))
	switch {
	case unfinished == 0:
		return worst
	case len(c.args) == 1:
		return errInterrupted
	}
	c.say(red, "error:", fmt.Sprintf("%v before %d of %d were done; run it again", errInterrupted, unfinished, len(c.args)-others))
	return exitStatus(exitFailure)
}

// errInterrupted is the error for work that a signal has ended.
var errInterrupted = errors.New("interrupted")

// asInterrupted returns errInterrupted for an error that wraps context.Canceled, because only signals cancel the work.
// If a lock is left, asInterrupted returns the error about that lock instead. It returns all other errors unchanged.
func asInterrupted(err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	if left, ok := errors.AsType[*states.LockLeftError](err); ok {
		return left
	}
	return errInterrupted
}

// noteOthers prints a note about files that have the prefix but are not states.
func (c *call) noteOthers(others, all int) {
	switch {
	case c.isGiven("prefix") && all == 0:
		c.say(yellow, "note:", "no object has that prefix")
	case others > 0:
		c.say(yellow, "note:", fmt.Sprintf("%d of %d objects with that prefix are not states", others, all))
	}
}

const (
	// maxAtOnce is the maximum total size of the files that are processed at the same time, in bytes. A larger file
	// is processed alone.
	maxAtOnce = 256 << 20

	// maxRequests is the maximum number of states in a store that are processed at the same time. Most of the time,
	// each of them waits for the server.
	maxRequests = 8
)

// inOrder calls work for each file, using all processors. It yields the findings in the order of the
// arguments.
func (c *call) inOrder(work func(name string) finding) iter.Seq[finding] {
	c.memory = semaphore.NewWeighted(maxAtOnce)
	atOnce, sizes := maxRequests, make([]int64, len(c.args)) // work calls reserve for a state in a store
	if !c.on("backend") {
		atOnce, sizes = runtime.GOMAXPROCS(0), c.sizes()
	}
	found := make([]chan finding, len(c.args))
	for i := range found {
		found[i] = make(chan finding, 1)
	}
	go func() {
		workers := make(chan struct{}, atOnce)
		for i, name := range c.args {
			workers <- struct{}{}
			release := c.reserve(context.Background(), sizes[i])
			go func() {
				found[i] <- work(name)
				release()
				<-workers
			}()
		}
	}()
	return func(yield func(finding) bool) {
		for i := range found {
			if !yield(<-found[i]) {
				return
			}
		}
	}
}

// reserve waits until there is room for a file of size bytes, or ctx has ended, and returns a function that gives up
// the room.
func (c *call) reserve(ctx context.Context, size int64) (release func()) {
	memory, size := c.memory, min(size, maxAtOnce)
	if memory.Acquire(ctx, size) != nil {
		return func() {}
	}
	return func() { memory.Release(size) }
}

// sizes returns the file sizes. A file of unknown size is processed alone.
func (c *call) sizes() []int64 {
	sizes := make([]int64, len(c.args))
	for i, name := range c.args {
		sizes[i] = maxAtOnce
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			sizes[i] = info.Size()
		}
	}
	return sizes
}

// readUntil reads a file, but stops waiting when ctx is cancelled, because a pipe may deliver nothing for a
// long time.
func (c *call) readUntil(ctx context.Context, name string) (file []byte, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		file, err = c.read(name)
	}()
	select {
	case <-done:
		return file, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// tell prints the result for a file.
func (c *call) tell(f finding) error {
	if f.opened != nil {
		c.warn(f.File, f.opened)
		for _, note := range f.notes {
			c.say(yellow, "warning:", c.shown(f.File)+": "+note)
		}
	}
	if f.locked != "" && !c.on("json") {
		c.say(yellow, "note:", f.locked)
	}
	text := c.line(f)
	if c.on("json") {
		encoded, _ := json.Marshal(f) // strings and numbers can always be encoded
		text = outside.JSON(string(encoded))
	}
	_, err := io.WriteString(c.stdout, text+"\n")
	if f.err != nil && !errors.Is(f.err, errInterrupted) { // which is reported once, for all files
		c.report(fmt.Errorf("%s: %w", c.shown(f.File), f.err))
	}
	return err
}

// line returns a finding as text for users.
func (c *call) line(f finding) string {
	text, colour := f.Result, red
	switch f.Result {
	case resultOK, resultRotated:
		colour = green
	case resultFallback:
		colour = yellow
	case resultSkipped:
		text, colour = "already has the new key", green
	case resultHeld:
		text = "not rotated, because the state is locked"
	case resultFailed:
		text = map[string]string{"verify": "cannot be opened", "rotate": "not rotated"}[c.Name]
	}
	text = c.shown(f.File) + ": " + c.paint(c.stdout, colour, text)
	if f.err == nil {
		text += ", " + f.Method
	}
	if f.Recipients > 0 {
		text += fmt.Sprintf(", age recipients: %d", f.Recipients)
	}
	if f.Result == resultSkipped {
		text += "; use -again to encrypt it again"
	}
	return text
}

// verify checks files, or the state in the backend, and prints a line for each.
func (c *call) verify(ctx context.Context) error {
	switch {
	case c.on("backend") != (len(c.args) == 0):
		return usageError(c.miscounted().Error())
	case c.on("backend") && c.on("plan"):
		return usageError("a backend contains no plans; remove -plan")
	}
	target, err := c.target(c.text("config"))
	if err != nil {
		return err
	}
	if c.on("backend") {
		return c.verifyBackend(ctx, target)
	}
	return c.all(ctx, func(ctx context.Context, name string) (finding, error) {
		file, err := c.readUntil(ctx, name)
		if err != nil {
			return finding{Result: resultFailed}, err
		}
		return c.verifyFile(ctx, target, file)
	})
}

func (c *call) verifyBackend(ctx context.Context, target encryption.Target) error {
	return c.inStates(ctx, c.text("config"), target, func(ctx context.Context, kept *states.States, name string) (finding, error) {
		state, status, err := kept.LookAtLock(ctx, name)
		if err != nil {
			return finding{Result: resultFailed}, err
		}
		defer c.reserve(ctx, int64(len(state)))()
		f, err := c.verifyFile(ctx, target, state)
		if f.Lock = lockOf(status); status.Holder != nil {
			f.locked = c.holder(status.Holder)
		}
		return f, err
	})
}

// inStates calls examine for the state in the backend, with an empty name. With -prefix, it calls examine for
// each state whose name begins with the prefix.
func (c *call) inStates(
	ctx context.Context, settings string, target encryption.Target,
	examine func(ctx context.Context, kept *states.States, name string) (finding, error),
) error {
	kept, err := c.states(ctx, settings, target)
	if err != nil {
		return err
	}
	err = c.all(ctx, func(ctx context.Context, name string) (finding, error) {
		return examine(ctx, kept, c.inStore(name))
	})
	return errors.Join(err, kept.Close())
}

// inStore returns the name of a state in the store, which is empty without -prefix.
func (c *call) inStore(name string) string {
	if !c.isGiven("prefix") {
		return ""
	}
	return name
}

// states opens the backend and replaces the arguments with the names of its states.
func (c *call) states(ctx context.Context, settings string, target encryption.Target) (*states.States, error) {
	where := states.Where{Backend: c.backend, Settings: settings}
	if c.isGiven("prefix") {
		where = where.ForOthers()
	}
	kept, err := states.Open(where, target, c.environ, c.sayOfStore)
	if err != nil {
		return nil, err
	}
	if c.args = []string{stateInBackend}; c.isGiven("prefix") {
		ctx, stop := untilSignal(ctx)
		defer stop()
		if c.args, err = kept.List(ctx, c.text("prefix")); err != nil {
			return nil, errors.Join(err, kept.Close())
		}
		slices.Sort(c.args)
	}
	return kept, nil
}

func (c *call) verifyFile(ctx context.Context, target encryption.Target, file []byte) (finding, error) {
	f := finding{Result: resultFailed}
	opened, err := target.DecryptInPlace(ctx, file)
	if err != nil {
		return f, err
	}
	f.add(opened)
	err = c.pins.Accept(f.Serial, f.Lineage)
	switch {
	case err != nil:
		f.Result = resultRefused
	case opened.UsedFallback:
		f.Result = resultFallback
	default:
		f.Result = resultOK
	}
	return f, err
}
