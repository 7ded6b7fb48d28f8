package gcs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

type attrs = map[string]cty.Value

func text(s string) cty.Value { return cty.StringVal(s) }

// environment is one that a test makes up.
type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	v, ok := e[name]
	return v, ok
}

// settingsOf is what the provider block says, with the environment switched
// off.
func settingsOf(blocks ...attrs) source.Settings {
	s := source.Settings{Credentials: source.Credentials{Table: credentials()}}
	for _, b := range blocks {
		s.Credentials.Entries = append(s.Credentials.Entries, unstable.NewEntry("credentials[0].gcs[0]", credentials(), b))
	}
	return s
}

func with(env environment, blocks ...attrs) source.Settings {
	s := settingsOf(blocks...)
	s.LookupEnv, s.Credentials.Env = env.lookup, env.lookup
	return s
}

// block reads at endpoint with the token of gcstest.
func block(endpoint string) attrs {
	return attrs{"access_token": text(gcstest.Token), "storage_custom_endpoint": text(endpoint)}
}

func and(a attrs, kv ...string) attrs {
	out := attrs{}
	for name, v := range a {
		out[name] = v
	}
	for i := 0; i < len(kv); i += 2 {
		out[kv[i]] = text(kv[i+1])
	}
	return out
}

// place is the state of the default workspace in the folder net.
func place(kv ...string) attrs {
	return and(attrs{"bucket": text("states"), "prefix": text("net")}, kv...)
}

const object = "net/default.tfstate"

// quick makes a run that waits for nothing.
func quick(s source.Settings) *run {
	r := newRun(s.For(Kind()))
	r.patience = web.Patience{Timeout: time.Minute, Tries: 4, WaitMax: time.Millisecond}
	return r
}

func quickKind() source.Kind {
	kind := Kind()
	kind.Begin = func(s source.Settings) source.Open { return quick(s).open }
	return kind
}

