package googleauthtest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Asking is set in the process in which [CheckHostile] runs a test.
const Asking = "STATECRYPT_TEST_HOSTILE"

// CheckHostile runs a test of the same package with several sets of environment variables that could make a
// Google client trust an unknown server or start a program. The test must send requests with its own tokens
// to the hosts. No request may arrive, and no program may run.
//
// Each set is tested in a separate process, because the clients read the variables only once per process.
func CheckHostile(t *testing.T, test string, hosts ...string) {
	t.Helper()
	for name, variables := range map[string]func(*testing.T, string) []string{
		"a server that verifies certificates": verifier, "a program that has certificates": certificates,
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("the program is a shell script")
			}
			var arrived nettest.Log[string]
			handlers := map[string]http.Handler{}
			for _, host := range hosts {
				handlers[host] = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					arrived.Note(r.Host + r.URL.Path + " " + r.Header.Get("Authorization"))
				})
			}
			internet := cloudtest.New(t, handlers)
			ran := filepath.Join(t.TempDir(), "ran")
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+test+"$") //nolint:gosec // this test binary
			cmd.Env = append(cloudtest.Isolated(os.Environ()), Asking+"=1", "HTTPS_PROXY="+internet.Proxy, "TF_HTTP_PASSWORD=canary")
			cmd.Env = append(cmd.Env, variables(t, ran)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if got := arrived.All(); len(got) > 0 {
				t.Errorf("a server that nobody knows got %q", got)
			}
			if env, err := os.ReadFile(ran); err == nil {
				t.Errorf("a program ran; it saw our secrets: %t", strings.Contains(string(env), "TF_HTTP_PASSWORD"))
			}
			if asked := internet.Asked(); len(asked) == 0 { // otherwise the test could not fail
				t.Error("nobody was asked")
			}
		})
	}
}

// certificates returns variables that configure a program to provide the machine's certificates.
func certificates(t *testing.T, ran string) []string {
	t.Helper()
	dir := t.TempDir()
	script, config := filepath.Join(dir, "program"), filepath.Join(dir, "config.json")
	for path, text := range map[string]string{
		script: "#!/bin/sh\nenv >'" + ran + "'\n",
		config: fmt.Sprintf(`{"cert_configs":{},"libs":{"ecp":%q}}`, script),
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // one of them is run
			t.Fatal(err)
		}
	}
	return []string{"GOOGLE_API_CERTIFICATE_CONFIG=" + config}
}

// verifier returns variables that make clients use a fake metadata server. That server refers them to a fake
// Secure Session Agent, which does the TLS handshakes of Google's clients. The fake agent accepts all
// certificates.
func verifier(t *testing.T, _ string) []string {
	t.Helper()
	agent := nettest.Unstarted(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const (
			settings = "\x12\x06\x0a\x04\x10\x03\x18\x04" // TLS 1.2 to 1.3
			verified = "\x2a\x02\x08\x01"
		)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		for answer := settings; ; answer = verified {
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
			head := make([]byte, 5)
			if _, err := io.ReadFull(r.Body, head); err != nil {
				break
			}
			size := binary.BigEndian.Uint32(head[1:])
			_, _ = io.CopyN(io.Discard, r.Body, int64(size))
			_, _ = w.Write(append([]byte{0, 0, 0, 0, byte(len(answer))}, answer...))
		}
		w.Header().Set("Grpc-Status", "0")
	}))
	agent.Config.Protocols = new(http.Protocols)
	agent.Config.Protocols.SetUnencryptedHTTP2(true)
	agent.Start()
	metadata := nettest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		nettest.Reply(w, http.StatusOK, map[string]any{"s2a": map[string]any{"plaintext_address": agent.Listener.Addr().String()}})
	}))
	return []string{"EXPERIMENTAL_GOOGLE_API_USE_S2A=true", "GCE_METADATA_HOST=" + strings.TrimPrefix(metadata, "http://")}
}
