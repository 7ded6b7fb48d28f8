package gcs

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"         //nolint:depguard // what was read is opened, as users do it
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin" //nolint:depguard // the same
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
)

// sealing is a configuration of OpenTofu's encryption.
const sealing = `
key_provider "pbkdf2" "k" {
  passphrase = "a passphrase for one test"
  iterations = 200000
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
state {
  method   = method.aes_gcm.m
  enforced = true
}
`

// clis are the real programs that write states: OpenTofu where make has built
// it, and terraform where there is one.
func clis(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	if tofu := os.Getenv("STATECRYPT_TOFU"); tofu != "" {
		found["tofu"] = tofu
	}
	if terraform, err := exec.LookPath("terraform"); err == nil {
		found["terraform"] = terraform
	}
	if len(found) == 0 {
		t.Skip("there is neither STATECRYPT_TOFU nor terraform in PATH")
	}
	return found
}

// bench is a service that CLIs write to and we read from.
type bench struct {
	endpoint string              // "" for Google's own
	internet *cloudtest.Internet // where Google's own is; else nil
	token    string
	key      string                                   // customer-supplied; may be empty
	plain    bool                                     // nothing is encrypted by OpenTofu
	stored   func(t *testing.T, object string) []byte // what it holds, by other means
	reading  func(read func())                        // surrounds our reads; may be nil
}

// roundTrips has each CLI write states, of two workspaces, plain and encrypted,
// and reads them.
func (b bench) roundTrips(t *testing.T) {
	for name, cli := range clis(t) {
		for _, encryption := range []string{"", sealing} {
			if encryption != "" && (name != "tofu" || b.plain) {
				continue
			}
			prefix := name + "/plain"
			if encryption != "" {
				prefix = name + "/sealed"
			}
			t.Run(prefix, func(t *testing.T) { b.roundTrip(t, cli, prefix, encryption, 0) })
		}
	}
}

// roundTrip writes a state of more than size bytes.
func (b bench) roundTrip(t *testing.T, cli, prefix, encryption string, size int) {
	dir := t.TempDir()
	main := `
		terraform {
		  backend "gcs" {
		    bucket = "states"
		    prefix = "` + prefix + `"
		  }
		}
		output "greeting" { value = "hello from ${terraform.workspace}" }
		output "padding" { value = file("padding") }
	`
	if err := os.WriteFile(filepath.Join(dir, "padding"), bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "TF_") })
	if b.internet != nil {
		env = b.internet.Environ(env)
	} else {
		env = cloudtest.Isolated(env)
	}
	env = append(env, "HOME="+dir, "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_ENCRYPTION="+encryption,
		"GOOGLE_OAUTH_ACCESS_TOKEN="+b.token, "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT="+b.endpoint, "GOOGLE_ENCRYPTION_KEY="+b.key)
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), cli, args...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("init", "-input=false")
	run("apply", "-auto-approve", "-input=false")
	b.read(t, prefix, "default", encryption)
	run("workspace", "new", "staging")
	run("apply", "-auto-approve", "-input=false")
	b.read(t, prefix, "staging", encryption)
	b.read(t, prefix, "default", encryption)
}

func (b bench) read(t *testing.T, prefix, workspace, text string) {
	t.Helper()
	env := environment{"GOOGLE_OAUTH_ACCESS_TOKEN": b.token, "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT": b.endpoint, "GOOGLE_ENCRYPTION_KEY": b.key}
	req := request(t, place("prefix", prefix))
	req.Workspace, req.MaxSize = workspace, 64<<20
	var roots *x509.CertPool
	if b.internet != nil {
		env["HTTPS_PROXY"] = b.internet.Proxy
		authority, err := os.ReadFile(b.internet.CAFile)
		if err != nil {
			t.Fatal(err)
		}
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
	}
	r := newRun(with(env))
	r.roots = roots
	src, err := r.open(req)
	if err != nil {
		t.Fatal(err)
	}
	if b.reading == nil {
		b.reading = func(read func()) { read() }
	}
	b.reading(func() {
		snap := fetch(t, src)
		if stored := b.stored(t, prefix+"/"+workspace+".tfstate"); !bytes.Equal(snap.Data, stored) {
			t.Errorf("got %d bytes, and %d are stored", len(snap.Data), len(stored))
		}
		if _, err := strconv.ParseInt(snap.Revision, 10, 64); err != nil {
			t.Errorf("the revision is %q", snap.Revision)
		}
		plain := unseal(t, snap.Data, text)
		var state struct {
			Outputs map[string]struct{ Value string }
		}
		if err := json.Unmarshal(plain, &state); err != nil || state.Outputs["greeting"].Value != "hello from "+workspace {
			t.Errorf("got %v, %v", state.Outputs, err)
		}
	})
}

