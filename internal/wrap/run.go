package wrap

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/term"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/child"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/cmdline"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/plan"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/proxy"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

// run is one run of a command line, from the first look at the module to the cleanup.
type run struct {
	options Options
	line    *cmdline.Line
	module  *module.Module
	signals *child.Signals
	say     func(text string)

	backend  *states.Backend // nil until connect, like the fields below
	guard    *states.Guard
	leftover *states.Leftover
	unused   *states.Unused
	plans    *plan.Files
	proxy    *proxy.Proxy
	hangUp   func()          // stops the proxy
	unlock   func()          // lets others initialize the module after -leave
	settings module.Settings // the settings with which the child finds the proxy
	data     *module.RunData // nil with -leave
	inherits *os.File        // a file for the child to inherit, or nil

	code int   // the exit code of the child
	err  error // the errors of the run so far
}

func newRun(o Options, l *cmdline.Line, caught *child.Signals) *run {
	o.Keys.State, o.Keys.Plan = o.Keys.State.KeepKeys(), o.Keys.Plan.KeepKeys() // the keys used in the rehearsal stay usable
	return &run{
		options: o, line: l, module: &module.Module{Dir: l.Dir, Data: l.Data}, signals: caught, say: states.Notes(o.Stderr, o.Where.Settings),
		hangUp: func() {}, unlock: func() {},
	}
}

// step is one step of a run.
type step func(*run, context.Context) error

// before returns the steps that come before the child starts. The first error ends the run.
func (r *run) before() []step {
	common := []step{(*run).checkWorkspace, (*run).noteEarlier, (*run).connect, (*run).readModule}
	if r.options.Wishes.Leave {
		return append(common, (*run).checkDestination, (*run).listen, (*run).writeRecordOfUser)
	}
	return append(common,
		(*run).sealLeftover, // even if the module is refused
		(*run).checkModule, (*run).checkLeftover, (*run).listen, (*run).writeRecord, (*run).moveIn, (*run).copyPlans,
		(*run).expectNoSignal)
}

// after returns the steps that follow once the child has exited. All of them run, even if one fails.
func (r *run) after() []step {
	common := []step{
		(*run).lookAgain, (*run).checkWritten,
		(*run).settleLock, // after the last write
		(*run).finishPlans,
	}
	if r.options.Wishes.Leave {
		return append(common, (*run).tellLeft)
	}
	return append(common, (*run).followLeftover, (*run).checkRecord, (*run).checkUse)
}

// protect runs a command that reads or writes the state.
func (r *run) protect(ctx context.Context) (code int, err error) {
	defer func() { err = errors.Join(err, r.close()) }()
	for _, do := range r.before() {
		if err := do(r, ctx); err != nil {
			return 1, errors.Join(err, r.finishPlans(context.WithoutCancel(ctx)))
		}
	}
	r.code, r.err = r.runChild(ctx)
	r.hangUp()
	ctx = context.WithoutCancel(ctx)
	for _, do := range r.after() {
		r.err = errors.Join(r.err, do(r, ctx))
	}
	return r.code, r.err
}

// runChild runs the command line and passes it the files to inherit.
func (r *run) runChild(ctx context.Context) (int, error) {
	child := r.child()
	if r.data != nil && r.data.Alive != nil {
		child.Inherits = append(child.Inherits, r.data.Alive)
	}
	if r.inherits != nil {
		child.Inherits = append(child.Inherits, r.inherits)
		defer r.inherits.Close()
	}
	return child.Run(ctx)
}

// passThrough runs a command that neither reads nor writes the state.
func (r *run) passThrough(ctx context.Context) (code int, err error) {
	end := func() {}
	if r.line.Name == "init" && !r.line.Help {
		end, err = r.module.HideBackend(notice.With(ctx, r.say))
	} else {
		err = r.module.CheckOwn()
	}
	defer end()
	if err != nil {
		return 1, err
	}
	return r.child().Run(ctx)
}

// child returns the process that runs the command line.
func (r *run) child() child.Process {
	o, data := r.options, r.module.OwnData()
	switch {
	case o.Wishes.Leave:
		data = r.module.Data
	case r.data != nil:
		data = r.data.Path
	}
	return child.Process{
		Program: r.line.Program, Args: r.line.Arguments(), Environ: o.Environ, Data: data,
		Withheld: append(slices.Clone(o.Withhold), o.Where.Kind().Withhold...),
		Stdin:    o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Signals: r.signals,
	}
}

