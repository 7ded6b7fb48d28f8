package pg

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// settled is what a data source without arguments comes to.
func settled(t *testing.T, s source.Settings, name string) (*connection, error) {
	t.Helper()
	a := attrs{}
	if name != "" {
		a["credentials_name"] = text(name)
	}
	src, err := newRun(s.For(Kind())).open(request(t, a, nil))
	if err != nil {
		return nil, err
	}
	all, err := src.(*location).target.resolve()
	if err != nil {
		return nil, err
	}
	return newConnection(world.Here(), all, 1<<20)
}

func summary(c *connection) string {
	mode := "plain"
	if tlsConfig := c.config.TLSConfig; tlsConfig != nil {
		mode = "unverified"
		switch {
		case !tlsConfig.InsecureSkipVerify:
			mode = "verified for " + tlsConfig.ServerName
		case tlsConfig.VerifyPeerCertificate != nil:
			mode = "verified"
		}
		if tlsConfig.MinVersion < tls.VersionTLS12 {
			mode += ", old"
		}
		if len(tlsConfig.Certificates) > 0 {
			mode += ", certificate"
		}
	}
	return fmt.Sprintf("%s:%s@%s:%d/%s, %s", c.config.User, c.config.Password, c.config.Host, c.config.Port, c.config.Database, mode)
}

// ambientEnvironment are variables that would each lead elsewhere.
func ambientEnvironment(t *testing.T) variables {
	t.Helper()
	home := t.TempDir()
	file(t, filepath.Join(home, ".pgpass"), "*:*:*:*:from-pgpass\n")
	file(t, filepath.Join(home, ".pg_service.conf"), "[other]\nhost=nowhere\n# a comment = 1\n[main]\nhost=service.test\nport = "+
		"5499\nuser=server-user\npassword=from-service\n[third]\nhost=nowhere")
	return variables{
		"HOME": home, "PGHOST": "env.test", "PGPORT": "5433", "PGUSER": "env-user", "PGPASSWORD": "env-password", "PGDATABASE": "env-database",
		"PGSSLMODE": "verify-full", "PGAPPNAME": "env-app", "PGOPTIONS": "-c search_path=evil", "PGTZ": "UTC", "PGCONNECT_TIMEOUT": "7",
		"PGTARGETSESSIONATTRS": "primary", "PGREQUIREAUTH": "none",
	}
}

// Which server is asked, as which user, and what the environment has a say in. The process
// has the same variables: the driver looks into it by itself.
func TestWhoIsAsked(t *testing.T) {
	ambient := ambientEnvironment(t)
	for name, value := range ambient {
		t.Setenv(name, value)
	}
	without := func(names ...string) variables {
		e := maps.Clone(ambient)
		for _, n := range names {
			delete(e, n)
		}
		return e
	}
	connStr := func(s string) attrs { return attrs{"conn_str": text(s)} }
	named := func(name, s string) attrs { return attrs{"name": text(name), "conn_str": text(s)} }
	const full = "postgres://me:secret@own.test/states"
	for name, c := range map[string]struct {
		settings source.Settings
		name     string
		want     string
	}{
		"all of it":                  {settingsOf(connStr(full)), "", "me:secret@own.test:5432/states, unverified"},
		"nothing of the environment": {settingsOf(connStr("postgres://me@own.test")), "", "me:from-pgpass@own.test:5432/me, unverified"},
		"no host":                    {settingsOf(connStr("user=me")), "", "me:from-pgpass@localhost:5432/me, unverified"},
		"named":                      {with(ambient, named("a", "postgres://me@own.test")), "a", "me:@own.test:5432/me, unverified"},
		"named, beside another": {with(ambient, connStr(full), named("b", "postgres://b@b.test?sslmode=disable")), "b",
			"b:@b.test:5432/b, plain"},
		"filled in": {with(ambient, connStr("postgres://env.test?sslmode=disable")), "",
			"env-user:env-password@env.test:5433/env-database, plain"},
		"filled in, another host": {with(ambient, connStr("postgres://me@own.test?sslmode=disable")), "",
			"me:from-pgpass@own.test:5432/env-database, plain"},
		"filled in, any host": {with(without("PGHOST"), connStr("postgres://own.test?sslmode=disable")), "",
			"env-user:env-password@own.test:5433/env-database, plain"},
		"the block wins":        {with(ambient, connStr(full+"?sslmode=require")), "", "me:secret@own.test:5432/states, unverified"},
		"the environment alone": {with(ambient), "", "env-user:env-password@env.test:5433/env-database, verified for env.test"},
		"PG_CONN_STR":           {with(variables{"PG_CONN_STR": full}), "", "me:secret@own.test:5432/states, unverified"},
		"PG_CONN_STR and named": {with(variables{"PG_CONN_STR": full}, named("a", "postgres://other@block.test")), "a",
			"other:@block.test:5432/other, unverified"},
		"~/.pgpass":        {with(without("PGPASSWORD")), "", "env-user:from-pgpass@env.test:5433/env-database, verified for env.test"},
		"~/.pgpass, named": {with(ambient, named("a", "postgres://me@own.test")), "a", "me:@own.test:5432/me, unverified"},
		"passfile": {settingsOf(connStr("host=own.test user=me passfile=" + filepath.Join(ambient["HOME"], ".pgpass"))), "",
			"me:from-pgpass@own.test:5432/me, unverified"},
		"service": {with(without("PGSSLMODE"), connStr("service=main")), "",
			"server-user:from-service@service.test:5499/env-database, unverified"},
		"service and the rest": {with(without("PGSSLMODE", "PGDATABASE"), connStr("service=main user=me")), "",
			"me:from-service@service.test:5499/me, unverified"},
		"service, of the home": {settingsOf(connStr("service=main")), "",
			"server-user:from-service@service.test:5499/server-user, unverified"},
		"service, named": {settingsOf(connStr("service=main servicefile=" + filepath.Join(ambient["HOME"], ".pg_service.conf"))), "",
			"server-user:from-service@service.test:5499/server-user, unverified"},
		"hostaddr": {settingsOf(connStr("hostaddr=192.0.2.1 user=me")), "", "me:from-pgpass@192.0.2.1:5432/me, unverified"},
		"socket": {settingsOf(connStr("host=/run/postgresql user=me sslmode=verify-full")), "",
			"me:from-pgpass@/run/postgresql:5432/me, plain"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := settled(t, c.settings, c.name)
			if err != nil {
				t.Fatal(err)
			}
			if summary(got) != c.want {
				t.Errorf("got %s, want %s", summary(got), c.want)
			}
			if c.settings.LookupEnv == nil || c.name != "" {
				params := maps.Clone(got.config.RuntimeParams)
				if want := map[string]string{"application_name": "terraform-provider-statecrypt", "client_encoding": "UTF8"}; !maps.Equal(params,
					want) {
					t.Errorf("got parameters %q", params)
				}
				if got.config.ConnectTimeout != 30*time.Second || got.config.ValidateConnect != nil || got.config.RequireAuth == "none" {
					t.Error("the environment had a say")
				}
			}
		})
	}
}

