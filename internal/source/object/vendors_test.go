package object_test

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// vendor is one of the stores, and what a test has to know about it.
type vendor struct {
	object.Vendor
	bucket, path, region string           // of the object that where means
	where                objecttest.Attrs // what the data source says
	id                   string           // the attribute with the ID of a key

	codes []string // answers, by status and code

	prefix string // the attribute with a folder of states
	paths  []path

	backend []string          // attributes of the backend
	leftOut map[string]string // :: those that are neither in the data source nor in credentials → why
	ours    []string          // those that the backend does not have

	action  string           // that the policy of the documentation allows; "" where the policy has another form
	example objecttest.Attrs // what that is about
}

// path is where the state of a workspace is. A want of "error: " and an
// attribute is an error of that.
type path struct {
	prefix         any // a string, or a [cty.Value]; "" is none
	key, workspace string
	want           string
}

func (v vendor) store() *objecttest.Server {
	s := objecttest.New(v.bucket)
	s.Region = v.region
	s.Keys = []aws.Credentials{{AccessKeyID: "reader", SecretAccessKey: "secret-" + objecttest.Canary}}
	return s
}

// who may read, at an endpoint with a certificate of ca.
func (v vendor) who(t *testing.T, endpoint, ca string) objecttest.Attrs {
	t.Helper()
	b := objecttest.Strings(v.id, "reader", "secret_key", "secret-"+objecttest.Canary)
	if v.Name != "s3" {
		return b.With("endpoint", endpoint)
	}
	b = b.With("endpoints", objecttest.Strings("s3", endpoint)).With("use_path_style", true).With("max_retries", 2)
	if ca != "" {
		file := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(file, []byte(ca), 0o600); err != nil {
			t.Fatal(err)
		}
		b = b.With("custom_ca_bundle", file)
	}
	return b
}

// withoutProfiles keeps the machine's own settings of AWS away.
func withoutProfiles(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
}

func TestCosts(t *testing.T) {
	withoutProfiles(t)
	for _, v := range vendors() {
		t.Run(v.Name, func(t *testing.T) { sourcetest.Costs(t, v.faultHarness(t)) })
	}
}

// Promise: Where secrets go
// Promise: Reading changes nothing (the suite of every source)
func TestVendors(t *testing.T) {
	withoutProfiles(t)
	for _, v := range vendors() {
		t.Run(v.Name, func(t *testing.T) {
			t.Run("source", v.run)
			t.Run("faults", v.faults)
			t.Run("codes", v.checkCodes)
			t.Run("paths", v.checkPaths)
			t.Run("versions", v.versions)
			t.Run("isolated", v.isolated)
			t.Run("attributes", v.attributes)
			t.Run("policy", v.policy)
		})
	}
}

// over is the kind on a network whose servers have certificates of ca.
func (v vendor) over(ca string) source.Kind {
	return v.KindOver(trusting(ca))
}

func trusting(ca string) object.Network {
	n := objecttest.Hurried()
	if ca != "" {
		n.Roots = x509.NewCertPool()
		n.Roots.AppendCertsFromPEM([]byte(ca))
	}
	return n
}

// read reads what a says from a server.
func (v vendor) read(t *testing.T, endpoint string, a objecttest.Attrs) (*source.Snapshot, error) {
	t.Helper()
	kind := v.over("")
	return objecttest.Read(t, kind, objecttest.Settings(kind, nil, v.who(t, endpoint, "")), a, "default")
}

// run is sourcetest.Run.
func (v vendor) run(t *testing.T) {
	kind := v.over("")
	place := func(t *testing.T, data []byte) (sourcetest.Place, *objecttest.Server) {
		server := v.store()
		if data != nil {
			server.Put(v.bucket, v.path, data)
		}
		return sourcetest.Place{
			Attrs: v.where, Settings: objecttest.Settings(kind, nil, v.who(t, server.Serve(t), "")), Secrets: []string{objecttest.Canary},
			Changed: server.OnlyRead,
		}, server
	}
	changes := map[string]func(*sourcetest.Place, *objecttest.Server){
		"another secret": func(_ *sourcetest.Place, server *objecttest.Server) { server.Keys[0].SecretAccessKey = "other" },
		"another key":    func(_ *sourcetest.Place, server *objecttest.Server) { server.Keys[0].AccessKeyID = "other" },
		"another region": func(_ *sourcetest.Place, server *objecttest.Server) { server.Region = "other" },
		"denied": func(_ *sourcetest.Place, server *objecttest.Server) {
			server.Allows = func(string, string) bool { return false }
		},
		"no such bucket": func(p *sourcetest.Place, _ *objecttest.Server) { p.Attrs = v.where.With("bucket", "none-1250000000") },
		"nobody listens": func(p *sourcetest.Place, _ *objecttest.Server) {
			p.Settings = objecttest.Settings(kind, nil, v.who(t, "http://"+nettest.Dead(t), ""))
		},
		"no such version": func(p *sourcetest.Place, _ *objecttest.Server) { p.Attrs = v.where.With("version_id", "none") },
	}
	bad := map[string]func(*testing.T) sourcetest.Place{}
	for name, change := range changes {
		bad[name] = func(t *testing.T) sourcetest.Place {
			p, server := place(t, []byte("{}"))
			change(&p, server)
			return p
		}
	}
	sourcetest.Run(t, sourcetest.Harness{
		EmptyIsNone: true,
		Kind:        kind,
		Place:       func(t *testing.T, data []byte) sourcetest.Place { p, _ := place(t, data); return p },
		Stuck: func(t *testing.T) sourcetest.Place {
			p, server := place(t, nil)
			server.Answer = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
			return p
		},
		Bad: bad,
	})
}

