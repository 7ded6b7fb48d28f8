package wrap

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/term"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// run is a run of a command line, from its first look at the module to its end.
type run struct {
	options Options
	line    *line
	module  *module
	signals *signals
	say     func(text string)

	backend  *backend // nil until it is connected, as all below
	guard    *guard
	leftover *leftover
	unused   *unused
	plans    *plans
	proxy    *proxy
	inherits *os.File // by the child, nil if there is nothing

	code int   // of the child
	err  error // of the run so far
}

func newRun(o Options, l *line, caught *signals) *run {
	o.Keys.State, o.Keys.Plan = o.Keys.State.KeepKeys(), o.Keys.Plan.KeepKeys() // what was rehearsed works in the end, too
	return &run{options: o, line: l, module: &module{dir: l.dir, data: l.data}, signals: caught, say: Notes(o.Stderr)}
}

// step is a part of a run.
type step func(*run, context.Context) error

// before returns the steps until the child starts. The first error ends the run.
func (r *run) before() []step {
	common := []step{(*run).checkWorkspace, (*run).noteEarlier, (*run).connect, (*run).readModule}
	if r.options.Wishes.Leave {
		return append(common, (*run).checkDestination, (*run).writeRecordOfUser)
	}
	return append(common,
		(*run).sealLeftover, // also if the module is refused
		(*run).checkModule, (*run).checkLeftover, (*run).writeRecord, (*run).moveIn, (*run).copyPlans, (*run).expectNoSignal)
}

// after returns the steps once the child has ended. Each is made, whatever the others find.
func (r *run) after() []step {
	common := []step{
		(*run).lookAgain, (*run).checkWritten,
		(*run).settleLock, // once nothing is written any more
		(*run).finishPlans,
	}
	if r.options.Wishes.Leave {
		return append(common, (*run).tellLeft)
	}
	return append(common, (*run).followLeftover, (*run).checkRecord, (*run).checkUse)
}

// protect runs a command that has to do with the state.
func (r *run) protect(ctx context.Context) (code int, err error) {
	defer func() { err = errors.Join(err, r.close()) }()
	for _, do := range r.before() {
		if err := do(r, ctx); err != nil {
			return 1, errors.Join(err, r.finishPlans(context.WithoutCancel(ctx)))
		}
	}
	r.code, r.err = r.proxy.serve(ctx, func(variables []string) (int, error) {
		child := r.child()
		child.more, child.inherits = variables, r.inherits
		return child.run(ctx)
	})
	ctx = context.WithoutCancel(ctx)
	for _, do := range r.after() {
		r.err = errors.Join(r.err, do(r, ctx))
	}
	return r.code, r.err
}

// passThrough runs a command that has nothing to do with the state.
func (r *run) passThrough(ctx context.Context) (code int, err error) {
	forget := func() {}
	if r.line.Name == "init" && !r.line.help {
		forget, err = r.module.hideBackend(ctx)
	} else {
		err = r.module.checkOwn()
	}
	if err != nil {
		return 1, err
	}
	defer forget()
	return r.child().run(ctx)
}

// child returns the process of the command line.
func (r *run) child() process {
	o, data := r.options, r.module.ownData()
	if o.Wishes.Leave {
		data = r.module.data
	}
	return process{
		program: r.line.program, args: r.line.arguments(), environ: o.Environ, data: data,
		withheld: append(slices.Clone(o.Withhold), o.Where.kind().Withhold...),
		stdin:    o.Stdin, stdout: o.Stdout, stderr: o.Stderr, signals: r.signals,
	}
}

func (r *run) close() error {
	if r.backend == nil {
		return nil
	}
	return r.backend.Close()
}

func (r *run) checkWorkspace(context.Context) error {
	if workspace, _ := world.Lookup(r.options.Environ)("TF_WORKSPACE"); workspace != "" && workspace != "default" {
		return errors.New("a workspace is selected in TF_WORKSPACE: " + noWorkspaces)
	}
	return nil
}

func (r *run) noteEarlier(context.Context) error {
	notePlaintext(r.module.dir, r.say)
	r.options.Where.noteVariables(r.options.Environ, r.say)
	noteAbandoned(r.say)
	return nil
}