func TestNoOneIsAsked(t *testing.T) {
	ambient := ambientEnvironment(t)
	t.Setenv("HOME", ambient["HOME"])
	service := filepath.Join(ambient["HOME"], ".pg_service.conf")
	connStr := func(s string) attrs { return attrs{"conn_str": text(s)} }
	says := sourcetest.OpenMistakes(t, "pg, settings", "secret-a")
	t.Chdir(t.TempDir())
	none := filepath.Join(t.TempDir(), "none")
	for name, c := range map[string]struct {
		settings source.Settings
		name     string
	}{
		"environment switched off":   {settingsOf(), ""},
		"empty environment":          {with(variables{}), ""},
		"named, without conn_str":    {with(ambient, attrs{"name": text("a")}), "a"},
		"every block has a name":     {with(ambient, attrs{"name": text("a"), "conn_str": text("host=a")}), ""},
		"no such name":               {with(ambient, connStr("host=a")), "b"},
		"twice the same name":        {settingsOf(connStr("host=a"), connStr("host=b")), ""},
		"no user":                    {settingsOf(connStr("host=a password=secret-a")), ""},
		"not a connection string":    {settingsOf(connStr("secret-a")), ""},
		"prefer":                     {settingsOf(connStr("host=a user=me password=secret-a sslmode=prefer")), ""},
		"allow, of the environment":  {with(variables{"PGHOST": "a", "PGSSLMODE": "allow"}), ""},
		"another sslmode":            {settingsOf(connStr("host=a user=me sslmode=secret-a")), ""},
		"sslinline":                  {settingsOf(connStr("host=a user=me sslinline=true sslkey=secret-a")), ""},
		"sslcrl":                     {with(variables{"PGHOST": "a", "PGSSLCRL": "secret-a"}), ""},
		"encoding":                   {settingsOf(connStr("host=a user=me client_encoding=LATIN1")), ""},
		"two addresses":              {settingsOf(connStr("host=a,b hostaddr=192.0.2.1,192.0.2.2 user=me")), ""},
		"port":                       {settingsOf(connStr("host=a user=me port=secret-a")), ""},
		"no such service":            {with(ambient, connStr("service=nothing")), ""},
		"no such service file":       {settingsOf(connStr("service=main servicefile=" + none + " password=secret-a")), ""},
		"service without a file":     {settingsOf(attrs{"name": text("a"), "conn_str": text("service=main password=secret-a")}), "a"},
		"service of the home":        {settingsOf(connStr("service=main password=secret-a")), ""},
		"service of a variable":      {with(variables{"PGSERVICEFILE": service}, connStr("service=main password=secret-a")), ""},
		"no such root":               {settingsOf(connStr("host=a user=me password=secret-a sslrootcert=" + none)), ""},
		"a key in place of its path": {settingsOf(connStr("host=a user=me sslcert=" + none + " sslkey='-----BEGIN secret-a'")), ""},
		"require_auth":               {settingsOf(connStr("host=a user=me sslmode=disable require_auth=secret-a")), ""},
		"half a certificate":         {settingsOf(connStr("host=a user=me password=secret-a sslkey=" + none)), ""},
		"unknown name":               {settingsOf(attrs{"name": cty.UnknownVal(cty.String), "conn_str": text("host=a")}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settled(t, c.settings, c.name)
			says.Error(t, name, err)
		})
	}
}

