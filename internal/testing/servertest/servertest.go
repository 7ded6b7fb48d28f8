// Package servertest runs real servers for tests: programs whose paths are in
// environment variables, with a folder and an environment of their own.
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

// Start starts a server. Besides what every program needs, its environment has
// only env. What it prints is shown when the test fails.
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

// Do sends a request with headers, in pairs. It must be answered with the
// status want, or with any success if that is 0. Do returns the body of the
// answer.
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

// Write takes what the server prints.
func (s *Server) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.Write(text)
}

// Output is what the server has printed.
func (s *Server) Output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.String()
}