func request(t *testing.T, a attrs) source.Request {
	t.Helper()
	req, err := decoded(a)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func decoded(a attrs) (source.Request, error) {
	v, err := unstable.NewEntry("data.statecrypt_remote_state.test.gcs", table(), a).Decode(table(), nil)
	return source.Request{Values: v, Workspace: "default", MaxSize: 1 << 20}, err
}

func open(t *testing.T, s source.Settings, a attrs) source.Source {
	t.Helper()
	src, err := quick(s).open(request(t, a))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

const stateJSON = `{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"x","outputs":{}}`

// prod is a service that holds the state, and its endpoint.
func prod(t *testing.T) (*gcstest.Service, string) {
	t.Helper()
	s := gcstest.New("states")
	s.Put("states", object, gcstest.Object{Data: []byte(stateJSON)})
	return s, s.Start(t)
}

const readOnce = "GET /storage/v1/b/states/o/net%2Fdefault.tfstate?alt=media"

// leastPrivilege are the permissions that the documentation asks for.
func leastPrivilege(t *testing.T) []string {
	t.Helper()
	role, err := os.ReadFile("../../../examples/sources/gcs/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(role)) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			out = append(out, p)
		}
	}
	if !slices.Equal(out, []string{"storage.objects.get"}) {
		t.Fatalf("the role has %q", out)
	}
	return out
}

func TestSource(t *testing.T) {
	t.Parallel()
	here := func(s *gcstest.Service, a attrs) sourcetest.Place {
		return sourcetest.Place{
			Attrs: place(), Settings: settingsOf(a), Secrets: []string{gcstest.Token},
			Changed: func() error {
				for _, r := range s.Requests() {
					if strings.Replace(r, "/v2/", "/v1/", 1) != readOnce { // the wrong path is v2
						return fmt.Errorf("it was asked for %s", r)
					}
				}
				return nil
			},
		}
	}
	bad := func(change func(*gcstest.Service, attrs)) func(*testing.T) sourcetest.Place {
		return func(t *testing.T) sourcetest.Place {
			s, endpoint := prod(t)
			a := block(endpoint)
			change(s, a)
			return here(s, a)
		}
	}
	sourcetest.Run(t, sourcetest.Harness{
		EmptyIsNone: true,
		Kind:        quickKind(),
		Place: func(t *testing.T, data []byte) sourcetest.Place {
			s := gcstest.New("states")
			if data != nil {
				s.Permissions = leastPrivilege(t)
				s.Put("states", object, gcstest.Object{Data: data})
			}
			return here(s, block(s.Start(t)))
		},
		Bad: map[string]func(*testing.T) sourcetest.Place{
			"wrong token":    bad(func(_ *gcstest.Service, a attrs) { a["access_token"] = text("wrong-" + gcstest.Token) }),
			"no permission":  bad(func(s *gcstest.Service, _ attrs) { s.Permissions = []string{"storage.objects.list"} }),
			"nobody listens": bad(func(_ *gcstest.Service, a attrs) { a["storage_custom_endpoint"] = text("http://" + nettest.Dead(t)) }),
			"wrong path": bad(func(_ *gcstest.Service, a attrs) {
				a["storage_custom_endpoint"] = text(strings.Replace(a["storage_custom_endpoint"].AsString(), "v1", "v2", 1))
			}),
		},
		Stuck: func(t *testing.T) sourcetest.Place {
			return sourcetest.Place{Attrs: place(), Settings: settingsOf(block("http://" + nettest.Mute(t)))}
		},
	})
}

// The objects are those of the backend: see stateFile there.
func TestPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ prefix, workspace, want, path string }{
		{"", "default", "default.tfstate", ""},
		{"", "", "default.tfstate", ""},
		{"", "staging", "staging.tfstate", ""},
		{"net", "default", "net/default.tfstate", "/storage/v1/b/states/o/net%2Fdefault.tfstate"},
		{"net/", "staging", "net/staging.tfstate", ""},
		{"/net", "default", "net/default.tfstate", ""},
		{"//net//eu/", "default", "net/eu/default.tfstate", ""},
		{"a b/ü", "x.y", "a b/ü/x.y.tfstate", "/storage/v1/b/states/o/a%20b%2F%C3%BC%2Fx.y.tfstate"},
		{"net/./eu", "default", "net/eu/default.tfstate", ""},
		{"net/..", "default", "default.tfstate", ""},
		{"../up", "default", "../up/default.tfstate", "/storage/v1/b/states/o/..%2Fup%2Fdefault.tfstate"},
		{"q?a=b#c%2F", "default", "q?a=b#c%2F/default.tfstate", "/storage/v1/b/states/o/q%3Fa=b%23c%252F%2Fdefault.tfstate"},
		{".", "..", "...tfstate", ""},
	} {
		if got := ObjectName(c.prefix, c.workspace); got != c.want {
			t.Errorf("%q, %q: got %q, want %q", c.prefix, c.workspace, got, c.want)
		}
		s := gcstest.New("states")
		s.Put("states", c.want, gcstest.Object{Data: []byte(stateJSON)})
		req := request(t, attrs{"bucket": text("states"), "prefix": text(c.prefix)})
		req.Workspace = c.workspace
		src, err := quick(settingsOf(block(s.Start(t)))).open(req)
		if err != nil {
			t.Fatal(err)
		}
		sourcetest.Fetch(t, src)
		if got := s.Requests(); len(got) != 1 || c.path != "" && got[0] != "GET "+c.path+"?alt=media" {
			t.Errorf("%q, %q: asked for %q", c.prefix, c.workspace, got)
		}
		if want := "gs://states/" + c.want; src.String() != want {
			t.Errorf("got %s, want %s", src, want)
		}
	}
}

