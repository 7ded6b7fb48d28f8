package wrap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
)

// run runs the child to its end, and returns its exit code.
func (i *invocation) run(ctx context.Context, o Options, environ []string) (int, error) {
	cmd := exec.CommandContext(ctx, i.program, i.arguments()...) //nolint:gosec // running it is what the user asked for
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, o.Stdin, o.Stdout, o.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	forward := prepare(cmd)

	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as with nohup
			signal.Notify(signals, s)
		}
	}
	if err := cmd.Start(); err != nil {
		signal.Stop(signals)
		return 0, fmt.Errorf("%s cannot be run: %w", outside.Quoted(i.program, 300), err)
	}
	relayed := make(chan struct{})
	go func() {
		for s := range signals {
			forward(s)
		}
		close(relayed)
	}()
	_ = cmd.Wait() // what the child has to say is in its exit code
	signal.Stop(signals)
	close(signals)
	<-relayed
	return exitCode(cmd.ProcessState), nil
}
