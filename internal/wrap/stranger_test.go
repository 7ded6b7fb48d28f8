package wrap_test

import (
	"crypto/tls"
	"crypto/x509"
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
	found := regexp.MustCompile(`"address":"https://([0-9.:]+)/`).FindStringSubmatch(out.String())
	if found == nil {
		t.Fatalf("the child has no address: %s", out)
	}
	return found[1]
}

// Nothing that a stranger sends keeps wrap alive: neither a request that it holds
// open, nor a connection with none.
//
// Promise: Only encrypted states
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
			o, _, out := scripted(t, newStore(t), "backend ready wait GET", "plan")
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

// A page that a browser shows can have it ask whatever the name of the page leads to, and
// the page decides where that is. Whichever host is named, a stranger gets nothing, and
// nothing of it reaches the backend. By name, wrap cannot be reached at all.
//
// Promise: Only encrypted states
func TestForgedHosts(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.put(seal(t, sealing, state))
	o, _, out := scripted(t, s, "backend ready wait", "plan")
	stdin, goOn := io.Pipe()
	o.Stdin = stdin
	ready, ended := out.expect("ready"), make(chan struct{})
	go func() {
		_, _ = wrap.Run(t.Context(), o)
		close(ended)
	}()
	address := listensAt(t, ready, out)
	const none, wrong = "", "Authorization: Basic c3RhdGVjcnlwdDp4\r\n"
	for name, request := range map[string]string{
		"its own":         "GET /state HTTP/1.1\r\nHost: " + address + "\r\n" + none,
		"a stranger's":    "GET /state HTTP/1.1\r\nHost: page.example\r\n" + none,
		"by name":         "GET /state HTTP/1.1\r\nHost: localhost\r\n" + wrong,
		"the backend's":   "GET /state HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.url, "http://") + "\r\n" + wrong,
		"in the request":  "GET " + s.url + "/s?team=a HTTP/1.1\r\nHost: " + address + "\r\n" + wrong,
		"a page's origin": "GET /state HTTP/1.1\r\nHost: page.example\r\nOrigin: https://page.example\r\n" + none,
		"forwarded":       "GET /state HTTP/1.1\r\nHost: page.example\r\nX-Forwarded-Host: " + address + "\r\n" + none,
		"a preflight":     "OPTIONS /state HTTP/1.1\r\nHost: page.example\r\nAccess-Control-Request-Method: POST\r\n" + none,
		"a tunnel":        "CONNECT " + strings.TrimPrefix(s.url, "http://") + " HTTP/1.1\r\nHost: " + address + "\r\n" + none,
		"an old protocol": "GET /state HTTP/1.0\r\n" + none,
	} {
		connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a stranger does not care
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(connection, request+"\r\n")
		answer, _ := io.ReadAll(connection) // until it is closed
		_ = connection.Close()
		head, body, _ := strings.Cut(string(answer), "\r\n\r\n")
		if err != nil || !strings.Contains(head, " 401 Unauthorized\r\n") || strings.Contains(head, "Access-Control") || body != "" {
			t.Errorf("%s: %v, %s", name, err, answer)
		}
	}
	if seen := s.requests(); len(seen) > 0 {
		t.Errorf("the backend was asked to %q", seen)
	}
	_, certificate, _ := strings.Cut(strings.ReplaceAll(out.String(), `\n`, "\n"), `"client_ca_certificate_pem":"`)
	authority := x509.NewCertPool()
	authority.AppendCertsFromPEM([]byte(certificate))
	for _, name := range []string{"127.0.0.1", "localhost", "page.example"} {
		connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: authority, ServerName: name, MinVersion: tls.VersionTLS12})
		if err == nil {
			_ = connection.Close()
		}
		if (err == nil) != (name == "127.0.0.1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_ = goOn.Close()
	<-ended
}

// Whoever takes the port of a wrap that was killed gets nothing from the child.
//
// Promise: Only encrypted states
func TestImpostor(t *testing.T) {
	t.Parallel()
	needSignals(t)
	for name, start := range map[string]func(*httptest.Server){
		"with TLS": (*httptest.Server).StartTLS, "without": (*httptest.Server).Start,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reports, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer reports.Close()
			script := "backend ready report=" + reports.Addr().String() + " wait GET POST=" + state
			o, _, out := scripted(t, newStore(t), script, "apply")
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
			report, err := reports.Accept()
			if err != nil {
				t.Fatal(err)
			}
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
			said, _ := io.ReadAll(report) // until the child has ended, too
			if !strings.Contains(string(said), "GET was answered 999") {
				t.Errorf("the child says %s", said)
			}
		})
	}
}