// connect opens the store, and finds out whether the state can be written there.
func (r *run) connect(ctx context.Context) error {
	o, effect := r.options, r.line.effect()
	ctx = notice.With(ctx, r.say)
	err := o.Where.checkOneModule(r.module.dir)
	if err == nil {
		r.backend, err = o.Where.open(o.Keys.State, o.Environ, r.module, r.line.isOff("lock"), r.say)
	}
	if err != nil {
		return err
	}
	if effect == changes { // other commands may be run by those who can only read
		if err := r.backend.rehearse(ctx, o.Keys.State); err != nil {
			return err
		}
	}
	if r.backend.Keeps(filepath.Join(r.module.dir, errored)) {
		return errors.New("the state cannot be in " + errored + ", where Terraform leaves what it could not write; " +
			"name another file in the backend block")
	}
	r.guard = &guard{
		target: o.Keys.State, doubts: o.Keys.Doubts, backend: r.backend, pins: o.Wishes.Pins, force: o.Wishes.Force, changes: effect == changes,
		memory: newMemory(ctx, r.module.own(), r.backend, o.Wishes.Accept, effect == changes), say: r.say,
	}
	r.leftover = newLeftover(r.module, r.guard)
	r.unused = &unused{module: r.module, backend: r.backend, say: r.say}
	r.plans = &plans{keys: o.Keys, settings: o.Where.Settings, limit: o.Where.limit(), line: r.line, say: r.say}
	r.proxy = newProxy(r.line, r.guard, r.leftover, o.Wishes.Leave)
	if effect == changes {
		r.inherits = r.backend.Lend()
	}
	if effect == changes || r.line.Name == "plan" {
		r.guard.elsewhere = r.unused.expectNone()
	}
	return nil
}

// readModule finds the files of the module that the program reads.
func (r *run) readModule(ctx context.Context) error {
	err := r.module.findSources(func() ([]byte, error) {
		asked := r.child()
		asked.stderr, asked.more = io.Discard, []string{"CHECKPOINT_DISABLE=1"}
		text, _, err := asked.output(ctx, r.module.dir, "version")
		return text, err
	})
	if err == nil {
		r.module.noteVariables(r.options.Withhold, r.options.Environ, r.say)
	}
	return err
}

// checkDestination refuses a module whose state has nowhere to go.
func (r *run) checkDestination(context.Context) error {
	if r.module.checkBackend() == nil {
		return errors.New("there is nowhere to go: the module still keeps its state here; write its new backend block first")
	}
	if file := r.module.localFile(); file != "" && r.backend.Keeps(join(r.module.dir, file)) {
		return errors.New("the new backend of the module is the file that the state is in, encrypted; give its block another path")
	}
	return nil
}

func (r *run) sealLeftover(ctx context.Context) error {
	r.leftover.seal(ctx)
	return nil
}

func (r *run) checkLeftover(context.Context) error {
	pushed := ""
	if r.line.Name == "state push" && len(r.line.args) > 0 {
		pushed = join(r.module.dir, r.line.args[0])
	}
	return r.leftover.check(r.guard.changes, pushed)
}

// moveIn encrypts the state that there is, if that is wished, and otherwise warns of it.
func (r *run) moveIn(ctx context.Context) error {
	initializes := r.line.Name == "init"
	switch {
	case r.options.Wishes.EncryptExisting:
		m := &existing{arrival: arrival{guard: r.guard, backend: r.backend}, unused: r.unused, process: r.child()}
		return m.moveIn(ctx)
	case initializes || r.guard.changes:
		r.unused.warn(initializes)
	}
	return nil
}

// followLeftover forgets the run if everything is where it belongs.
func (r *run) followLeftover(ctx context.Context) error {
	err := r.leftover.follow(ctx)
	if err == nil {
		r.guard.memory.end(ctx)
	}
	return err
}

func (r *run) finishPlans(ctx context.Context) error {
	if r.plans == nil {
		return nil
	}
	return r.plans.finish(ctx)
}

// The other steps have a room of their own.
func (r *run) checkModule(context.Context) error { return r.module.checkBackend() }
func (r *run) writeRecord(ctx context.Context) error {
	return writeRecord(ctx, r.module.own(r.module.id()))
}
func (r *run) writeRecordOfUser(ctx context.Context) error {
	return writeRecord(ctx, directory{path: r.module.data})
}
func (r *run) copyPlans(ctx context.Context) error      { return r.plans.prepare(ctx) }
func (r *run) expectNoSignal(ctx context.Context) error { return context.Cause(ctx) }
func (r *run) lookAgain(ctx context.Context) error      { return r.backend.lookAgain(ctx) }
func (r *run) checkWritten(context.Context) error       { return r.proxy.checkWritten() }
func (r *run) settleLock(ctx context.Context) error     { return r.proxy.settle(ctx, r.code) }
func (r *run) checkRecord(context.Context) error        { return checkRecord(r.module.own(r.module.id())) }
func (r *run) checkUse(context.Context) error           { return r.proxy.checkUse(r.code) }

// tellLeft says what became of a state that was to leave.
func (r *run) tellLeft(context.Context) error {
	in, _ := r.options.Stdin.(*os.File)
	asked := in != nil && term.IsTerminal(int(in.Fd()))
	switch {
	case r.code == 0 && r.err == nil:
		r.say("from now on, wrap does not encrypt the state in its new place")
	case checkRecord(directory{path: r.module.data}) != nil: // which Terraform replaces once the state is copied
		r.say("init has failed after the state was copied: in its new place, it is in plaintext")
	case r.code != 0 && !r.line.has("force-copy") && (!asked || r.line.isOff("input")):
		r.say("without a terminal, or with -input=false, nobody can answer whether to copy the state: add -force-copy")
	}
	return nil
}
