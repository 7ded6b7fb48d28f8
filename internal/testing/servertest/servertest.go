// Package servertest runs real servers for tests. Environment variables give the paths of the programs. Each program
// gets its own folder and environment.
package servertest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Server is a program that runs until the test ends.
type Server struct {
	name  string
	ended chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
}

// Start starts a server. Its environment contains only the variables that every program needs, and env. If the test
// fails, the server's output is shown.
func Start(tb testing.TB, program string, args []string, env ...string) *Server {
	tb.Helper()
	dir := tb.TempDir()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), program, args...) //nolint:gosec // the server under test
	cmd.Dir, cmd.Env = dir, append(world.World{}.Environ().Pairs(), "HOME="+dir)
	cmd.Env = append(cmd.Env, env...)
	s := &Server{name: filepath.Base(program), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = s, s
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(s.ended)
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.ended
		if text := s.Output(); tb.Failed() {
			tb.Logf("%s: …%s", s.name, text[max(0, len(text)-3000):])
		}
	})
	return s
}

// Await waits until the server is ready.
func (s *Server) Await(tb testing.TB, ready func() bool) {
	tb.Helper()
	limit, tick := time.After(3*time.Minute), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-s.ended:
			tb.Fatalf("%s ended before it was ready", s.name)
		case <-limit:
			tb.Fatalf("%s does not get ready", s.name)
		case <-tick.C:
		}
	}
}

// Do sends a request with headers, given in pairs, and returns the response body. The response must have the status
// want, or any success status if want is 0.
func Do(tb testing.TB, method, url, body string, want int, headers ...string) []byte {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || want != 0 && resp.StatusCode != want || want == 0 && resp.StatusCode >= 300 {
		tb.Fatalf("%s %s: %s, %v\n%.300s", method, url, resp.Status, err, answer)
	}
	return answer
}

// Write records output of the server.
func (s *Server) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.Write(text)
}

// Output returns the server's output so far.
func (s *Server) Output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.String()
}
