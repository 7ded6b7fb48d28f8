// Package wrap runs Terraform or OpenTofu with an HTTP backend of its own on the
// loopback interface, which keeps in a store what it has sealed, and opens what it gets
// from there.
//
// The child must not know another way to a state than ours: it would write
// plaintext there. So wrap decides what the child gets. It reads the command line
// by a table and hands on what it has read, see [invocation]; it writes down which
// backend Terraform has, so that Terraform refuses any other, see [record]; and it
// hands over saved plans as copies, see [handover].
package wrap

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/term"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// Options say what to run, and where its state is.
type Options struct {
	State    encryption.Target    // opens and seals; it has methods, and was checked
	Plan     encryption.Target    // likewise, if it has methods; otherwise plans are left as they are
	Doubts   []encryption.Finding // about State, for whoever seals one for the first time
	Backend  *unstable.Entry      // one of Backends; nil if the variables say everything
	Command  []string             // terraform or tofu, and its arguments
	Settings string               // the file that the block is in
	Environ  []string             // of the caller
	Force    bool                 // writes a state of another lineage than the one that was read
	Withhold []string             // names of variables that the child does not get; "TF_VAR_" stands for all that begin so

	Accept          bool // takes the state that there is for the right one, whatever was seen before
	EncryptExisting bool // before init, seals the state that there is in plaintext
	Leave           bool // init -migrate-state takes the state to a backend that wrap knows nothing of
	Pins            Pins

	// Stderr is written to by several goroutines, and by the child: an *os.File,
	// or a writer that is safe for concurrent use.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	signals  *signals
	limit    int64         // bytes of a state; 0 is the usual one
	patience time.Duration // likewise
}

// Run runs the command and returns its exit code: 128 and the number of the
// signal if one ended it. An error is what wrap itself has to say, in addition;
// the code is then not one of success.
//
// Run passes signals on to the child. A caller must not end ctx at a signal,
// which would interrupt the child twice. The end of ctx interrupts the child,
// and Run still waits for it, so that a state can be written.
func Run(ctx context.Context, o Options) (exitCode int, err error) {
	defer survivePipes()()
	until, interrupt := context.WithCancelCause(ctx) // for what comes before the child; later, only so that nothing is left behind
	defer interrupt(nil)
	o.signals = catch(func(s os.Signal) { interrupt(fmt.Errorf("%s signal received", s)) })
	defer o.signals.stop()
	call, err := newInvocation(o)
	if err != nil {
		return 1, err
	}
	switch moves := o.EncryptExisting || o.Leave; {
	case moves && (call.Name != "init" || call.effect() == passes):
		return 1, errors.New("-encrypt-existing and -leave are for init only, with its backend; leave them out")
	case o.Leave && (o.EncryptExisting || !call.has("migrate-state")):
		return 1, errors.New("-leave is for init -migrate-state only: statecrypt wrap -config FILE -leave -- terraform init -migrate-state")
	case call.effect() == passes:
		forget, err := call.hideBackend(until)
		if err != nil {
			return 1, err
		}
		defer forget()
		return call.run(until, o, call.environ(o))
	}
	code, err := protect(until, o, call)
	const changed = 2 // of plan -detailed-exitcode
	if err != nil && (code == 0 || code == changed) {
		code = 1
	}
	return code, err
}

// NeedsNoState reports whether a command does nothing with a state, so that it requires neither a key nor a
// store, but only the names of the variables that it must not get.
func NeedsNoState(o Options) bool {
	call, err := newInvocation(o)
	return err == nil && call.effect() == passes
}

const noWorkspaces = "wrap has no workspaces; each state has an address of its own, in the backend block of a file for -config"

// protect runs a command that has to do with the state.
func protect(ctx context.Context, o Options, call *invocation) (code int, err error) {
	if err := checkWorkspace(o); err != nil {
		return 1, err
	}
	o.State, o.Plan = o.State.KeepKeys(), o.Plan.KeepKeys() // what was rehearsed works in the end, too
	call.notePlaintext(o.Stderr)
	noteVariables(o)
	noteLeft(o.Stderr)
	p, err := connect(ctx, o, call)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, p.backend.Close()) }()
	files := &handover{Options: p.Options, call: call}
	before := call.lookAround()
	if err := p.makeReady(ctx, files); err != nil {
		return 1, errors.Join(err, files.finish(context.WithoutCancel(ctx)))
	}
	code, err = p.serve(ctx, func(variables []string) (int, error) { return call.run(ctx, o, call.environ(o, variables...)) })
	ctx = context.WithoutCancel(ctx)
	err = errors.Join(err, p.backend.lookAgain(ctx), p.unwritten(), p.settle(ctx, code), files.finish(ctx))
	if o.Leave {
		call.tellLeft(o, code, err)
		return code, err
	}
	left := before.follow(ctx, o, p.memory)
	if left == nil {
		p.memory.end(ctx)
	}
	return code, errors.Join(err, left, checkRecord(call.own(call.id())), p.checkUse(code))
}