func (r *run) close() error {
	r.hangUp()
	r.unlock()
	if r.data != nil {
		r.data.Remove()
	}
	if r.backend == nil {
		return nil
	}
	return r.backend.Close()
}

func (r *run) checkWorkspace(context.Context) error {
	if workspace, _ := world.Lookup(r.options.Environ)("TF_WORKSPACE"); workspace != "" && workspace != "default" {
		return errors.New("TF_WORKSPACE selects a workspace, but " + cmdline.NoWorkspaces)
	}
	return nil
}

func (r *run) noteEarlier(context.Context) error {
	states.NotePlaintext(r.module.Dir, r.say)
	r.options.Where.NoteVariables(r.options.Environ, r.say)
	files.NoteAbandoned(r.say)
	emptied, err := r.module.EmptyLeft()
	if emptied && err == nil {
		r.say("warning: an init with -leave was killed before it finished. The state is still in wrap's backend, but a plaintext copy may be " +
			"in its new place; run init with -leave again, or delete the state in the new place")
	}
	return err
}

// connect opens the store. If the command changes resources, connect also tests whether it can write a state there.
func (r *run) connect(ctx context.Context) error {
	o, changes := r.options, r.line.Effect() == cmdline.Changes
	ctx = notice.With(ctx, r.say)
	err := o.Where.CheckOneModule(r.module.Dir)
	if err == nil {
		r.backend, err = o.Where.Open(o.Keys.State, o.Environ, r.module, r.line.IsOff("lock"), r.say)
	}
	if err != nil {
		return err
	}
	if changes { // users with read-only access may run other commands
		if err := r.backend.Rehearse(ctx, o.Keys.State); err != nil {
			return err
		}
	}
	if r.backend.Keeps(filepath.Join(r.module.Dir, states.Errored)) {
		return errors.New("the state cannot be stored in " + states.Errored + ", because Terraform uses this file for states that " +
			"it could not write; set another path in the backend block")
	}
	r.guard = &states.Guard{
		Target: o.Keys.State, Doubts: o.Keys.Doubts, Backend: r.backend, Pins: o.Wishes.Pins, Force: o.Wishes.Force, Changes: changes,
		Memory: states.NewMemory(ctx, files.Own(r.module.Dir), r.backend, o.Wishes.Accept, changes), Say: r.say,
	}
	r.leftover = states.NewLeftover(r.module, r.guard)
	r.unused = &states.Unused{Module: r.module, Backend: r.backend, Say: r.say}
	r.plans = &plan.Files{Keys: o.Keys, Settings: o.Where.Settings, Limit: o.Where.Most(), Line: r.line, Say: r.say}
	r.proxy = proxy.New(r.line, r.guard, r.leftover)
	if changes {
		r.inherits = r.backend.Lend()
	}
	if changes || r.line.Name == "plan" {
		r.guard.Elsewhere = r.unused.ExpectNone()
	}
	return nil
}

// readModule finds the source files of the module that the program reads.
func (r *run) readModule(ctx context.Context) error {
	err := r.module.FindSources(func() ([]byte, error) {
		asked := r.child()
		asked.Stderr, asked.More = io.Discard, []string{"CHECKPOINT_DISABLE=1"}
		text, _, err := asked.Output(ctx, r.module.Dir, "version")
		return text, err
	})
	if err == nil {
		r.module.NoteVariables(r.options.Withhold, r.options.Environ, r.say)
	}
	return err
}

// checkDestination returns an error if the module has no new backend for its state.
func (r *run) checkDestination(context.Context) error {
	if r.module.CheckBackend() == nil {
		return errors.New("-leave requires a destination, but the module has only wrap's empty backend block; replace that block with " +
			"the new backend block first")
	}
	if file := r.module.LocalFile(); file != "" && r.backend.Keeps(files.Join(r.module.Dir, file)) {
		return errors.New("the module's new backend would overwrite the file with the encrypted state; set another path in its backend block")
	}
	return nil
}

// listen starts the proxy and passes its settings to the plans.
func (r *run) listen(ctx context.Context) (err error) {
	settings, stop, err := r.proxy.Serve(ctx)
	if err == nil {
		r.settings, r.plans.Backend, r.hangUp = settings, settings, stop
	}
	return err
}

