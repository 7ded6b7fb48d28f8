// Package wrap runs Terraform or OpenTofu with an HTTP backend of its own on the
// loopback interface, which passes on to the real backend what it has sealed, and
// opens what it gets from there. Nothing is stored here.
//
// The child must not know another way to a state than ours: it would write
// plaintext there. See [invocation.check], [record] and [planBackend].
package wrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/world"
)

// Options say what to run, and where its state lies.
type Options struct {
	State    encryption.Target // opens and seals; it has methods, and was checked
	Command  []string          // terraform or tofu, and its arguments
	Environ  []string          // of the caller; its TF_HTTP_* describe the real backend
	Force    bool              // writes a state of another lineage than the one that was read
	Withhold []string          // names of variables that the child does not get; "TF_VAR_" stands for all that begin so

	// Stderr is written to by several goroutines, and by the child: an *os.File,
	// or a writer that is safe for concurrent use.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Run runs the command and returns its exit code: 128 and the number of the
// signal if one ended it. An error is what wrap itself has to say, in addition;
// the code is not zero then.
//
// Run passes signals on to the child. A caller must not end ctx at a signal,
// which would interrupt the child twice. The end of ctx interrupts the child,
// and Run still waits for it, so that a state can be written.
func Run(ctx context.Context, o Options) (exitCode int, err error) {
	call, err := newInvocation(o.Command, o.Environ)
	if err != nil {
		return 1, err
	}
	before := call.record()
	if err := call.check(before); err != nil {
		return 1, err
	}
	upstream, err := newBackend(world.Lookup(o.Environ))
	if err == nil && call.changes() { // what can be written down; other commands may be run by those who can only read
		err = rehearse(ctx, o.State)
	}
	if err != nil {
		return 1, err
	}
	p := newProxy(o, upstream)
	code, err := serve(ctx, p, func(address string) (int, error) {
		return call.run(ctx, o, p.environ(o, address))
	})
	if err == nil && code == 0 {
		err = call.checkAfter(o.Stderr, before)
	}
	if !p.used.Load() && (p.locked.Load() || err == nil && code == 0 && call.changes()) {
		err = errors.Join(err, errors.New("no state was asked for here: if one was written, it lies somewhere else, and is not encrypted"))
	}
	if err != nil && code == 0 {
		code = 1
	}
	return code, err
}

// rehearse seals a state before a run whose own could not be written otherwise.
func rehearse(ctx context.Context, target encryption.Target) error {
	if _, err := seal(ctx, target, []byte(`{"version":4,"serial":1,"lineage":"rehearsal"}`)); err != nil {
		return fmt.Errorf("no state could be written after this run: %w", err)
	}
	return nil
}

// serve serves p while run runs. Writes that have arrived by then are finished.
func serve(ctx context.Context, p *proxy, run func(address string) (int, error)) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no port of the loopback interface can be listened on: %w", err)
	}
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), // a child that hangs up is no news
	}
	ended := make(chan struct{})
	go func() {
		_ = server.Serve(listener) // until Shutdown
		close(ended)
	}()
	code, err := run("http://" + listener.Addr().String())
	_ = server.Shutdown(context.WithoutCancel(ctx)) // each request has a limit of its own
	<-ended
	return code, err
}

// environ is the environment of the child: without the keys and the real
// backend's credentials, and with ours. How often the child tries again is still
// the caller's choice.
func (p *proxy) environ(o Options, address string) []string {
	kept := slices.DeleteFunc(slices.Clone(o.Environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		upper := strings.ToUpper(name) // Windows does not tell the cases apart
		return upper == "TF_ENCRYPTION" || strings.HasPrefix(upper, "TF_BACKEND_HTTP_") || slices.Contains(o.Withhold, name) ||
			strings.HasPrefix(name, "TF_VAR_") && slices.Contains(o.Withhold, "TF_VAR_") ||
			strings.HasPrefix(upper, "TF_HTTP_") && !strings.HasPrefix(upper, "TF_HTTP_RETRY_")
	})
	kept = append(kept, "TF_HTTP_ADDRESS="+address+"/state", "TF_HTTP_USERNAME="+username, "TF_HTTP_PASSWORD="+p.password)
	if p.backend.lock.url != nil {
		kept = append(kept, "TF_HTTP_LOCK_ADDRESS="+address+"/lock")
	}
	if p.backend.unlock.url != nil {
		kept = append(kept, "TF_HTTP_UNLOCK_ADDRESS="+address+"/lock")
	}
	return kept
}

// say writes a line for the user.
func say(w io.Writer, text string) {
	_, _ = fmt.Fprintln(w, "statecrypt: "+outside.Text(text)) // nobody to tell
}
