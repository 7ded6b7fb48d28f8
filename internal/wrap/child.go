package wrap

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// run runs the child to its end, and returns its exit code.
func (i *invocation) run(ctx context.Context, o Options, environ []string) (int, error) {
	cmd := exec.CommandContext(ctx, i.program, i.arguments()...) //nolint:gosec // running it is what the user asked for
	cmd.Env, cmd.Stdin = environ, o.Stdin
	cmd.Stdout, cmd.Stderr = outlive(o.Stdout, o.Stderr)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	forward := prepare(cmd)
	defer o.signals.relay(forward)()
	if err := o.signals.start(cmd); err != nil {
		return 0, fmt.Errorf("%s cannot be run: %w", outside.Quoted(i.program, 300), keyfile.Reason(err))
	}
	_ = cmd.Wait() // what the child has to say is in its exit code
	return exitCode(cmd.ProcessState), nil
}

// signals are those that end a program. As long as a run takes, they do not: it has yet to
// seal, or to remove, what must not stay as it is.
type signals struct {
	caught  []os.Signal
	arrived chan os.Signal

	mu   sync.Mutex
	then func(os.Signal)
}

// catch has then called at each signal, until stop is called. Those that the caller
// ignores, as nohup does, stay ignored.
func catch(then func(os.Signal)) *signals {
	s := &signals{
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

func (s *signals) listen() {
	if len(s.caught) > 0 { // or all would be
		signal.Notify(s.arrived, s.caught...)
	}
}

func (s *signals) stop() {
	signal.Stop(s.arrived)
	close(s.arrived)
}

// relay has then called at each signal, until it is called back.
func (s *signals) relay(then func(os.Signal)) (back func()) {
	before := s.swap(then)
	return func() { s.swap(before) }
}

func (s *signals) swap(then func(os.Signal)) (before func(os.Signal)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.then = s.then, then
	return before
}

// start starts the child. It ignores hangups, at which it would end without writing its
// state.
func (s *signals) start(cmd *exec.Cmd) error {
	if slices.Contains(s.caught, os.Signal(syscall.SIGHUP)) {
		signal.Ignore(syscall.SIGHUP) // which the child inherits
		defer s.listen()
	}
	return cmd.Start()
}

// survivePipes has writes to a pipe that nobody reads any more fail, until stop is
// called. They would end the process.
func survivePipes() (stop func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// outlive has the child write through us what would go into pipes. Those who read there may
// end before it, as all of a pipeline does at a signal, and its next word would end it, too,
// before it has written its state.
func outlive(out, errs io.Writer) (ofChild, errsOfChild io.Writer) {
	outInfo, errsInfo := pipe(out), pipe(errs)
	if outInfo != nil {
		out = &outliving{to: out}
	}
	switch {
	case errsInfo == nil:
	case outInfo != nil && os.SameFile(outInfo, errsInfo): // which keeps the order
		errs = out
	default:
		errs = &outliving{to: errs}
	}
	return out, errs
}

// pipe is the file of a pipe or a socket, nil for anything else.
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

// outliving is a pipe until its reader has gone, and nothing from then on.
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
