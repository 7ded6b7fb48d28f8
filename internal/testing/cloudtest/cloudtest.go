// Package cloudtest provides a small internet for testing programs that always use the real address of a cloud service.
// A proxy sends every connection to handlers in the test, which have certificates from the package's own authority.
// Nothing leaves the machine.
package cloudtest

import (
	"crypto/tls"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Internet is a fake internet for programs that run with [Internet.Environ].
type Internet struct {
	Proxy  string // the proxy URL
	CA     string // the authority's certificate, in PEM format
	CAFile string // the path of a file with that certificate

	hosts map[string]http.Handler
	site  *httptest.Server

	asked nettest.Log[string]
}

// Supported reports whether Go programs use SSL_CERT_FILE on this system.
func Supported() bool { return runtime.GOOS != "windows" && runtime.GOOS != "darwin" }

// New starts an internet with these hosts. It is closed at the end of the test. A host "*.example.com" stands for every
// name under example.com. For all other hosts, the proxy responds with status 502.
//
// If [Supported] returns false, the test is skipped.
func New(tb testing.TB, hosts map[string]http.Handler) *Internet {
	tb.Helper()
	if !Supported() {
		tb.Skip("on this system, Go reads no SSL_CERT_FILE by which a program could trust the certificates of a test")
	}
	authority := nettest.NewAuthority()
	i := &Internet{CA: authority.PEM, CAFile: filepath.Join(tb.TempDir(), "ca.pem"), hosts: hosts}
	if err := os.WriteFile(i.CAFile, []byte(i.CA), 0o600); err != nil {
		tb.Fatal(err)
	}
	i.site = nettest.Start(tb, http.HandlerFunc(i.serve), authority.Issue(nil, slices.Collect(maps.Keys(hosts))...).Pair())
	i.Proxy = nettest.Serve(tb, http.HandlerFunc(i.connect)) // the proxy leads to the site
	return i
}

// Asked returns the hosts to which connections were requested, known or unknown, in order, and forgets them. Requests
// without TLS appear as "http://host".
func (i *Internet) Asked() []string { return i.asked.Requests() }

// Client returns a client that reaches this internet.
func (i *Internet) Client(tb testing.TB) *http.Client {
	tb.Helper()
	transport := &http.Transport{
		Proxy:           func(*http.Request) (*url.URL, error) { return url.Parse(i.Proxy) },
		TLSClientConfig: &tls.Config{RootCAs: nettest.Pool(i.CA), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Environ returns base with the variables that lead a program to this internet, and without the user's variables for
// clouds and proxies.
func (i *Internet) Environ(base []string) []string {
	env := Isolated(base)
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		env = append(env, name+"="+i.Proxy)
	}
	return append(env, "SSL_CERT_FILE="+i.CAFile)
}

// Isolated returns base without the user's variables for clouds and proxies. In this environment, the AWS SDK finds no
// files and no machine role.
func Isolated(base []string) []string {
	return append(slices.DeleteFunc(slices.Clone(base), personal.MatchString),
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull)
}

var personal = regexp.MustCompile(`(?i)^((AWS|ARM|AZURE|ACTIONS|GOOGLE|GCLOUD|GCE|CLOUDSDK|BAO|VAULT)_|[^=]*_PROXY=)`)

// connect handles requests to the proxy.
func (i *Internet) connect(w http.ResponseWriter, r *http.Request) {
	tunnel := r.Method == http.MethodConnect
	host := r.URL.Hostname()
	name := host
	if !tunnel {
		name = "http://" + host
	}
	i.asked.Note(name)
	if !tunnel || i.handler(host) == nil {
		http.Error(w, "canary: the test knows no such host", http.StatusBadGateway)
		return
	}
	nettest.Tunnel(w, r, i.site.Listener.Addr().String())
}

func (i *Internet) serve(w http.ResponseWriter, r *http.Request) {
	handler := i.handler((&url.URL{Host: r.Host}).Hostname())
	if handler == nil {
		http.Error(w, "canary: this is another host", http.StatusMisdirectedRequest)
		return
	}
	handler.ServeHTTP(w, r)
}

func (i *Internet) handler(host string) http.Handler {
	if handler, ok := i.hosts[host]; ok {
		return handler
	}
	_, domain, _ := strings.Cut(host, ".")
	return i.hosts["*."+domain]
}