func checkWorkspace(o Options) error {
	if workspace, _ := world.Lookup(o.Environ)("TF_WORKSPACE"); workspace != "" && workspace != "default" {
		return errors.New("a workspace is selected in TF_WORKSPACE: " + noWorkspaces)
	}
	return nil
}

// connect is the proxy of a command, between it and where its state is.
func connect(ctx context.Context, o Options, call *invocation) (*proxy, error) {
	ctx = noticing(ctx, o.Stderr)
	err := checkOneModule(o, call.dir)
	var upstream *backend
	if err == nil {
		upstream, err = newBackend(o, call.dir)
	}
	if err == nil {
		upstream.former, upstream.unread = readRecord(call.data)
		upstream.unlocked = call.isOff("lock")
	}
	if err == nil && call.effect() == changes { // other commands may be run by those who can only read
		err = rehearse(ctx, o.State, upstream)
	}
	if err != nil {
		return nil, err
	}
	call.backend = upstream
	if call.keeps(filepath.Join(call.dir, errored)) {
		return nil, errors.Join(errors.New("the state cannot be in "+errored+", where Terraform leaves what it could not write; "+
			"name another file in the backend block"), upstream.Close())
	}
	p := newProxy(o, call, upstream)
	p.memory = newMemory(call.own(), upstream)
	p.memory.accepts, p.memory.changes = o.Accept, call.effect() == changes
	if local, ok := store.As[store.Local](upstream.State); ok {
		p.memory.reverts = local.Reverts(ctx)
		if call.effect() == changes {
			call.lent = local.Lend()
		}
	}
	p.lock.begin(call)
	if call.effect() == changes || call.Name == "plan" {
		p.elsewhere = call.elsewhere()
	}
	return p, nil
}

// makeReady does what comes before the child.
func (p *proxy) makeReady(ctx context.Context, files *handover) error {
	call := p.call
	err := call.findSources(ctx, p.Options)
	if err != nil {
		return err
	}
	call.noteWithheld(p.Options)
	err = call.checkModule()
	switch {
	case p.Leave && err == nil:
		return errors.New("there is nowhere to go: the module still keeps its state here; write its new backend block first")
	case p.Leave:
		if file := call.localFile(); file != "" && call.keeps(join(call.dir, file)) {
			return errors.New("the new backend of the module is the file that the state is in, encrypted; give its block another path")
		}
		return writeRecord(ctx, directory{path: call.data})
	}
	p.sealLeft(ctx)
	if err == nil {
		err = call.checkErrored(p.Stderr)
	}
	if err == nil {
		err = writeRecord(ctx, call.own(call.id()))
	}
	switch {
	case err != nil:
	case p.EncryptExisting:
		err = moveIn(ctx, p)
	case call.Name == "init" || call.effect() == changes:
		call.warnOfOwn(p.Stderr)
	}
	if err == nil {
		err = files.prepare(ctx)
	}
	return cmp.Or(err, context.Cause(ctx))
}

// warnOfOwn notices a state that the module had without wrap. The child does not look at
// it, and would make all that is in it a second time.
func (i *invocation) warnOfOwn(stderr io.Writer) {
	const advice = ", which is not used under wrap; if it is not in the backend yet, run init with -encrypt-existing"
	if i.Name == "init" {
		i.warnOfWorkspaces(stderr)
	}
	file, r, err := i.former()
	if err == nil && file == "" && i.Name == "init" { // once: Terraform keeps the record
		say(stderr, "warning: this module has had its state in the backend "+r.name()+advice)
		return
	}
	switch i.kindOf(file) {
	case encryption.KindState:
		say(stderr, "warning: there is a plaintext state in "+outside.Line(file, 200)+advice+", and otherwise delete it")
	case encryption.KindEncrypted:
		if i.Name == "init" { // nothing in it is at risk
			say(stderr, "there is an encrypted state in "+outside.Line(file, 200)+", which is not used under wrap; if it is not in the "+
				"backend yet, decrypt it, and run init with -encrypt-existing")
		}
	}
}