// The authority of the home is that of the user's own password, and not of the code's.
//
// Promise: Where secrets go
func TestAuthorityOfTheHome(t *testing.T) {
	ambient := ambientEnvironment(t)
	home := ambient["HOME"]
	t.Setenv("HOME", home)
	if err := os.Mkdir(filepath.Join(home, ".postgresql"), 0o700); err != nil {
		t.Fatal(err)
	}
	own := file(t, filepath.Join(home, ".postgresql", "root.crt"), nettest.NewAuthority().PEM)
	password := variables{"PGPASSWORD": "env-password", "HOME": home}
	const refused = "an error"
	says := sourcetest.OpenMistakes(t, "pg, the authority of the home")
	for connStr, c := range map[string]struct {
		env  variables
		want string
	}{
		"host=own.test user=me password=secret-a sslmode=verify-full":                          {want: refused},
		"host=own.test user=me password=secret-a sslmode=require":                              {want: refused},
		"host=own.test user=me password=secret-a":                                              {want: refused},
		"host=own.test user=me password=secret-a sslmode=verify-ca sslrootcert=" + own:         {want: "verified"},
		"host=own.test user=me password=secret-a sslmode=verify-full sslrootcert=system":       {want: "verified for own.test"},
		"host=own.test user=me password=secret-a sslmode=disable":                              {want: "plain"},
		"host=/run/postgresql user=me password=secret-a":                                       {want: "plain"},
		"host=own.test user=me sslmode=verify-full passfile=" + filepath.Join(home, ".pgpass"): {want: "verified for own.test"},
		"host=own.test user=me sslmode=verify-full":                                            {want: "verified for own.test"},
		"host=own.test user=me sslmode=verify-ca":                                              {env: password, want: "verified"},
		"service=main": {want: "verified"},
	} {
		settings := map[string]source.Settings{"on": with(variables{"HOME": home}, attrs{"conn_str": text(connStr)})}
		if c.env != nil {
			settings["on"] = with(c.env, attrs{"conn_str": text(connStr)})
		} else {
			settings["off"] = settingsOf(attrs{"conn_str": text(connStr)})
		}
		for name, s := range settings {
			got, err := settled(t, s, "")
			switch {
			case c.want == refused:
				says.Error(t, connStr+", "+name, err)
			case err != nil || (!strings.HasSuffix(summary(got), ", "+c.want)):
				t.Errorf("%s, %s: got %s, want %s", connStr, name, summary(got), c.want)
			}
		}
	}
}

// A block with a name has no authority of the home, neither of ours nor of the driver.
func TestAuthorityBesideANamedBlock(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.Mkdir(filepath.Join(home, ".postgresql"), 0o700); err != nil {
		t.Fatal(err)
	}
	file(t, filepath.Join(home, ".postgresql", "root.crt"), nettest.NewAuthority().PEM)
	block := attrs{"name": text("a"), "conn_str": text("host=own.test user=me password=secret-a sslmode=verify-full")}
	for name, s := range map[string]source.Settings{"on": with(variables{"HOME": home}, block), "off": settingsOf(block)} {
		got, err := settled(t, s, "a")
		if err != nil || got.config.TLSConfig.RootCAs != nil {
			t.Errorf("%s: got an authority, or %v", name, err)
		}
	}
}

// Where nobody names a host, the error says which was tried.
func TestDefaultHost(t *testing.T) {
	t.Parallel()
	src, err := newRun(with(variables{"PGPORT": nettest.Port(t), "PGUSER": "u", "PGPASSWORD": "p"}).For(Kind())).open(request(t, attrs{}, nil))
	if err != nil {
		t.Fatal(err)
	}
	_, err = src.Fetch(t.Context())
	sourcetest.OpenMistakes(t, "pg, no host").Error(t, "so localhost is tried", err)
}

