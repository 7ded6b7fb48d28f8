// Package child runs Terraform or OpenTofu, and controls its environment, signals, pipes and file descriptors.
package child

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Process describes a run of terraform or tofu.
type Process struct {
	Program        string
	Args           []string
	Environ        []string // the environment variables of the caller
	Withheld       []string // names of variables hidden from the program; "TF_VAR_" stands for all with this prefix
	Data           string   // the data directory of the program
	More           []string // additional variables for the program
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Inherits       []*os.File
	Signals        *Signals
}

// Run runs the program until it exits, passes signals on to it, and returns its exit code.
func (p Process) Run(ctx context.Context) (int, error) { return p.run(ctx, p.Signals.relay) }

// run runs the program until it exits. The relay function sets the signal handler and returns the previous one.
func (p Process) run(ctx context.Context, relay func(then func(os.Signal)) (before func(os.Signal))) (int, error) {
	cmd := exec.CommandContext(ctx, p.Program, p.Args...) //nolint:gosec // the user named the program
	cmd.Env, cmd.Stdin = p.environment(), p.Stdin
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	forward := prepare(cmd)
	var copied pipes
	err := copied.connect(cmd, p.Stdout, p.Stderr)
	if err == nil {
		err = p.Signals.start(cmd, append(copied.from, p.Inherits...))
	}
	copied.begin()
	if err != nil {
		return 1, fmt.Errorf("%s cannot be run: %w", outside.Quoted(p.Program, 300), keyfile.Reason(err))
	}
	before := relay(forward) // until now, a signal canceled ctx, which interrupted the child
	_ = cmd.Wait()           // the exit code tells the result
	relay(before)
	copied.wait(ctx)
	return exitCode(cmd.ProcessState), nil
}

// Output runs a command in a folder and returns its standard output and exit code. A signal cancels ctx, which
// interrupts the command. This is safe, because the command has no state to write.
func (p Process) Output(ctx context.Context, dir string, words ...string) (text []byte, code int, err error) {
	var out bytes.Buffer
	p.Args, p.Stdin, p.Stdout, p.Inherits = append([]string{"-chdir=" + dir}, words...), nil, &out, nil
	code, err = p.run(ctx, func(then func(os.Signal)) func(os.Signal) { return then })
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.Bytes(), code, err
}

// environment returns the environment variables of the program. It leaves out the keys, the credentials of the real
// backend, and the arguments that wrap has already read.
func (p Process) environment() []string {
	kept := slices.DeleteFunc(slices.Clone(p.Environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		upper := strings.ToUpper(name) // variable names are case-insensitive on Windows
		begins := func(prefix string) bool { return strings.HasPrefix(upper, prefix) }
		return upper == "TF_ENCRYPTION" || upper == "TF_DATA_DIR" || begins("TF_CLI_ARGS") ||
			upper == started || begins("TF_HTTP_") || begins("STATECRYPT_HTTP_") || begins("TF_BACKEND_HTTP_") ||
			slices.Contains(p.Withheld, name) || begins("TF_VAR_") && slices.Contains(p.Withheld, "TF_VAR_")
	})
	mark, _ := Started(p.Environ, p.Program, p.Args)
	return append(append(kept, "TF_DATA_DIR="+p.Data, mark), p.More...)
}

// started is a variable with a mark for each run of wrap in which this process runs, separated by commas.
const started = "STATECRYPT_STARTED"

// Started returns the variable that marks a run of a program, and whether that is a run within itself: a script may run
// statecrypt in place of the program, for ever. Other runs within a run are in another folder, have another subcommand,
// or run another program. There may be 16 runs within each other.
func Started(environ []string, program string, args []string) (pair string, again bool) {
	dir, _ := os.Getwd() // a folder that was deleted has no name, in both runs
	command := ""
	for _, arg := range args {
		if to, ok := strings.CutPrefix(arg, "-chdir="); ok {
			if dir = filepath.Join(dir, to); filepath.IsAbs(to) {
				dir = to
			}
		} else if !strings.HasPrefix(arg, "-") {
			command = arg
			break
		}
	}
	digest := sha256.Sum256([]byte(strings.Join([]string{dir, program, command}, "\x00")))
	mark := fmt.Sprintf("%x", digest[:8])
	before, _ := world.Lookup(environ)(started)
	marks := strings.FieldsFunc(before, func(r rune) bool { return r == ',' })
	const most = 16
	return started + "=" + strings.Join(append(marks, mark), ","), slices.Contains(marks, mark) || len(marks) >= most
}

