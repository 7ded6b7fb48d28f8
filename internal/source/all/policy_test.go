package all

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/gcs"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/s3"
)

// policy is what the rules of DESIGN.md about credentials and the environment
// need to know of one kind. What is asked is the host, "" in the place of which
// a test puts its own. Secrets of the environment have ENV in them, those of a
// block OWN, and so has what arrives of them.
type policy struct {
	where func(host string) attrs             // of the data source
	here  func(host string) attrs             // a block for the host, without a secret
	own   func(host string) attrs             // one with a secret
	part  func(host string) attrs             // one with a part of an identity, which no variable completes; nil if there is none
	home  func(host string) map[string]string // the variables that name the server; nil if there are none
	env   func(host string) map[string]string // an identity of the environment

	byURL    bool                // blocks have a url: without one, a secret of the environment needs a home
	vendor   string              // the domain that is asked if nobody says a place; "" if there is none
	bound    bool                // the environment's secrets are meant for the server that home names
	guards   []map[string]string // variables that each let a stranger read what is sent
	refused  []attrs             // of a data source: each would lead to a host of its own
	noSecret bool                // there are no credentials at all
}

func fixed(a attrs) func(string) attrs { return func(string) attrs { return a } }

func with(a attrs, more ...string) attrs {
	out := attrs{}
	for name, v := range a {
		out[name] = v
	}
	for i := 0; i+1 < len(more); i += 2 {
		out[more[i]] = text(more[i+1])
	}
	return out
}

// adding is block with further arguments.
func adding(block func(string) attrs, more ...string) func(string) attrs {
	return func(host string) attrs { return with(block(host), more...) }
}

func at(name, before, after string) func(string) attrs {
	return func(host string) attrs { return attrs{name: text(before + host + after)} }
}

func named(variable, before, after string) func(string) map[string]string {
	return func(host string) map[string]string { return map[string]string{variable: before + host + after} }
}

func vars(pairs ...string) func(string) map[string]string {
	return func(string) map[string]string {
		env := map[string]string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			env[pairs[i]] = pairs[i+1]
		}
		return env
	}
}

const userCredentials = `{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r"}`