// unseal opens a state. One that is to be sealed must be.
func unseal(t *testing.T, file []byte, text string) []byte {
	t.Helper()
	if text == "" {
		return file
	}
	registry := builtin.Registry()
	cfg, err := config.Parse(text, "TF_ENCRYPTION", registry.Options(cty.NilVal))
	if err != nil {
		t.Fatal(err)
	}
	enc, err := encryption.New(registry, cfg)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := enc.State().Decrypt(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if !opened.Encrypted {
		t.Error("the state was not encrypted")
	}
	return opened.Data
}

// States that the real CLIs write through their gcs backend are read back,
// with no more than the right to read, and one request each.
func TestBackend(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{"endpoint": nil, "customer-supplied key": bytes.Repeat([]byte{9}, 32), "own host": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := gcstest.New("states")
			b := bench{token: gcstest.Token, plain: name != "endpoint"} // once is enough
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
					t.Fatalf("there is no %s, but %q", object, s.Names("states"))
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
			b.roundTrips(t)
		})
	}
}

// The same with fake-gcs-server, which others wrote and whose answers we had no
// part in: make .tools/bin/fake-gcs-server.
func TestRealFakeGCS(t *testing.T) {
	program := os.Getenv("STATECRYPT_FAKE_GCS")
	if program == "" {
		t.Skip("STATECRYPT_FAKE_GCS does not name fake-gcs-server")
	}
	t.Parallel()
	origin := startFakeGCS(t, program)
	b := bench{endpoint: origin + "/storage/v1/", token: "fake"}
	b.stored = func(t *testing.T, object string) []byte {
		t.Helper()
		return download(t, origin+"/download/storage/v1/b/states/o/"+strings.ReplaceAll(object, "/", "%2F")+"?alt=media")
	}
	b.roundTrips(t)
	b.largeState(t)

	// An object that is stored with gzip, whose checksum is that of the packed data.
	upload := origin + "/upload/storage/v1/b/states/o?uploadType=media&contentEncoding=gzip&name=packed%2Fdefault.tfstate"
	resp, err := http.Post(upload, "application/json", bytes.NewReader(pack(t, []byte(stateJSON))))
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	if got := fetch(t, open(t, settingsOf(block(b.endpoint)), place("prefix", "packed"))); string(got.Data) != stateJSON {
		t.Errorf("got %q", got.Data)
	}

	// It answers "Not Found" to whatever is missing, which shows too little.
	_, err = open(t, settingsOf(block(b.endpoint)), place("prefix", "none")).Fetch(t.Context())
	if err == nil || !strings.Contains(err.Error(), "but not that there is no such object") {
		t.Errorf("got %v", err)
	}
}

// A state that the CLIs upload in parts, which begin at 16 MiB.
func TestRealLargeState(t *testing.T) {
	if os.Getenv("STATECRYPT_FAKE_GCS") == "" {
		t.Skip("STATECRYPT_FAKE_GCS does not name fake-gcs-server; this test goes with that one, because it is slow")
	}
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
	for name, cli := range clis(t) {
		t.Run(name+"/large", func(t *testing.T) { b.roundTrip(t, cli, name+"/large", "", 17<<20) })
	}
}

// startFakeGCS starts the server with the bucket states. It ends with the test.
func startFakeGCS(t *testing.T, program string) (origin string) {
	t.Helper()
	data := t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "states"), 0o700); err != nil {
		t.Fatal(err)
	}
	address := cloudtest.Dead(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, program, "-backend", "memory", "-data", data, "-scheme", "http", "-host", "127.0.0.1",
		"-port", port, "-public-host", address, "-log-level", "warn")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Env = []string{"HOME=" + data, "PATH=" + os.Getenv("PATH")}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("fake-gcs-server: %s", log.String())
		}
	})
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get("http://" + address + "/_internal/healthcheck"); err == nil {
			resp.Body.Close()
			return "http://" + address
		}
		select {
		case <-ended:
			t.Fatalf("fake-gcs-server ended: %s", log.String())
		default:
		}
	}
	t.Fatal("fake-gcs-server does not answer")
	return ""
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