// Every attribute of the backend is accepted, or there is a reason.
func TestAttributesOfTheBackend(t *testing.T) {
	t.Parallel()
	const where, who = "data source", "credentials"
	for name, at := range map[string]string{
		"bucket": where, "prefix": where,
		"credentials": who, "access_token": who, "impersonate_service_account": who, "impersonate_service_account_delegates": who,
		"encryption_key": who, "storage_custom_endpoint": who, "universe_domain": who,
		"kms_encryption_key": "only writing names the key: Cloud Storage itself knows which one it needs to read",
	} {
		_, inTable := table().Attr(name)
		_, inCredentials := credentials().Attr(name)
		if inTable != (at == where) || inCredentials != (at == who) {
			t.Errorf("%s: in the data source: %t, in credentials: %t, want %s", name, inTable, inCredentials, at)
		}
	}
	for _, a := range credentials().Attrs {
		if secret := slices.Contains([]string{"credentials", "access_token", "encryption_key"}, a.Name); secret != a.Secrecy.IsHidden() {
			t.Errorf("%s: sensitive is %t", a.Name, a.Secrecy.IsHidden())
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	const secret = "secret-canary"
	says := sourcetest.OpenMistakes(t, "gcs, settings")
	for name, c := range map[string]struct {
		place attrs
		block attrs
	}{
		"no bucket":          {place("bucket", ""), nil},
		"path as bucket":     {place("bucket", "a/b"), nil},
		"control character":  {place("prefix", "a\nb"), nil},
		"long prefix":        {place("prefix", strings.Repeat("a", 1024)), nil},
		"generation":         {place("generation", "latest"), nil},
		"generation 0":       {place("generation", "0"), nil},
		"negative":           {place("generation", "-1"), nil},
		"large generation":   {place("generation", strings.Repeat("9", 20)), nil},
		"unknown name":       {place("credentials_name", "a"), nil},
		"endpoint":           {place(), attrs{"storage_custom_endpoint": text("ftp://a.test/")}},
		"secret in endpoint": {place(), attrs{"storage_custom_endpoint": text("https://me:" + secret + "@a.test/")}},
		"query in endpoint":  {place(), attrs{"storage_custom_endpoint": text("https://a.test/?key=" + secret)}},
		"dots in endpoint":   {place(), attrs{"storage_custom_endpoint": text("https://a.test/a/../b/")}},
		"host with path":     {place(), attrs{"storage_custom_endpoint": text("a.test/x?" + secret)}},
		"universe":           {place(), attrs{"universe_domain": text("a.test/" + secret)}},
		"token":              {place(), attrs{"access_token": text(secret + "\r\nX: y")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := decoded(c.place)
			if err == nil {
				_, err = quick(settingsOf(c.block)).open(req)
			}
			says.Error(t, name, err)
		})
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ endpoint, universe, want string }{
		{"", "", "https://storage.googleapis.com/storage/v1/b/states/o/net%2Fdefault.tfstate?alt=media"},
		{"", "apis-tpczero.goog", "https://storage.apis-tpczero.goog/storage/v1/b/states/o/net%2Fdefault.tfstate?alt=media"},
		{"https://storage-x.p.googleapis.com/storage/v1/b", "",
			"https://storage-x.p.googleapis.com/storage/v1/b/states/o/net%2Fdefault.tfstate?alt=media"},
		{"https://a.test:8443/storage/v1/", "", "https://a.test:8443/storage/v1/b/states/o/net%2Fdefault.tfstate?alt=media"},
		{"https://a.test", "", "https://a.test/b/states/o/net%2Fdefault.tfstate?alt=media"},
		{"a.test:8443", "", "https://a.test:8443/storage/v1/b/states/o/net%2Fdefault.tfstate?alt=media"},
		{"http://127.0.0.1:1/storage/v1/", "", "http://127.0.0.1:1/storage/v1/b/states/o/net%2Fdefault.tfstate?alt=media"},
	} {
		src := open(t, settingsOf(attrs{"storage_custom_endpoint": text(c.endpoint), "universe_domain": text(c.universe)}), place())
		if got := src.(*location).address.String(); got != c.want {
			t.Errorf("%s, %s: got %s, want %s", c.endpoint, c.universe, got, c.want)
		}
	}
}

func TestGenerations(t *testing.T) {
	t.Parallel()
	s, endpoint := prod(t)
	first := sourcetest.Fetch(t, open(t, settingsOf(block(endpoint)), place()))
	second := s.Put("states", object, gcstest.Object{Data: []byte("newer")})
	for name, c := range map[string]struct{ generation, data, revision string }{
		"live":  {"", "newer", second},
		"first": {first.Revision, stateJSON, first.Revision},
	} {
		a := place()
		if c.generation != "" {
			a = place("generation", c.generation)
		}
		src := open(t, settingsOf(block(endpoint)), a)
		if got := sourcetest.Fetch(t, src); string(got.Data) != c.data || got.Revision != c.revision {
			t.Errorf("%s: got %s at %s", name, got.Data, got.Revision)
		}
		if want := "gs://states/" + object + "#" + c.generation; c.generation != "" && src.String() != want {
			t.Errorf("got %s, want %s", src, want)
		}
	}
	// A pin that leads nowhere does not say that there is no state.
	_, err := open(t, settingsOf(block(endpoint)), place("generation", "1")).Fetch(t.Context())
	sourcetest.OpenMistakes(t, "gcs, generations").Error(t, "none", err)
	if _, missing := source.IsMissing(err); missing {
		t.Errorf("got %v", err)
	}
	// Numbers in a configuration become strings.
	values := attrs{"bucket": text("states"), "generation": cty.NumberIntVal(1712345678901234567)}
	v, err := unstable.NewEntry("x", table(), values).Decode(table(), nil)
	if err != nil || v.String("generation") != "1712345678901234567" {
		t.Errorf("got %q, %v", v.String("generation"), err)
	}
}

// A prefix that is the whole name of an object leads to nothing, and that is said.
func TestWholeNameAsPrefix(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "No such object: states/net/default.tfstate/default.tfstate")
	}))
	defer server.Close()
	_, err := open(t, settingsOf(block(server.URL)), place("prefix", "net/default.tfstate")).Fetch(t.Context())
	sourcetest.OpenMistakes(t, "gcs, names").Error(t, "a whole name as prefix", err)
}