func policies(t *testing.T) map[string]policy {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("OWN"), 0o600); err != nil {
		t.Fatal(err)
	}
	consul, cluster := at("address", "https://", ""), at("host", "https://", "")
	blob, bucket := at("blob_endpoint", "https://", "/acmestates"), at("endpoint", "https://", "")
	google := at("storage_custom_endpoint", "https://", "/storage/v1/")
	web, repository := at("url", "https://", "/acme/"), at("url", "https://", "/acme/")
	database := func(more string) func(string) attrs {
		return func(host string) attrs {
			name, port, _ := strings.Cut(host, ":")
			return attrs{"conn_str": text("host=" + name + " port=" + port + " user=me" + more)}
		}
	}
	s3 := func(host string) attrs {
		none := cty.NullVal(cty.String)
		return attrs{"endpoints": cty.ObjectVal(attrs{"s3": text("https://" + host), "sts": none, "iam": none}), "use_path_style": cty.True}
	}
	all := backends()
	return map[string]policy{
		"azurerm": {
			where: fixed(all["azurerm"].place), vendor: "blob.core.windows.net", here: blob, own: adding(blob, "sas_token", "sv=1&sig=OWN"),
			part: adding(blob, "tenant_id", "t", "client_id", "c", "client_secret", "OWN"),
			env:  vars("ARM_SAS_TOKEN", "sv=1&sig=ENV"),
			refused: []attrs{
				with(all["azurerm"].place, "storage_account_name", "evil.example"), with(all["azurerm"].place, "storage_account_name", "evil/"),
			},
		},
		"consul": {
			where: fixed(attrs{"path": text("network")}), here: consul, own: adding(consul, "access_token", "OWN"),
			part: adding(consul, "token_file", file), home: named("CONSUL_HTTP_ADDR", "https://", ""), bound: true,
			env: vars("CONSUL_HTTP_TOKEN", "ENV"), guards: []map[string]string{{"CONSUL_HTTP_SSL_VERIFY": "false"}},
		},
		"cos": {
			where: fixed(all["cos"].place), vendor: "myqcloud.com", here: bucket, own: adding(bucket, "secret_id", "OWN", "secret_key", "OWN"),
			part: adding(bucket, "profile", "none", "shared_credentials_dir", t.TempDir()), home: named("TENCENTCLOUD_ENDPOINT", "https://", ""),
			env:     vars("TENCENTCLOUD_SECRET_ID", "ENV", "TENCENTCLOUD_SECRET_KEY", "ENV"),
			refused: []attrs{with(all["cos"].place, "region", "evil.example"), with(all["cos"].place, "bucket", "evil.example/")},
		},
		"file": {where: fixed(all["file"].place), noSecret: true},
		"gcs": {
			where: fixed(all["gcs"].place), vendor: "googleapis.com", here: google, own: adding(google, "access_token", "OWN"),
			part: adding(google, "credentials", userCredentials), home: named("GOOGLE_STORAGE_CUSTOM_ENDPOINT", "https://", "/storage/v1/"),
			env: vars("GOOGLE_OAUTH_ACCESS_TOKEN", "ENV"), refused: []attrs{with(all["gcs"].place, "bucket", "evil.example/")},
		},
		"git": {
			where: func(host string) attrs {
				return attrs{"repository": text("https://" + host + "/acme/states.git"), "path": text("a.tfstate")}
			},
			here: repository, own: adding(repository, "username", "me", "password", "OWN", "ca_file", internet.caFile),
			home: named("TF_BACKEND_GIT_GIT_REPOSITORY", "https://", "/acme/states.git"), byURL: true, bound: true,
			env:    vars("GIT_USERNAME", "me", "GIT_PASSWORD", "ENV"),
			guards: []map[string]string{{"GIT_SSL_NO_VERIFY": "1"}, {"GIT_SSL_CAINFO": stranger.caFile}},
		},
		"http": {
			where: at("address", "https://", "/acme/state"), here: web, own: adding(web, "username", "me", "password", "OWN"),
			part: adding(web, "bearer_token", "OWN"), home: named("TF_HTTP_ADDRESS", "https://", "/acme/state"), byURL: true, bound: true,
			env:    vars("TF_HTTP_USERNAME", "me", "TF_HTTP_PASSWORD", "ENV"),
			guards: []map[string]string{{"TF_HTTP_SKIP_CERT_VERIFICATION": "true"}, {"TF_HTTP_CLIENT_CA_CERTIFICATE_PEM": stranger.authority()}},
		},
		"kubernetes": {
			where: fixed(attrs{"secret_suffix": text("network")}), here: cluster, own: adding(cluster, "token", "OWN"),
			part: adding(cluster, "username", "me", "password", "OWN"), home: named("KUBE_HOST", "https://", ""), bound: true,
			env: vars("KUBE_TOKEN", "ENV"),
			guards: []map[string]string{
				{"KUBE_INSECURE": "true"}, {"KUBE_CLUSTER_CA_CERT_DATA": stranger.authority()},
				{"KUBE_PROXY_URL": stranger.url, "KUBE_INSECURE": "true"},
			},
		},
		"oci": {
			where: fixed(all["oci"].place), vendor: "oraclecloud.com", here: bucket, own: adding(bucket, "access_key", "OWN", "secret_key", "OWN"),
			env:     vars("OCI_S3_ACCESS_KEY", "ENV", "OCI_S3_SECRET_KEY", "ENV"),
			refused: []attrs{with(all["oci"].place, "region", "evil.example"), with(all["oci"].place, "namespace", "evil.example")},
		},
		"oss": {
			where: fixed(all["oss"].place), vendor: "aliyuncs.com", here: bucket, own: adding(bucket, "access_key", "OWN", "secret_key", "OWN"),
			part: adding(bucket, "profile", "none", "shared_credentials_file", file), home: named("ALICLOUD_OSS_ENDPOINT", "https://", ""),
			env:     vars("ALICLOUD_ACCESS_KEY", "ENV", "ALICLOUD_SECRET_KEY", "ENV"),
			refused: []attrs{with(all["oss"].place, "region", "evil.example"), with(all["oss"].place, "bucket", "evil.example/")},
		},
		"pg": {
			where: fixed(attrs{}), here: database(""), own: database(" password=OWN"), bound: true,
			home: func(host string) map[string]string {
				name, port, _ := strings.Cut(host, ":")
				return map[string]string{"PGHOST": name, "PGPORT": port}
			},
			env: vars("PGUSER", "me", "PGPASSWORD", "ENV"), guards: []map[string]string{{"PGSSLMODE": "disable"}},
		},
		"remote": {
			where: func(host string) attrs {
				return with(all["remote"].place, "hostname", host)
			},
			here: at("url", "https://", "/"), own: adding(at("url", "https://", "/"), "token", "OWN"), byURL: true,
			env: func(host string) map[string]string {
				return map[string]string{"TF_TOKEN_" + strings.ReplaceAll(host, ".", "_"): "ENV"}
			},
			refused: []attrs{with(all["remote"].place, "hostname", "evil.example/"), with(all["remote"].place, "organization", "../evil")},
		},
		"s3": {
			where: fixed(all["s3"].place), vendor: "amazonaws.com", here: s3, own: adding(s3, "access_key", "OWN", "secret_key", "OWN"),
			guards: []map[string]string{{"AWS_CA_BUNDLE": stranger.caFile}},
			home:   named("AWS_ENDPOINT_URL_S3", "https://", ""), env: vars("AWS_ACCESS_KEY_ID", "ENV", "AWS_SECRET_ACCESS_KEY", "ENV"),
			refused: []attrs{with(all["s3"].place, "region", "evil.example"), with(all["s3"].place, "bucket", "arn:aws:s3::evil.example:x")},
		},
	}
}