// writeRecord writes the record that names the proxy. Only this run reads it.
func (r *run) writeRecord(ctx context.Context) (err error) {
	if r.data, err = r.module.Begin(r.settings); err != nil {
		return err
	}
	if r.line.Name == "init" {
		config, err := r.data.Initialize(notice.With(ctx, r.say))
		r.line.Add("backend-config", config)
		return err
	}
	err = r.data.Share(ctx, func(dir, data string, words ...string) (int, string, error) {
		asked, said := r.child(), &bytes.Buffer{}
		asked.Data, asked.Stderr = data, said
		asked.More = []string{"CHECKPOINT_DISABLE=1", "TF_LOG=", "TF_LOG_CORE=", "TF_LOG_PROVIDER="} // errors alone
		_, code, err := asked.Output(ctx, dir, words...)
		return code, said.String(), err
	})
	if r.guard.Changes || r.line.Name == "plan" { // other commands read the record again, and run no code from the module
		r.proxy.OnceFound(func() {
			r.data.Forget()
			r.plans.Forget()
		})
	}
	return err
}

func (r *run) sealLeftover(ctx context.Context) error {
	r.leftover.Seal(ctx)
	return nil
}

func (r *run) checkLeftover(context.Context) error {
	pushed := ""
	if r.line.Name == "state push" && len(r.line.Args) > 0 {
		pushed = files.Join(r.module.Dir, r.line.Args[0])
	}
	return r.leftover.Check(r.guard.Changes, pushed)
}

// moveIn encrypts an existing state if the user asked for it; otherwise, it warns about the state.
func (r *run) moveIn(ctx context.Context) error {
	initializes := r.line.Name == "init"
	switch {
	case r.options.Wishes.EncryptExisting:
		m := &states.Existing{Arrival: states.Arrival{Guard: r.guard, Backend: r.backend}, Unused: r.unused, Process: r.child()}
		return m.MoveIn(ctx)
	case initializes || r.guard.Changes:
		r.unused.Warn(initializes)
	}
	return nil
}

// settleLock handles a lock that the child has not released. followLeftover reports a lock that cannot be released.
func (r *run) settleLock(ctx context.Context) error {
	err := r.proxy.Settle(ctx, r.code)
	if left, ok := errors.AsType[*states.LockLeftError](err); ok && !r.options.Wishes.Leave {
		r.leftover.Lock, err = left, nil
	}
	return err
}

// followLeftover handles the files that the run left behind. If there is no error, it forgets the run.
func (r *run) followLeftover(ctx context.Context) error {
	err := r.leftover.Follow(ctx)
	if r.leftover.Lock != nil {
		err = errors.Join(r.leftover.Lock, err)
	}
	if err == nil {
		r.guard.Memory.End(ctx)
	}
	return err
}

func (r *run) finishPlans(ctx context.Context) error {
	if r.plans == nil {
		return nil
	}
	return r.plans.Finish(ctx)
}

// The other steps are implemented in separate packages.
func (r *run) checkModule(context.Context) error { return r.module.CheckBackend() }
func (r *run) writeRecordOfUser(ctx context.Context) (err error) {
	if r.unlock, err = r.module.Lock(notice.With(ctx, r.say)); err != nil {
		return err
	}
	return r.recordOfUser().Write(ctx, 0)
}
func (r *run) copyPlans(ctx context.Context) error      { return r.plans.Prepare(ctx) }
func (r *run) expectNoSignal(ctx context.Context) error { return context.Cause(ctx) }
func (r *run) lookAgain(ctx context.Context) error      { return r.backend.LookAgain(ctx) }
func (r *run) checkWritten(context.Context) error       { return r.proxy.CheckWritten() }
func (r *run) checkRecord(context.Context) error        { return r.data.Check() }
func (r *run) checkUse(context.Context) error           { return r.proxy.CheckUse(r.code) }

func (r *run) recordOfUser() module.Record {
	return module.Record{Data: files.Directory{Path: r.module.Data}, Settings: r.settings}
}

// tellLeft reports the result of -leave.
func (r *run) tellLeft(ctx context.Context) error {
	copied := r.recordOfUser().Check() != nil // Terraform replaces the record after it copies the state
	if !copied {
		if err := r.module.Empty(ctx); err != nil {
			return err
		}
	}
	in, _ := r.options.Stdin.(*os.File)
	asked := in != nil && term.IsTerminal(int(in.Fd()))
	switch {
	case r.code == 0 && r.err == nil:
		r.say("from now on, wrap does not encrypt the state of this module")
	case copied:
		r.say("init failed, but a plaintext copy of the state is already in its new place")
	case r.code != 0 && !r.line.Has("force-copy") && (!asked || r.line.IsOff("input")):
		r.say("without a terminal, or with -input=false, Terraform cannot ask whether to copy the state; add -force-copy")
	}
	return nil
}