// kindOf is what a file in the folder of the module is, unknown if it cannot be read. A
// state that holds nothing, such as destroy leaves it, is empty.
func (i *invocation) kindOf(file string) encryption.FileKind {
	path := join(i.dir, file)
	if i.keeps(path) { // it is no other
		return encryption.KindUnknown
	}
	content, err := readFile(path)
	if err != nil {
		return encryption.KindUnknown
	}
	info, _ := encryption.Inspect(content)
	var held struct {
		Resources, Modules []json.RawMessage
		Outputs            map[string]json.RawMessage
	}
	if info.Kind == encryption.KindState && json.Unmarshal(content, &held) == nil &&
		len(held.Resources)+len(held.Modules)+len(held.Outputs) == 0 {
		return encryption.KindEmpty
	}
	return info.Kind
}

// keeps reports whether a file belongs to the state in the backend.
func (i *invocation) keeps(path string) bool {
	if i.backend == nil {
		return false
	}
	local, ok := store.As[store.Local](i.backend.State)
	return ok && local.Keeps(path)
}

// elsewhere is about a state that the module has without wrap, nil if it has none. While the
// backend has none, the child would make all that is in it a second time.
func (i *invocation) elsewhere() error {
	const moves = "run init with -encrypt-existing, or delete "
	file, r, err := i.former()
	if err != nil {
		return err
	}
	if file == "" {
		return fmt.Errorf("there is none, and this module has had its state in the backend %s, which is not used under wrap; %s%s",
			r.name(), moves, outside.Line(i.data, 300))
	}
	for _, found := range append([]string{file}, i.inWorkspaces(r)...) {
		unused := outside.Line(found, 200) + ", which is not used under wrap"
		first := ""
		if found != file {
			unused += ", because there are no workspaces"
			first = "move it to " + outside.Line(file, 200) + ", and "
		}
		switch i.kindOf(found) {
		case encryption.KindState:
			return fmt.Errorf("there is none, and there is a plaintext state in %s; %s%sthat file", unused, first, moves)
		case encryption.KindEncrypted:
			return fmt.Errorf("there is none, and there is an encrypted state in %s; decrypt it, and %s%sthat file", unused, first, moves)
		}
	}
	return nil
}

// warnOfWorkspaces notices states that the module had in workspaces.
func (i *invocation) warnOfWorkspaces(stderr io.Writer) {
	_, r, _ := i.former() // if its record cannot be read, that is said elsewhere
	for _, file := range i.inWorkspaces(r) {
		if i.kindOf(file) == encryption.KindState {
			say(stderr, "warning: there is a plaintext state of a workspace in "+outside.Line(file, 200)+", which is not used under wrap, "+
				"because there are no workspaces")
		}
	}
}

// inWorkspaces are the files of states that the module may have had in workspaces.
func (i *invocation) inWorkspaces(r recorded) (files []string) {
	folder, _ := r.Backend.Config["workspace_dir"].(string)
	folder = cmp.Or(folder, "terraform.tfstate.d")
	entries, _ := os.ReadDir(join(i.dir, folder)) // there is none, as a rule
	for _, e := range entries {
		files = append(files, filepath.Join(folder, e.Name(), "terraform.tfstate"))
	}
	return files
}

// tellLeft says what became of a state that was to leave.
func (i *invocation) tellLeft(o Options, code int, err error) {
	in, _ := o.Stdin.(*os.File)
	asked := in != nil && term.IsTerminal(int(in.Fd()))
	switch {
	case code == 0 && err == nil:
		say(o.Stderr, "from now on, wrap does not encrypt the state in its new place")
	case checkRecord(directory{path: i.data}) != nil: // which Terraform replaces once the state is copied
		say(o.Stderr, "init has failed after the state was copied: in its new place, it is in plaintext")
	case code != 0 && !i.has("force-copy") && (!asked || i.isOff("input")):
		say(o.Stderr, "without a terminal, or with -input=false, nobody can answer whether to copy the state: add -force-copy")
	}
}

// isOff reports whether a flag that is on without being set was set to false.
func (i *invocation) isOff(name string) (off bool) {
	for _, f := range i.flags { // the last one counts
		if f.name == name {
			on, err := strconv.ParseBool(f.value)
			off = f.hasValue && err == nil && !on
		}
	}
	return off
}

// checkUse finds a run that has taken its state elsewhere.
func (p *proxy) checkUse(code int) error {
	if !p.used.Load() && (p.lock.given || code == 0 && p.call.effect() == changes) {
		return errors.New("no state was asked for here: if one was written, it is somewhere else, and is not encrypted; run init with wrap")
	}
	return nil
}