// arena is where the requests of one kind arrive.
type arena struct {
	policy
	kind   source.Kind
	asked  string   // the host that a read is about
	direct string   // the same, without a proxy
	others []string // hosts that are not the same
	watch  *log
	store  *store.Kind // in place of the source, which has place and credentials in one block
	hasty  bool        // whether a read ends when a host is not found

	thief   string // the host that a stranger answers for
	stolen  *log
	forward map[string]string // variables that lead to the stranger
	proxies map[string]string // and to the others
}

func arenaOf(k source.Kind, p policy) arena {
	if k.Name == "pg" {
		return arena{
			policy: p, kind: k, asked: database.host, direct: database.host, watch: &database.log,
			thief: plainDatabase.host, stolen: &plainDatabase.log,
			others: []string{strings.Replace(database.host, "127.0.0.1", "localhost", 1), strings.Replace(database.host, ":", ".evil.io:", 1)},
		}
	}
	const host = "state.example.com"
	return arena{
		policy: p, kind: k, asked: host, direct: internet.host, watch: &internet.log, thief: host, stolen: &stranger.log,
		others:  []string{"other.example.com", host + ".evil.io", host + ":8443"},
		forward: map[string]string{"HTTPS_PROXY": stranger.url}, proxies: map[string]string{"HTTPS_PROXY": internet.url},
	}
}

// read makes a source and fetches, and returns the warnings. What clients look
// up by themselves is the same as what they are given.
func (a arena) read(t *testing.T, host string, env map[string]string, blocks ...attrs) ([]source.Warning, error) {
	t.Helper()
	return a.readAt(t, a.where(host), env, true, blocks...)
}

func (a arena) readAt(t *testing.T, where attrs, env map[string]string, environment bool, blocks ...attrs) ([]source.Warning, error) {
	t.Helper()
	a.watch.take()
	a.stolen.take()
	for name, value := range env {
		t.Setenv(name, value)
	}
	if a.store != nil {
		return nil, a.readStore(t, where, env, environment, blocks)
	}
	s := source.Settings{}
	if environment {
		s.LookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
		s.Credentials.Env = s.LookupEnv
	}
	s.Credentials.Table = a.kind.Credentials
	for i, b := range blocks {
		address := fmt.Sprintf("credentials.%s[%d]", a.kind.Name, i)
		s.Credentials.Entries = append(s.Credentials.Entries, unstable.NewEntry(address, a.kind.Credentials, b))
	}
	values, err := unstable.NewEntry("data.x", a.kind.Table, where).Decode(a.kind.Table, nil)
	if err != nil {
		t.Fatal(err)
	}
	src, err := a.kind.Start(s)(source.Request{Values: values, Workspace: a.workspace(), MaxSize: 1 << 20})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{ // another try would fail as well
		DNSDone: func(info httptrace.DNSDoneInfo) {
			if info.Err != nil && a.hasty {
				cancel()
			}
		},
		ConnectDone: func(_, address string, err error) {
			if err != nil && address == "127.0.0.1:8500" { // Consul's own
				cancel()
			}
		},
	})
	snapshot, err := src.Fetch(ctx)
	if err != nil {
		return nil, err
	}
	return snapshot.Warnings, nil
}