// faults is sourcetest.Faults.
func (v vendor) faults(t *testing.T) {
	h := v.faultHarness(t)
	h.Golden = v.Name + ", faults"
	h.Sees = map[string]string{
		"Content-Length too small": faults.Cut, // S3 sends checksums where it has them, and then it is noticed
		"nested a million deep":    faults.Other,
	}
	if v.Words.Trust != "" {
		h.Sees["certificate of an unknown authority"] = faults.InGolden
	}
	h.Cannot = map[string]string{
		"429 with Retry-After of a year, cancelled": "a client of S3 does not wait for what Retry-After says",
	}
	sourcetest.Faults(t, h)
}

func (v vendor) faultHarness(t *testing.T) sourcetest.FaultHarness {
	t.Helper()
	var f *faults.Front
	kind := v.over("")
	kind.Begin = func(settings source.Settings) source.Open {
		n := trusting(f.CA)
		n.Timeout, n.Patience = f.Patience/2, f.Patience
		return v.KindOver(n).Start(settings)
	}
	return sourcetest.FaultHarness{
		Kind: kind,
		Server: func(_ *testing.T, data []byte) http.Handler {
			server := v.store()
			server.Put(v.bucket, v.path, data)
			return server
		},
		Place: func(t *testing.T, front *faults.Front) sourcetest.Place {
			f = front
			return sourcetest.Place{Attrs: v.where, Settings: objecttest.Settings(kind, nil, v.who(t, f.URL, f.CA)),
				Secrets: []string{objecttest.Canary}}
		},
		SharedWire: v.Name != "s3",
	}
}

// checkCodes checks what users see of the errors of a store. Only the lack of an object is a missing state.
func (v vendor) checkCodes(t *testing.T) {
	says := sourcetest.OpenMistakes(t, v.Name+", codes")
	for _, answer := range v.codes {
		t.Run(answer, func(t *testing.T) {
			server := v.store()
			var status int
			var code string
			_, _ = fmt.Sscan(answer, &status, &code)
			server.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
				objecttest.Refuse(w, status, code, objecttest.Canary)
				return true
			}
			_, err := v.read(t, server.Serve(t), v.where)
			says.Error(t, answer, err)
			missing, isMissing := source.IsMissing(err)
			if want := answer == "404 NoSuchKey"; isMissing != want || isMissing && !missing.CredentialsSent {
				t.Errorf("got %v, missing: %t", err, isMissing)
			}
		})
	}
}

// checkPaths checks the key of a state in each of its workspaces.
func (v vendor) checkPaths(t *testing.T) {
	kind := v.over("")
	for _, c := range v.paths {
		a := v.where.With(v.prefix, c.prefix).With("key", c.key)
		src, err := objecttest.Open(kind, objecttest.Settings(kind, nil, v.who(t, "http://127.0.0.1:1", "")), a, c.workspace)
		name, bad := strings.CutPrefix(c.want, "error: ")
		switch {
		case bad && (err == nil || !strings.Contains(err.Error(), "."+name+":")):
			t.Errorf("%+v: got %v, %v", c, src, err)
		case !bad && (err != nil || !strings.HasPrefix(src.String(), fmt.Sprintf("object %q in the ", c.want))):
			t.Errorf("%+v: got %v, %v", c, src, err)
		}
	}
}