// What is there, what is not, what is forbidden and what is broken are told
// apart. The answers are those of Cloud Storage: see readComplaint.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const json = "application/json; charset=UTF-8"
	document := func(code int, reason, message string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"errors":[{"message":%q,"domain":"global","reason":%q}]}}`, code, message, message,
			reason)
	}
	says := sourcetest.OpenMistakes(t, "gcs, answers")
	for name, c := range map[string]struct {
		code          int
		contentType   string
		body          string
		missing       bool
		tries         int
		header, value string
	}{
		"no object": {code: 404, contentType: "text/html; charset=UTF-8", body: "No such object: states/net/default.tfstate",
			missing: true},
		"no object, JSON": {code: 404, contentType: json, body: document(404, "notFound", "No such object: states/net/default.tfstate"),
			missing: true},
		"another object":  {code: 404, body: "No such object: states/net/default.tfstatex"},
		"another reason":  {code: 404, contentType: json, body: document(404, "other", "No such object: states/net/default.tfstate")},
		"no bucket":       {code: 404, body: "The specified bucket does not exist."},
		"no bucket, JSON": {code: 404, contentType: json, body: document(404, "notFound", "The specified bucket does not exist.")},
		"front end":       {code: 404, body: "<p><b>404.</b> <ins>That’s an error.</ins> canary"},
		"Not Found":       {code: 404, body: "Not Found\n"},
		"empty 404":       {code: 404},
		"hostile 404":     {code: 404, body: strings.Repeat("canary", 1<<18)},
		"token":           {code: 401, contentType: json, body: document(401, "authError", "canary")},
		"denied": {code: 403, body: "canary@p.iam.gserviceaccount.com does not have storage.objects.get access to the Google " +
			"Cloud Storage object. Permission 'storage.objects.get' denied on resource (or it may not exist)."},
		"denied, JSON": {code: 403, contentType: json, body: document(403, "forbidden", "canary")},
		"KMS": {code: 403, body: "Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service account " +
			"has been authorized to use this key. canary"},
		"KMS, disabled": {code: 400, contentType: json, body: document(400, "cloudKmsDisabledKey", "canary")},
		"perimeter": {code: 403, contentType: json, body: document(403, "forbidden",
			"Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: canary")},
		"requester pays": {code: 400, body: "Bucket is a requester pays bucket but no user project provided."},
		"billing":        {code: 403, contentType: json, body: document(403, "accountDisabled", "canary")},
		"customer key":   {code: 400, contentType: json, body: document(400, "resourceIsEncryptedWithCustomerEncryptionKey", "canary")},
		"gone":           {code: 410, body: "canary"},
		"no content":     {code: 204},
		"part":           {code: 206, body: "canary"},
		"status":         {code: 499, body: "canary"},
		"redirect":       {code: 307, header: "Location", value: "/storage/v1/b/other"},
		"timeout":        {code: 408, body: "canary", tries: 5},
		"too many": {code: 429, body: "canary",
			tries: 5},
		"unavailable":        {code: 503, body: "canary", tries: 5},
		"another service":    {code: 200, body: "canary"},
		"hostile generation": {code: 200, header: "X-Goog-Generation", value: "1; canary", body: "canary"},
		"hostile checksum":   {code: 200, header: "X-Goog-Hash", value: "crc32c=canary", body: "{}", tries: 5},
		"damaged":            {code: 200, header: "X-Goog-Hash", value: "md5=x, crc32c=AAAAAA==", body: "{}", tries: 5},
		"another encoding":   {code: 200, header: "Content-Encoding", value: "br", body: "canary"},
		"empty":              {code: 200, missing: true},
		"empty, packed":      {code: 200, header: "Content-Encoding", value: "gzip", missing: true},
		"not packed":         {code: 200, header: "Content-Encoding", value: "gzip", body: "canary canary canary"},
		"cut":                {code: 200, header: "Content-Length", value: "1000", body: "canary", tries: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				tries++
				if c.code == 200 && name != "another service" && name != "hostile generation" {
					w.Header().Set("X-Goog-Generation", "1")
				}
				if c.contentType != "" {
					w.Header().Set("Content-Type", c.contentType)
				}
				if c.header != "" {
					w.Header().Set(c.header, c.value)
				}
				w.WriteHeader(c.code)
				fmt.Fprint(w, c.body)
			}))
			defer server.Close()
			_, err := open(t, settingsOf(block(server.URL)), place()).Fetch(t.Context())
			says.Error(t, name, err)
			missing, isMissing := source.IsMissing(err)
			if isMissing != c.missing {
				t.Errorf("got %v, missing: %t", err, isMissing)
			}
			if isMissing && !missing.CredentialsSent && !missing.Listed {
				t.Error("no credentials were sent")
			}
			if tries != max(1, c.tries) {
				t.Errorf("it was asked %d times", tries)
			}
		})
	}
}

// What is said of the encoding of an object is taken as everywhere else.
func TestEncodings(t *testing.T) {
	t.Parallel()
	for _, e := range nettest.Encodings() {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X-Goog-Generation"], w.Header()["Content-Encoding"] = []string{"1"}, e.Names
			_, _ = w.Write(e.Body([]byte("{}")))
		}))
		snapshot, err := open(t, settingsOf(block(server.URL)), place()).Fetch(t.Context())
		if snapshot == nil {
			snapshot = &source.Snapshot{}
		}
		e.Check(t, []byte("{}"), snapshot.Data, err)
		server.Close()
	}
}

// An object that is stored with gzip is unpacked, as the backend's client does,
// and not beyond the limit.
func TestPackedObject(t *testing.T) {
	t.Parallel()
	s := gcstest.New("states")
	settings := settingsOf(block(s.Start(t)))
	s.Put("states", object, gcstest.Object{Data: nettest.Gzip([]byte(stateJSON)), Encoding: "gzip"})
	if got := sourcetest.Fetch(t, open(t, settings, place())); string(got.Data) != stateJSON {
		t.Errorf("got %s", got.Data)
	}
	s.Put("states", object, gcstest.Object{Data: nettest.Gzip(make([]byte, 1<<20+1)), Encoding: "gzip"})
	if _, err := open(t, settings, place()).Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), meter.TooLarge(1<<20).Error()) {
		t.Errorf("got %v", err)
	}
}

// Servers between may pack what is stored as it is. The checksum is that of
// what is stored.
func TestPackedOnTheWay(t *testing.T) {
	t.Parallel()
	s, _ := prod(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.Header().Del("Content-Length")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(nettest.Gzip(answer.Body.Bytes()))
	}))
	defer server.Close()
	if got := sourcetest.Fetch(t, open(t, settingsOf(block(server.URL+"/storage/v1/")), place())); string(got.Data) != stateJSON {
		t.Errorf("got %s", got.Data)
	}
}

func TestEncryptionKey(t *testing.T) {
	t.Parallel()
	raw := sha256.Sum256([]byte("a key"))
	key := base64.StdEncoding.EncodeToString(raw[:])
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, endpoint := prod(t)
	s.Put("states", "sealed/default.tfstate", gcstest.Object{Data: []byte(stateJSON), Key: raw[:]})
	says := sourcetest.OpenMistakes(t, "gcs, encryption_key")
	for name, c := range map[string]struct {
		prefix, key string
		refused     bool
	}{
		"base64":             {"sealed", key, false},
		"file":               {"sealed", path, false},
		"plain object":       {"net", key, true},
		"no key":             {"sealed", "", true},
		"another key":        {"sealed", other, true},
		"short":              {"sealed", key[:40], true},
		"not base64":         {"sealed", "!" + key, true},
		"folder":             {"sealed", filepath.Dir(path), true},
		"file without a key": {"sealed", "kind.go", true},
	} {
		a := block(endpoint)
		if c.key != "" {
			a["encryption_key"] = text(c.key)
		}
		snap, err := open(t, settingsOf(a), place("prefix", c.prefix)).Fetch(t.Context())
		switch {
		case c.refused:
			if says.Error(t, name, err); c.key != "" && err != nil && strings.Contains(err.Error(), c.key) {
				t.Errorf("%s: got %v", name, err)
			}
		case err != nil || string(snap.Data) != stateJSON:
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whoever may do nothing but storage.objects.get reads, with one request.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	s, endpoint := prod(t)
	s.Change(func(s *gcstest.Service) { s.Permissions = leastPrivilege(t) })
	sourcetest.Fetch(t, open(t, settingsOf(block(endpoint)), place()))
	if got := s.Requests(); !slices.Equal(got, []string{readOnce}) {
		t.Errorf("asked for %q", got)
	}
	// Without the right to list, Cloud Storage does not tell what is missing.
	_, err := open(t, settingsOf(block(endpoint)), place("prefix", "none")).Fetch(t.Context())
	sourcetest.OpenMistakes(t, "gcs, least privilege").Error(t, "no object", err)
	if _, missing := source.IsMissing(err); missing {
		t.Errorf("got %v", err)
	}
}

// A wait between two tries ends with the run.
func TestCancelledWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(503)
		time.AfterFunc(100*time.Millisecond, cancel)
	}))
	defer server.Close()
	r := quick(settingsOf(block(server.URL)))
	r.patience.WaitMax = time.Hour
	src, err := r.open(request(t, place()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fetch(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func list(elements ...string) cty.Value {
	var out []cty.Value
	for _, e := range elements {
		out = append(out, text(e))
	}
	return cty.ListVal(out)
}