// Signals catches the signals that would end wrap. During a run, wrap must survive them, because it still has to
// encrypt or remove files.
type Signals struct {
	caught  []os.Signal
	arrived chan os.Signal

	mu   sync.Mutex
	then func(os.Signal)
}

// Catch calls then for each signal, until Stop is called. Signals that the process was started to ignore, as under
// nohup, stay ignored.
func Catch(then func(os.Signal)) *Signals {
	s := &Signals{
		caught:  slices.DeleteFunc(append([]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}, rare()...), signal.Ignored),
		arrived: make(chan os.Signal, 8), then: then,
	}
	s.listen()
	go func() {
		for arrived := range s.arrived {
			s.mu.Lock()
			s.then(arrived)
			s.mu.Unlock()
		}
	}()
	return s
}

func (s *Signals) listen() {
	if len(s.caught) > 0 { // without names, Notify would catch all signals
		signal.Notify(s.arrived, s.caught...)
	}
}

func (s *Signals) Stop() {
	signal.Stop(s.arrived)
	close(s.arrived)
}

// relay makes then the signal handler and returns the previous handler.
func (s *Signals) relay(then func(os.Signal)) (before func(os.Signal)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.then = s.then, then
	return before
}

// start starts the child with the lent files. The child ignores SIGHUP, because it would end at SIGHUP without writing
// its state.
func (s *Signals) start(cmd *exec.Cmd, lent []*os.File) error {
	release, err := lend(cmd, lent)
	if err != nil {
		return err
	}
	defer release()
	if slices.Contains(s.caught, os.Signal(syscall.SIGHUP)) {
		signal.Ignore(syscall.SIGHUP) // the child inherits this setting
		defer s.listen()
	}
	return cmd.Start()
}

// SurvivePipes keeps a write to a pipe that has no reader from ending the process, until stop is called. The write
// returns an error instead.
func SurvivePipes() (stop func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// pipes stand between the child and our output pipes: the child writes to them, and wrap copies the text to ours. The
// reader of our pipe may exit before the child, as all programs in a pipeline do at a signal. Without the copy, SIGPIPE
// would then end the child before it writes its state. The child also inherits the read ends, so that it gets no
// SIGPIPE if wrap is killed.
type pipes struct {
	from   []*os.File // the read ends, used by wrap
	ends   []*os.File // the write ends, used by the child
	copies []func()
	sync.WaitGroup
}

// connect puts pipes between the child and our output pipes.
func (p *pipes) connect(cmd *exec.Cmd, out, errs io.Writer) (err error) {
	cmd.Stdout, cmd.Stderr = out, errs
	outInfo, errsInfo := pipe(out), pipe(errs)
	if outInfo != nil {
		cmd.Stdout, err = p.add(out)
	}
	switch {
	case err != nil || errsInfo == nil:
	case outInfo != nil && os.SameFile(outInfo, errsInfo): // a single pipe preserves the order of the output
		cmd.Stderr = cmd.Stdout
	default:
		cmd.Stderr, err = p.add(errs)
	}
	return err
}

func (p *pipes) add(to io.Writer) (*os.File, error) {
	from, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.from = append(p.from, from)
	p.ends = append(p.ends, end)
	p.copies = append(p.copies, func() {
		_, _ = io.Copy(&outliving{to: to}, from)
		_ = from.Close()
	})
	return end, nil
}

// begin starts copying. Each copy ends when no process can write to its pipe any more.
func (p *pipes) begin() {
	for i, end := range p.ends {
		_ = end.Close() // the child has its own copy
		p.Go(p.copies[i])
	}
}

// wait waits until everything is copied or ctx ends. A process that the child left running may keep the pipes open.
func (p *pipes) wait(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		p.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// pipe returns the file information of a pipe or a socket, or nil for other writers.
func pipe(w io.Writer) os.FileInfo {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil
	}
	return info
}

// outliving writes to a pipe while the pipe has a reader, and discards everything after that.
type outliving struct {
	to   io.Writer
	gone bool
}

func (o *outliving) Write(p []byte) (int, error) {
	if !o.gone {
		_, err := o.to.Write(p)
		o.gone = err != nil
	}
	return len(p), nil
}