// versions checks that a version is read, and only that one.
func (v vendor) versions(t *testing.T) {
	server := v.store()
	if server.Put(v.bucket, v.path, []byte("before")) != "" {
		t.Error("there is a version, and none is kept")
	}
	server.Keep(v.bucket)
	first, second := server.Put(v.bucket, v.path, []byte("first")), server.Put(v.bucket, v.path, []byte("second"))
	endpoint := server.Serve(t)
	for version, want := range map[string]string{first: "first", second: "second", "": "second"} {
		snap, err := v.read(t, endpoint, v.where.With("version_id", version))
		if err != nil || string(snap.Data) != want || version != "" && snap.Revision != version {
			t.Errorf("%q: got %+v, %v", version, snap, err)
		}
		if got := server.Requests(); version != "" && (len(got) != 1 || got[0].Query != "versionId="+version+"&x-id=GetObject") {
			t.Errorf("%q: got requests %+v", version, got)
		}
	}
	deleted, says := server.Delete(v.bucket, v.path), sourcetest.OpenMistakes(t, v.Name+", versions")
	for version, name := range map[string]string{
		"":      "no object",
		deleted: "a mark",
	} {
		_, err := v.read(t, endpoint, v.where.With("version_id", version))
		if _, ok := source.IsMissing(err); !ok {
			t.Errorf("%q: got %v", version, err)
		}
		says.Error(t, name, err)
	}
	_, err := v.read(t, endpoint, v.where.With("version_id", "none"))
	says.Error(t, "none", err)
	server.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("X-Amz-Version-Id", "another")
		w.Header().Set("ETag", `"1"`)
		fmt.Fprint(w, "third")
		return true
	}
	_, err = v.read(t, endpoint, v.where.With("version_id", first))
	says.Error(t, "another", err)
}

// isolated checks that nothing of the process's environment steers a read where
// the environment is switched off, and that a named block gets none of it.
func (v vendor) isolated(t *testing.T) {
	if v.Name == "s3" {
		t.Skip("its package tests more than that")
	}
	server := v.store()
	server.Put(v.bucket, v.path, []byte("{}"))
	dead := "http://" + nettest.Dead(t)
	kind, who := v.over(""), v.who(t, server.Serve(t), "")
	variables := []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_PROFILE"}
	for _, a := range v.Credentials.Attrs {
		variables = append(variables, a.Env...)
	}
	for _, name := range append(variables, "TENCENTCLOUD_ASSUME_ROLE_ARN") {
		t.Setenv(name, "other-"+objecttest.Canary)
	}
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, dead)
	}
	for name, settings := range map[string]source.Settings{
		"":  objecttest.Settings(kind, nil, who),
		"a": objecttest.Settings(kind, os.LookupEnv, who.With("name", "a")),
	} {
		if _, err := objecttest.Read(t, kind, settings, v.where.With("credentials_name", name), "default"); err != nil {
			t.Error(err)
		}
		if got := server.Requests(); len(got) != 1 || strings.Contains(fmt.Sprint(got), objecttest.Canary) {
			t.Errorf("got requests %+v", got)
		}
	}
	if _, err := objecttest.Open(kind, objecttest.Settings(kind, nil), v.where, "default"); err == nil {
		t.Error("it was opened without a block")
	}
}

// policy checks that the policy of the documentation allows what a read does to
// the object of the example, and nothing else.
func (v vendor) policy(t *testing.T) {
	if v.action == "" {
		t.Skip("its package tests another form")
	}
	text, err := os.ReadFile("../../../examples/sources/" + v.Name + "/policy.json")
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Statement []struct{ Action, Resource []string }
	}
	if err := json.Unmarshal(text, &policy); err != nil {
		t.Fatal(err)
	}
	src, err := objecttest.Open(v.over(""), objecttest.Settings(v.over(""), nil, v.who(t, "", "")), v.example, "default")
	if err != nil {
		t.Fatal(err)
	}
	if all := policy.Statement; len(all) != 1 || !slices.Equal(all[0].Action, []string{v.action}) || len(all[0].Resource) != 1 {
		t.Fatalf("got %+v", all)
	}
	resource := policy.Statement[0].Resource[0]
	bucket, key, _ := strings.Cut(resource[strings.LastIndex(resource, ":")+1:], "/")
	if got, want := src.String(), fmt.Sprintf("object %q in the %s bucket %q", key, v.Words.Short, bucket); got != want {
		t.Errorf("the example reads %s, and the policy allows to read %s", got, want)
	}
}

// attributes checks that each attribute of the backend is one of the data
// source or of credentials, or is left out for a reason; and that there are no
// others but ours.
func (v vendor) attributes(t *testing.T) {
	if v.backend == nil {
		t.Skip("its package tests blocks as well")
	}
	t.Helper()
	for _, name := range v.backend {
		_, asked := v.Attr(name)
		_, secret := v.Credentials.Attr(name)
		if n := count(asked, secret, v.leftOut[name] != ""); n != 1 {
			t.Errorf("%s: it is in %d of the data source, credentials, and what is left out", name, n)
		}
	}
	for _, a := range append(slices.Clone(v.Attrs), v.Credentials.Attrs...) {
		if !slices.Contains(v.backend, a.Name) && !slices.Contains(v.ours, a.Name) {
			t.Errorf("the backend has no %s", a.Name)
		}
		if a.Doc == "" || !strings.HasSuffix(a.Doc, ".") {
			t.Errorf("%s: the documentation is not made of sentences", a.Name)
		}
	}
	for name := range v.leftOut {
		if !slices.Contains(v.backend, name) {
			t.Errorf("%s is left out, and the backend has none", name)
		}
	}
}

func count(all ...bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}
