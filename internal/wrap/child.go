package wrap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// run runs the child to its end, and returns its exit code.
func (i *invocation) run(ctx context.Context, o Options, environ []string) (int, error) {
	cmd := exec.CommandContext(ctx, i.program, i.arguments()...) //nolint:gosec // running it is what the user asked for
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, o.Stdin, o.Stdout, o.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	forward := prepare(cmd)

	arrived := make(chan os.Signal, 8)
	if passed := signals(); len(passed) > 0 {
		signal.Notify(arrived, passed...)
	}
	if err := cmd.Start(); err != nil {
		signal.Stop(arrived)
		return 0, fmt.Errorf("%s cannot be run: %w", outside.Quoted(i.program, 300), keyfile.Reason(err))
	}
	relayed := make(chan struct{})
	go func() {
		for s := range arrived {
			forward(s)
		}
		close(relayed)
	}()
	_ = cmd.Wait() // what the child has to say is in its exit code
	signal.Stop(arrived)
	close(arrived)
	<-relayed
	return exitCode(cmd.ProcessState), nil
}

// untilSignal is ctx until a signal arrives, which no longer ends the process before
// stop is called.
func untilSignal(ctx context.Context) (until context.Context, stop context.CancelFunc) {
	if end := signals(); len(end) > 0 {
		return signal.NotifyContext(ctx, end...)
	}
	return context.WithCancel(ctx)
}

// survivePipes has writes to a pipe that nobody reads any more fail, until stop is
// called. They would end the process, and what it has yet to seal, or to remove, would
// stay as it is.
func survivePipes() (stop func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// signals are those that end a program, unless the caller ignores them, as nohup
// does.
func signals() []os.Signal {
	return slices.DeleteFunc([]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored)
}