// rehearse seals a state before a run whose own could not be written otherwise.
func rehearse(ctx context.Context, target encryption.Target, b *backend) error {
	_, _, err := Seal(ctx, target, []byte(`{"version":4,"serial":1,"lineage":"rehearsal"}`))
	if prover, ok := store.As[store.Prover](b.State); ok && err == nil {
		err = prover.Ready(ctx)
	}
	if err != nil {
		return fmt.Errorf("the run was not started, because its state could not be written afterwards: %w", err)
	}
	return nil
}

// serve serves while run runs, which gets the variables that tell of it. What the
// child has sent by then is finished; nobody else is waited for.
func (p *proxy) serve(ctx context.Context, run func(variables []string) (int, error)) (int, error) {
	certificate, authority, err := certify()
	if err != nil {
		return 0, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no port of the loopback interface can be listened on: %w", err)
	}
	server := p.server(certificate)
	ended := make(chan struct{})
	go func() {
		_ = server.ServeTLS(listener, "", "") // until Close
		close(ended)
	}()
	code, err := run(p.variables("https://"+listener.Addr().String(), authority))
	p.work.Lock() // each request has a limit of its own
	_ = server.Close()
	<-ended
	return code, err
}

func (p *proxy) server(certificate tls.Certificate) *http.Server {
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: time.Minute, ReadTimeout: patience, IdleTimeout: -1, // a child may work for hours
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Protocols:   new(http.Protocols),
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, 0), // a child that hangs up is no news
		BaseContext: func(net.Listener) context.Context { return noticing(context.Background(), p.Stderr) },
	}
	server.Protocols.SetHTTP1(true)
	return server
}

// variables tell the child of us.
func (p *proxy) variables(address, authority string) []string {
	told := []string{
		"TF_HTTP_ADDRESS=" + address + "/state", "TF_HTTP_USERNAME=" + username, "TF_HTTP_PASSWORD=" + p.password,
		"TF_HTTP_CLIENT_CA_CERTIFICATE_PEM=" + authority,
	}
	if !p.Leave || p.backend.HasLocks { // or the backend that a state leaves for would be filled with it
		told = append(told, "TF_HTTP_LOCK_ADDRESS="+address+"/lock", "TF_HTTP_UNLOCK_ADDRESS="+address+"/lock")
	}
	return append(told, p.backend.Retries...)
}

// environ is the environment of the child: without the keys, the credentials of the
// real backend, and arguments that were read already.
func (i *invocation) environ(o Options, more ...string) []string {
	data := i.ownData()
	if o.Leave {
		data = i.data
	}
	withheld := append(slices.Clone(o.Withhold), kindOf(o.Backend).Withhold...)
	kept := slices.DeleteFunc(slices.Clone(o.Environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		upper := strings.ToUpper(name) // Windows does not tell the cases apart
		begins := func(prefix string) bool { return strings.HasPrefix(upper, prefix) }
		return upper == "TF_ENCRYPTION" || upper == "TF_DATA_DIR" || begins("TF_CLI_ARGS") ||
			begins("TF_HTTP_") || begins("STATECRYPT_HTTP_") || begins("TF_BACKEND_HTTP_") ||
			slices.Contains(withheld, name) || begins("TF_VAR_") && slices.Contains(withheld, "TF_VAR_")
	})
	return append(append(kept, "TF_DATA_DIR="+data), more...)
}

// noteWithheld names the variables that the child does not get and that its module
// declares: the child will ask for them, or fail.
func (i *invocation) noteWithheld(o Options) {
	declared := map[string]bool{}
	for _, name := range i.sources {
		body, _ := parse(filepath.Join(i.dir, name)) // the child says what is wrong with it
		for _, b := range blocks(body, hcl.BlockHeaderSchema{Type: "variable", LabelNames: []string{"name"}}) {
			declared["TF_VAR_"+b.Labels[0]] = true
		}
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(o.Withhold))) {
		if value, _ := world.Lookup(o.Environ)(name); value != "" && declared[name] {
			say(o.Stderr, fmt.Sprintf("%s is for the encryption settings, so the program does not get it. The module has a variable of the "+
				"same name: give one of the two another name", name))
		}
	}
}

// noticing has the user told what is noticed below.
func noticing(ctx context.Context, stderr io.Writer) context.Context {
	return notice.With(ctx, func(text string) { say(stderr, text) })
}

// say writes a line for the user.
func say(w io.Writer, text string) {
	_, _ = fmt.Fprintln(w, "statecrypt: "+outside.Text(text)) // nobody to tell
}
