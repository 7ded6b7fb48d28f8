package gcs

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// bench is a service that CLIs write to and we read from.
type bench struct {
	endpoint string              // "" for Google's own
	internet *cloudtest.Internet // where Google's own is; else nil
	token    string
	key      string                                   // customer-supplied; may be empty
	stored   func(t *testing.T, object string) []byte // what it holds, by other means
	reading  func(read func())                        // surrounds our reads; may be nil
}

// roundTrip writes states of more than size bytes, and reads them.
func (b bench) roundTrip(t *testing.T, cli clitest.CLI, prefix string, size int) {
	var env []string
	if b.internet != nil {
		env = b.internet.Environ(nil)
	}
	env = append(env, "GOOGLE_OAUTH_ACCESS_TOKEN="+b.token, "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT="+b.endpoint, "GOOGLE_ENCRYPTION_KEY="+
		b.key)
	p := cli.Project(t, fmt.Sprintf("backend \"gcs\" {\nbucket = \"states\"\nprefix = %q\n}", prefix), env...)
	p.Enlarge(t, size)
	p.RoundTrip(t, func(workspace string) (data []byte) {
		src := b.open(t, prefix, workspace)
		read := func() {
			snap := sourcetest.Fetch(t, src)
			if _, err := strconv.ParseInt(snap.Revision, 10, 64); err != nil {
				t.Errorf("the revision is %q", snap.Revision)
			}
			data = snap.Data
		}
		if b.reading == nil {
			read()
		} else {
			b.reading(read)
		}
		return data
	}, func(workspace string) []byte { return b.stored(t, prefix+"/"+workspace+".tfstate") })
}

func (b bench) open(t *testing.T, prefix, workspace string) source.Source {
	t.Helper()
	env := environment{"GOOGLE_OAUTH_ACCESS_TOKEN": b.token, "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT": b.endpoint,
		"GOOGLE_ENCRYPTION_KEY": b.key}
	req := request(t, place("prefix", prefix))
	req.Workspace, req.MaxSize = workspace, 64<<20
	var roots *x509.CertPool
	if b.internet != nil {
		env["HTTPS_PROXY"] = b.internet.Proxy
		roots = nettest.Pool(b.internet.CA)
	}
	r := newRun(with(env).For(Kind()))
	r.roots = roots
	src, err := r.open(req)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// States that the real CLIs write through their gcs backend are read back,
// with no more than the right to read, and one request each.
func TestBackend(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{"endpoint": nil, "customer-supplied key": bytes.Repeat([]byte{9}, 32), "own host": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := gcstest.New("states")
			b := bench{token: gcstest.Token}
			if name == "own host" {
				b.internet = cloudtest.New(t, map[string]http.Handler{"storage.googleapis.com": s})
			} else {
				b.endpoint = s.Start(t)
			}
			if key != nil {
				b.key = base64.StdEncoding.EncodeToString(key)
			}
			b.stored = func(t *testing.T, object string) []byte {
				t.Helper()
				o := s.Get("states", object)
				if o == nil {
					t.Fatalf("there is no %s after %q", object, s.Requests())
				}
				if !bytes.Equal(o.Key, key) {
					t.Error("the object is stored with another key")
				}
				return o.Data
			}
			b.reading = func(read func()) {
				s.Change(func(s *gcstest.Service) { s.Permissions = leastPrivilege(t) })
				s.Requests()
				read()
				if got := s.Requests(); len(got) != 1 || !strings.HasPrefix(got[0], "GET /storage/v1/b/states/o/") {
					t.Errorf("asked for %q", got)
				}
				s.Change(func(s *gcstest.Service) { s.Permissions = nil })
			}
			for _, cli := range clitest.All(t) {
				if cli.Encrypted && name != "endpoint" {
					continue // once is enough
				}
				t.Run(cli.Name, func(t *testing.T) { b.roundTrip(t, cli, cli.Name, 0) })
			}
		})
	}
}

// The same with fake-gcs-server, which others wrote and whose answers we had no
// part in: make .tools/bin/fake-gcs-server.
func TestRealFakeGCS(t *testing.T) {
	origin := gcstest.StartReal(t, "states")
	t.Parallel()
	b := bench{endpoint: origin + "/storage/v1/", token: "fake"}
	b.stored = func(t *testing.T, object string) []byte {
		t.Helper()
		return download(t, origin+"/download/storage/v1/b/states/o/"+strings.ReplaceAll(object, "/", "%2F")+"?alt=media")
	}
	for _, cli := range clitest.All(t) {
		t.Run(cli.Name, func(t *testing.T) { b.roundTrip(t, cli, cli.Name, 0) })
	}
	b.largeState(t)

	// An object that is stored with gzip, whose checksum is that of the packed data.
	upload := origin + "/upload/storage/v1/b/states/o?uploadType=media&contentEncoding=gzip&name=packed%2Fdefault.tfstate"
	resp, err := http.Post(upload, "application/json", bytes.NewReader(nettest.Gzip([]byte(stateJSON))))
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	if got := sourcetest.Fetch(t, open(t, settingsOf(block(b.endpoint)), place("prefix", "packed"))); string(got.Data) != stateJSON {
		t.Errorf("got %q", got.Data)
	}

	// It answers "Not Found" to whatever is missing, which shows too little.
	_, err = open(t, settingsOf(block(b.endpoint)), place("prefix", "none")).Fetch(t.Context())
	if _, missing := source.IsMissing(err); err == nil || missing {
		t.Errorf("got %v", err)
	}
}

// A state that the CLIs upload in parts, which begin at 16 MiB.
func TestRealLargeState(t *testing.T) {
	testkit.Program(t, "STATECRYPT_FAKE_GCS") // this test goes with that one, because it is slow
	t.Parallel()
	s := gcstest.New("states")
	b := bench{endpoint: s.Start(t), token: gcstest.Token}
	b.stored = func(_ *testing.T, object string) []byte { return s.Get("states", object).Data }
	b.largeState(t)
	if got := strings.Join(s.Requests(), "\n"); !strings.Contains(got, "upload_id=") {
		t.Error("the state was uploaded in one piece")
	}
}

func (b bench) largeState(t *testing.T) {
	for _, cli := range clitest.All(t) {
		if !cli.Encrypted {
			t.Run(cli.Name+"/large", func(t *testing.T) { b.roundTrip(t, cli, cli.Name+"/large", 12<<20) })
		}
	}
}

func download(t *testing.T, address string) []byte {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil || resp.StatusCode != 200 {
		t.Fatal(fmt.Sprint(address, ": ", resp.Status, " ", err))
	}
	return b.Bytes()
}
