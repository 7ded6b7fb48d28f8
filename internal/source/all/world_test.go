package all

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// What the tests of this package read from: an internet whose certificates are
// trusted, a stranger in the middle whose are not, and two databases, one
// of which speaks no TLS.
var (
	internet      = newWorld()
	stranger      = newWorld()
	database      = newDatabase(internet)
	plainDatabase = newDatabase(nil)
)

// TestMain has the process trust the internet, before it looks for the first
// time whom the system trusts.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		home, err := os.MkdirTemp("", "policy")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(home)
		for _, w := range []*world{internet, stranger} {
			w.caFile = fmt.Sprintf("%s/ca-%p.pem", home, w)
			if err := os.WriteFile(w.caFile, []byte(w.authority()), 0o600); err != nil {
				panic(err)
			}
		}
		for name, value := range map[string]string{
			"HOME": home, "SSL_CERT_FILE": internet.caFile, "SSL_CERT_DIR": home + "/none",
			"GIT_SSL_CAINFO": internet.caFile, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
			"HTTPS_PROXY": internet.url, "AWS_EC2_METADATA_DISABLED": "true",
			"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		} {
			_ = os.Setenv(name, value)
		}
		// From here on it does, and nothing of the environment says so: with the
		// environment off, that would be an error.
		if _, err := x509.SystemCertPool(); err != nil {
			panic(err)
		}
		_ = os.Unsetenv("SSL_CERT_FILE")
		_ = os.Unsetenv("SSL_CERT_DIR")
		return m.Run()
	}())
}

// log is what has arrived.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, format+"\n", args...)
}

// take returns what has arrived, and forgets it.
func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// world is every host there is, behind a proxy.
type world struct {
	log
	url  string // of the proxy
	host string // one of them, which needs no proxy

	caFile string // with the certificate of its authority

	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

func newWorld() *world {
	w := &world{}
	var err error
	if w.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		panic(err)
	}
	template := certificate("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, w.key.Public(), w.key)
	if err != nil {
		panic(err)
	}
	if w.root, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(w.answer))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Listener = tls.NewListener(server.Listener, &tls.Config{GetCertificate: w.issue, MinVersion: tls.VersionTLS12})
	server.Start()
	w.host = server.Listener.Addr().String()
	w.url = httptest.NewServer(http.HandlerFunc(w.connect)).URL
	return w
}

func certificate(name string) *x509.Certificate {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if name != "" {
		c.DNSNames = []string{name}
	}
	return c
}

// issue makes a certificate for whatever host is asked.
func (w *world) issue(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, certificate(hello.ServerName), w.root, w.key.Public(), w.key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: w.key}, err
}

func (w *world) authority() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.root.Raw}))
}

// connect leads every host to this one.
func (w *world) connect(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		w.answer(rw, r)
		return
	}
	nettest.Tunnel(rw, r, w.host)
}

// answer is good enough for the first request of every kind.
func (w *world) answer(rw http.ResponseWriter, r *http.Request) {
	request, _ := httputil.DumpRequest(r, true)
	_, password, _ := r.BasicAuth()
	w.add("asked %s for\n%s%s", r.Host, request, password)
	header := rw.Header()
	for _, name := range []string{"X-Goog-Generation", "X-Ms-Blob-Type", "ETag"} {
		header.Set(name, "1")
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/.well-known/terraform.json"):
		header.Set("Content-Type", "application/json")
		fmt.Fprint(rw, `{"tfe.v2":"/api/v2/"}`)
	case strings.HasPrefix(r.URL.Path, "/v1/kv/"):
		fmt.Fprint(rw, `[{"Key":"network","Value":"e30=","ModifyIndex":1}]`)
	case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"):
		var state bytes.Buffer
		z := gzip.NewWriter(&state)
		_, _ = io.WriteString(z, "{}")
		_ = z.Close()
		fmt.Fprintf(rw, `{"metadata":{"resourceVersion":"1"},"data":{"tfstate":%q}}`, base64.StdEncoding.EncodeToString(state.Bytes()))
	case r.Host == "oauth2.googleapis.com":
		header.Set("Content-Type", "application/json")
		fmt.Fprint(rw, `{"access_token":"OWN","expires_in":3600,"token_type":"Bearer"}`)
	default:
		fmt.Fprint(rw, "{}")
	}
}

// postgres asks whoever connects for a password, and hangs up.
type postgres struct {
	log
	host string
	tls  *tls.Config // nil for none
}

func newDatabase(w *world) *postgres {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	p := &postgres{host: listener.Addr().String()}
	if w != nil {
		p.tls = &tls.Config{GetCertificate: w.issue, MinVersion: tls.VersionTLS12}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

func (p *postgres) serve(conn net.Conn) {
	defer conn.Close()
	const sslRequest = 80877103
	first := message(conn)
	if len(first) >= 4 && binary.BigEndian.Uint32(first) == sslRequest {
		if p.tls == nil {
			_, _ = io.WriteString(conn, "N")
			return
		}
		_, _ = io.WriteString(conn, "S")
		secure := tls.Server(conn, p.tls)
		defer secure.Close()
		conn, first = secure, message(secure)
	}
	// The client takes back, some time later, what it asked of a server that told it no
	// number of a process: a request to cancel, which has nothing else in it.
	if bytes.HasPrefix(first, []byte{0x04, 0xd2, 0x16, 0x2e}) && len(bytes.Trim(first[4:], "\x00")) == 0 {
		return
	}
	_, _ = conn.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 3}) // the password, in plaintext
	var kind [1]byte
	_, _ = io.ReadFull(conn, kind[:])
	p.add("startup %q, password %q", first, message(conn))
}

// message reads one whose length comes first.
func message(r io.Reader) []byte {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil
	}
	text := make([]byte, max(4, min(binary.BigEndian.Uint32(length[:]), 1<<16))-4)
	_, _ = io.ReadFull(r, text)
	return text
}
