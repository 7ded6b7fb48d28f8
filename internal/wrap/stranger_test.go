package wrap_test

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// hanging is longer than anything here takes that does not hang.
const hanging = time.Minute

// listensAt is the address that a child was told, once it is ready.
func listensAt(t *testing.T, ready <-chan struct{}, out *lines) string {
	t.Helper()
	select {
	case <-ready:
	case <-time.After(hanging):
		t.Fatalf("the child is not ready: %s", out)
	}
	found := regexp.MustCompile(`TF_HTTP_ADDRESS=https://([0-9.:]+)/`).FindStringSubmatch(out.String())
	if found == nil {
		t.Fatalf("the child has no address: %s", out)
	}
	return found[1]
}

// Nothing that a stranger sends keeps wrap alive: neither a request that it holds
// open, nor a connection with none.
func TestStranger(t *testing.T) {
	t.Parallel()
	for name, sends := range map[string]string{
		"nothing":             "",
		"a part of a request": "POST /state HTTP/1.1\r\nHost: x\r\n",
		"no password":         "POST /state HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx",
		"another password":    "POST /state HTTP/1.1\r\nHost: x\r\nAuthorization: Basic c3RhdGVjcnlwdDp4\r\nContent-Length: 100\r\n\r\nx",
		"no TLS":              "-",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _, out := scripted(t, newStore(t), "environ ready wait GET", "plan")
			stdin, goOn := io.Pipe()
			o.Stdin = stdin
			ready, ended := out.expect("ready"), make(chan int, 1)
			go func() {
				code, _ := wrap.Run(t.Context(), o)
				ended <- code
			}()
			connection, err := net.Dial("tcp", listensAt(t, ready, out))
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if sends != "-" {
				connection = tls.Client(connection, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a stranger does not care
				_, err = io.WriteString(connection, sends)
			}
			_ = goOn.Close()
			select {
			case code := <-ended:
				if code != 0 || err != nil || !strings.Contains(out.String(), "GET 404") {
					t.Errorf("%d, %v\n%s", code, err, out)
				}
			case <-time.After(hanging):
				t.Error("wrap does not end")
			}
		})
	}
}

// Whoever takes the port of a wrap that was killed gets nothing from the child.
func TestImpostor(t *testing.T) {
	t.Parallel()
	needSignals(t)
	for name, start := range map[string]func(*httptest.Server){
		"with TLS": (*httptest.Server).StartTLS, "without": (*httptest.Server).Start,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const script = "environ ready wait GET POST=" + state
			o, _, out := scripted(t, newStore(t), script, "plan")
			cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
			cmd.Env = append(o.Environ, "WRAP_TEST_SCRIPT=wrap="+strings.Join(o.Command, ","), "WRAP_TEST_CHILD_SCRIPT="+script)
			cmd.Stdout, cmd.Stderr = out, out
			goOn, err := cmd.StdinPipe()
			ready := out.expect("ready")
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			address := listensAt(t, ready, out)
			_ = cmd.Process.Kill()
			_, _ = cmd.Process.Wait()
			listener, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			impostor := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				t.Errorf("the impostor was asked to %s, with %v", r.Method, r.Header)
			}))
			impostor.Listener, impostor.Config.ErrorLog = listener, log.New(io.Discard, "", 0)
			start(impostor)
			defer impostor.Close()
			_ = goOn.Close()
			_ = cmd.Wait() // until the child has ended, too
			if !strings.Contains(out.String(), "GET was answered 999") {
				t.Errorf("the child says %s", out)
			}
		})
	}
}