// readStore reads, and then locks, as a program does that keeps its state there.
func (a arena) readStore(t *testing.T, where attrs, env map[string]string, environment bool, blocks []attrs) error {
	t.Helper()
	block := where
	for _, b := range blocks {
		block = maps.Clone(block)
		maps.Copy(block, b)
	}
	var lookup attr.LookupEnv
	if environment {
		lookup = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	}
	values, err := unstable.NewEntry("backend."+a.store.Name, a.store.Table, block).Decode(a.store.Table, lookup)
	if err != nil {
		return err
	}
	opened, err := a.store.Open(store.Settings{Values: values, Limit: 1 << 20})
	if err != nil {
		return err
	}
	state, err := opened.State(values.String(a.store.Named))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, _, err = state.Read(ctx)
	return errors.Join(err, state.Lock(ctx, store.Lock{ID: "1"}))
}

func (a arena) workspace() string {
	if a.kind.Name == "remote" {
		return "prod"
	}
	return "default"
}

// choosing is the data source that chooses the block called name.
func (a arena) choosing(name string) attrs {
	choice := "credentials_name"
	if a.kind.Name == "kubernetes" {
		choice = "cluster"
	}
	return with(a.where(a.asked), choice, name)
}

func join(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// everything is all that variables can say of secrets, and the rest of env.
func (a arena) everything() map[string]string {
	env := map[string]string{}
	for _, x := range slices.Concat(a.kind.Credentials.Attrs, a.kind.Credentials.Variables) {
		for _, name := range x.Env {
			if x.Secrecy != attr.Public {
				env[name] = "ENV"
			}
		}
	}
	return join(env, a.env(a.asked), a.proxies)
}

// arrives looks at what a read with the error err has sent.
func (a arena) arrives(t *testing.T, err error, secret string, never ...string) {
	t.Helper()
	got := a.watch.take()
	if secret != "" && !strings.Contains(got, secret) {
		t.Errorf("%s did not arrive (%v):\n%s", secret, err, got)
	}
	for _, n := range never {
		if strings.Contains(got, n) {
			t.Errorf("%s arrived (%v):\n%s", n, err, got)
		}
	}
}

// rules are those of DESIGN.md, "Trust", about credentials and the environment.
func rules() map[string]func(*testing.T, arena) {
	return map[string]func(*testing.T, arena){
		"the environment is off": func(t *testing.T, a arena) {
			_, err := a.readAt(t, a.where(a.direct), a.env(a.direct), false, a.here(a.direct))
			a.arrives(t, err, "", "ENV")
			_, err = a.readAt(t, a.where(a.direct), a.env(a.direct), false, a.own(a.direct))
			a.arrives(t, err, "OWN", "ENV")
		},
		"the environment fills a block": func(t *testing.T, a arena) {
			_, err := a.read(t, a.asked, join(a.env(a.asked), a.proxies), a.here(a.asked))
			a.arrives(t, err, "ENV")
		},
		"at home, no block is needed": func(t *testing.T, a arena) {
			if a.home == nil {
				t.Skip("no variable names a server")
			}
			_, err := a.read(t, a.asked, join(a.env(a.asked), a.home(a.asked), a.proxies))
			a.arrives(t, err, "ENV")
		},
		"a block with a name is not filled": func(t *testing.T, a arena) {
			if a.kind.Credentials.Attrs[0].Name != "name" {
				t.Skip("blocks have no names")
			}
			_, err := a.readAt(t, a.choosing("a"), a.everything(), true, with(a.own(a.asked), "name", "a"))
			a.arrives(t, err, "OWN", "ENV")
		},
		"away, the environment has no say": func(t *testing.T, a arena) {
			if !a.bound {
				t.Skip("the variables are meant for no single server")
			}
			for _, other := range a.others {
				env := join(a.everything(), a.home(other))
				_, err := a.read(t, a.asked, env, a.here(a.asked))
				a.arrives(t, err, "", "ENV")
				if a.byURL {
					_, err := a.read(t, a.asked, env)
					a.arrives(t, err, "", "ENV")
				}
			}
		},
		"a place of the environment takes no secret of a block": func(t *testing.T, a arena) {
			if a.home == nil {
				t.Skip("no variable names a server")
			}
			for _, other := range a.others {
				_, err := a.read(t, a.asked, join(a.env(a.asked), a.home(other), a.proxies), a.own(a.asked))
				a.arrives(t, err, "OWN", "ENV", " "+other+" ")
			}
		},
		"a secret without a home is an error": func(t *testing.T, a arena) {
			if !a.byURL || a.home == nil {
				t.Skip("secrets of the environment have a home")
			}
			_, err := a.read(t, a.asked, join(a.env(a.asked), a.proxies))
			a.arrives(t, err, "", a.asked)
			for _, part := range []string{"PASSWORD is set", "for https://" + a.asked, "credentials." + a.kind.Name, "url = "} {
				if err == nil || !strings.Contains(testkit.WithFacts(err), part) {
					t.Errorf("got %v, want %q in it", err, part)
				}
			}
		},
		"a secret without a place goes to the vendor, or nowhere": func(t *testing.T, a arena) {
			if a.kind.Name == "pg" {
				t.Skip("the document that holds the secret says the place")
			}
			homeless := a.own(a.asked)
			for name := range a.here(a.asked) {
				delete(homeless, name)
			}
			try := func(secret string, env map[string]string, blocks ...attrs) {
				_, err := a.read(t, a.asked, join(env, a.proxies), blocks...)
				got := a.watch.take()
				if a.vendor == "" && (err == nil || got != "") || a.vendor != "" && !strings.Contains(got, secret) {
					t.Errorf("%s: got %v, and what arrived is\n%s", secret, err, got)
				}
				for _, host := range regexp.MustCompile(`(?m)^asked (\S+) for$`).FindAllStringSubmatch(got, -1) {
					if !strings.HasSuffix(host[1], "."+a.vendor) {
						t.Errorf("%s: %s was asked", secret, host[1])
					}
				}
			}
			try("OWN", nil, homeless)
			if !a.byURL { // see above
				try("ENV", a.env(a.asked))
			}
		},
		"no identity is mixed": func(t *testing.T, a arena) {
			if a.part == nil {
				t.Skip("an identity has one part")
			}
			_, err := a.read(t, a.asked, join(a.env(a.asked), a.proxies), a.part(a.asked))
			a.arrives(t, err, "", "ENV")
		},
		"a block goes before the environment": func(t *testing.T, a arena) {
			_, err := a.read(t, a.asked, join(a.env(a.asked), a.proxies), a.own(a.asked))
			a.arrives(t, err, "OWN", "ENV")
		},
		"a guard of the environment lets nobody see a secret of a block": func(t *testing.T, a arena) {
			if a.guards == nil {
				t.Skip("no variable changes how secrets are protected")
			}
			for _, guard := range a.guards {
				_, err := a.read(t, a.thief, join(guard, a.forward), a.own(a.thief))
				if got := a.stolen.take(); err == nil || strings.Contains(got, "OWN") {
					t.Errorf("with %q, a stranger got (%v)\n%s", guard, err, got)
				}
				if !a.bound || a.byURL || a.kind.Name == "pg" {
					continue // the block says the place, or the document that holds the secret does
				}
				homeless := a.own(a.thief)
				for name := range a.here(a.thief) {
					delete(homeless, name)
				}
				_, err = a.read(t, a.thief, join(guard, a.forward, a.home(a.thief)), homeless)
				if got := a.stolen.take(); err == nil || strings.Contains(got, "OWN") {
					t.Errorf("with %q and a place of the environment, a stranger got (%v)\n%s", guard, err, got)
				}
			}
		},
		"away, a guard of the environment has no say": func(t *testing.T, a arena) {
			if a.guards == nil || !a.bound {
				t.Skip("no variable changes how secrets are protected, or the variables are meant for no single server")
			}
			if a.kind.Name == "git" {
				t.Skip("git's own variables are for all that git reads, and go wherever no secret of a block does")
			}
			for _, guard := range a.guards {
				_, err := a.read(t, a.thief, join(guard, a.forward, a.home(a.others[0])), a.here(a.thief))
				if got := a.stolen.take(); err == nil || got != "" {
					t.Errorf("with %q, a stranger answered (%v)\n%s", guard, err, got)
				}
			}
		},
		"a guard of the environment is for its own secrets": func(t *testing.T, a arena) {
			if a.guards == nil {
				t.Skip("no variable changes how secrets are protected")
			}
			for _, guard := range a.guards {
				warnings, err := a.read(t, a.thief, join(guard, a.forward, a.env(a.thief), a.home(a.thief)))
				if got := a.stolen.take(); !strings.Contains(got, "ENV") {
					t.Errorf("%q has no effect: %v", guard, err)
				}
				for name := range guard {
					isSwitch := strings.Contains(name, "INSECURE") || strings.Contains(name, "VERIF")
					if isSwitch && err == nil && (len(warnings) == 0 || warnings[0].Title != netfail.NotVerified) {
						t.Errorf("%s: got the warnings %q, %v", name, warnings, err)
					}
				}
			}
		},
		"a block is for no look-alike": func(t *testing.T, a arena) {
			if !a.byURL {
				t.Skip("blocks name their server")
			}
			for _, other := range append(a.others, "evil"+a.asked, a.asked+".", "sub."+a.asked) {
				_, err := a.read(t, other, a.proxies, a.own(a.asked))
				a.arrives(t, err, "", "OWN")
			}
		},
		"a data source leads to no other host": func(t *testing.T, a arena) {
			if a.refused == nil {
				t.Skip("it names no part of a host")
			}
			for _, where := range a.refused {
				_, err := unstable.NewEntry("data.x", a.kind.Table, where).Decode(a.kind.Table, nil)
				if err == nil {
					_, err = a.readAt(t, where, a.proxies, true, a.own(a.asked))
					a.arrives(t, err, "", "OWN")
				}
				if _, ok := errors.AsType[*attr.Error](err); !ok {
					t.Errorf("got %v, want an error about an argument", err)
				}
			}
		},
	}
}

// Every kind is in the table, with its secrets, and every rule holds for it.
//
// Promise: Where secrets go (14 rules for every source; every variable for every key provider and method)
// Promise: use_environment = false
func TestPolicy(t *testing.T) {
	all := policies(t)
	for _, k := range Kinds() {
		p, ok := all[k.Name]
		delete(all, k.Name)
		switch {
		case !ok:
			t.Errorf("%s is not in the table", k.Name)
		case p.noSecret != (len(k.Credentials.Attrs) == 0):
			t.Errorf("%s has credentials: %t", k.Name, len(k.Credentials.Attrs) > 0)
		case !p.noSecret:
			a := arenaOf(k, p)
			a.checkGuards(t)
			for name, rule := range rules() {
				t.Run(k.Name+"/"+name, func(t *testing.T) { rule(t, a) })
			}
			for _, kind := range []store.Kind{azurerm.Kind(), gcs.Kind(), s3.Kind()} {
				if kind.Name == k.Name {
					testStore(t, a, kind)
				}
			}
		}
	}
	for name := range all {
		t.Errorf("there is no source %s", name)
	}
}

// testStore runs the rules over a store whose block has what a data source and a block of credentials
// say.
func testStore(t *testing.T, a arena, kind store.Kind) {
	t.Helper()
	a.store = &kind
	for name, rule := range rules() {
		if name != "a block with a name is not filled" { // there is one block
			t.Run(kind.Name+" as a store/"+name, func(t *testing.T) { rule(t, a) })
		}
	}
}

// checkGuards makes sure that the table has each variable by which a stranger
// could read what is sent.
func (a arena) checkGuards(t *testing.T) {
	var listed []string
	for _, guard := range a.guards {
		listed = append(listed, slices.Collect(maps.Keys(guard))...)
	}
	for _, x := range a.kind.Credentials.Attrs {
		isSwitch := x.Type == cty.Bool && x.HarmlessIf != nil && x.Group == "" // true or false protects more
		if isSwitch && len(x.Env) > 0 && !slices.Contains(listed, x.Env[0]) {
			t.Errorf("%s: %s is not in the table", a.kind.Name, x.Env[0])
		}
	}
}