// A service of the process's environment that cannot be read is the one thing
// that the driver cannot be kept from looking for.
func TestServiceOfTheProcess(t *testing.T) {
	t.Setenv("PGSERVICE", "main")
	t.Setenv("PGSERVICEFILE", filepath.Join(t.TempDir(), "none"))
	s := settingsOf(attrs{"conn_str": text("postgres://me:secret@own.test")})
	_, err := settled(t, s, "")
	sourcetest.OpenMistakes(t, "pg, PGSERVICE").Error(t, "that cannot be read", err)
	t.Setenv("PGSERVICEFILE", file(t, filepath.Join(t.TempDir(), "s"), "[main]\nhost=evil.test\npassword=evil\nsslmode=disable\noptions=-c\n"))
	got, err := settled(t, s, "")
	if err != nil || summary(got) != "me:secret@own.test:5432/me, unverified" || len(got.config.RuntimeParams) != 2 {
		t.Errorf("got %s, %v", summary(got), err)
	}
}

// Promise: Verified connections
func TestWarnings(t *testing.T) {
	ca, texts := caFile(t, postgres(t)), map[string]string{}
	for connStr, want := range map[string]string{
		"host=db.example.test user=me":                                   netfail.NotVerified,
		"host=db.example.test user=me sslmode=disable":                   netfail.NotEncrypted,
		"host=localhost,db.example.test user=me sslmode=disable":         netfail.NotEncrypted,
		"hostaddr=192.0.2.1 host=localhost user=me sslmode=disable":      netfail.NotEncrypted,
		"host=localhost.example.test user=me sslmode=disable":            netfail.NotEncrypted,
		"host=db.example.test user=me sslmode=verify-full":               "",
		"host=db.example.test user=me sslmode=verify-ca":                 "",
		"host=db.example.test user=me sslmode=require sslrootcert=" + ca: "",
		"host=localhost user=me sslmode=disable":                         "",
		"host=127.0.0.1 user=me":                                         "",
		"host=::1 user=me":                                               "",
		"host=/run/postgresql user=me":                                   "",
	} {
		c, err := settled(t, settingsOf(attrs{"conn_str": text(connStr)}), "")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range c.warnings() {
			got += w.Title
			texts[w.Title] = w.Text
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", connStr, got, want)
		}
		refuses := strings.HasSuffix(c.config.RequireAuth, "!password")
		if refuses != (want != "") { // to whom nobody knows
			t.Errorf("%s: the password in plaintext is refused: %t", connStr, refuses)
		}
	}
	says := sourcetest.OpenMistakes(t, "pg, warnings")
	for title, text := range texts {
		says.Check(t, title, text)
	}
}

// A warning reaches whoever reads.
func TestFetchWarns(t *testing.T) {
	f := newFake(t, nettest.NewAuthority().Issue(nil).Pair(), "{}")
	connStr := "host=db.example.test user=me password=" + readerPassword + " port=" + f.port()
	r := newRun(settingsOf(attrs{"conn_str": text(connStr)}).For(Kind()))
	r.lookup = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
	src, err := r.open(request(t, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	snap, err := src.Fetch(t.Context())
	if err != nil || len(snap.Warnings) != 1 || strings.Contains(snap.Warnings[0].Text, readerPassword) {
		t.Errorf("got %v, %v", snap, err)
	}
}

// Everything that is sent, but for the login: one SELECT in a transaction that
// cannot write.
//
// Promise: Reading changes nothing
func TestOnlyReads(t *testing.T) {
	f := newFake(t, nettest.NewAuthority().Issue(nil).Pair(), "{}")
	r := request(t, attrs{"schema_name": text(`a"b`), "table_name": text("C d")}, nil)
	r.Workspace = `'; DROP TABLE x; --`
	src, err := Kind().Start(settingsOf(attrs{"conn_str": text("host=127.0.0.1 user=me dbname=x port=" + f.port())}))(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := `row "'; DROP TABLE x; --" of "a\"b"."C d" in PostgreSQL`; src.String() != want {
		t.Errorf("got %s, want %s", src, want)
	}
	if _, err := src.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	parse := "Parse SELECT octet_length(data), CASE WHEN octet_length(data) <= $2 THEN data END FROM \"a\"\"b\".\"C d\" WHERE name = $1 " +
		"LIMIT 2"
	var got []string
	for _, m := range f.said() {
		if verb, _, _ := strings.Cut(m, " "); verb == "Parse" || verb == "Bind" || verb == "StartupMessage" || verb == "Query" {
			got = append(got, m)
		}
	}
	want := []string{
		"StartupMessage map[application_name:terraform-provider-statecrypt client_encoding:UTF8 database:x user:me]",
		"Parse BEGIN TRANSACTION READ ONLY", "Bind []", parse, `Bind ["'; DROP TABLE x; --" "1048576"]`, "Parse COMMIT", "Bind []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
