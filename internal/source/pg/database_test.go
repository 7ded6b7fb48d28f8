package pg

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

func fetchAs(t *testing.T, connStr string, a attrs, workspace string) (*source.Snapshot, error) {
	t.Helper()
	r := request(t, a, nil)
	r.Workspace = workspace
	src, err := Kind().Start(settingsOf(attrs{"conn_str": text(connStr)}))(r)
	if err != nil {
		t.Fatal(err)
	}
	return src.Fetch(t.Context())
}

// Missing, denied and broken, as the real server tells them.
func TestAnswers(t *testing.T) {
	x := newTable(t)
	x.put(t, "default", []byte(`{"default": true}`))
	x.put(t, "Prod é'\"; --", []byte(`{"odd": true}`))
	x.put(t, "", []byte(`{"nameless": true}`))
	x.Exec(t, "postgres", fmt.Sprintf(`
		CREATE TABLE %[1]q.nulls (name text, data text); INSERT INTO %[1]q.nulls VALUES ('default', NULL);
		CREATE TABLE %[1]q.numbers (name text, data integer); INSERT INTO %[1]q.numbers VALUES ('default', 1);
		CREATE TABLE %[1]q.bytes (name text, data bytea); INSERT INTO %[1]q.bytes VALUES ('default', 'x');
		CREATE TABLE %[1]q.names (name integer, data text);
		CREATE TABLE %[1]q.varchars (name varchar(90), data varchar(90)); INSERT INTO %[1]q.varchars VALUES ('default', '{}');
		CREATE TABLE %[1]q.others (title text, data text);
		CREATE TABLE %[1]q.twice (name text, data text); INSERT INTO %[1]q.twice VALUES ('default', 'a'), ('default', 'b');
		CREATE VIEW %[1]q.view AS SELECT name, data FROM %[1]q.states;
		CREATE SEQUENCE %[1]q.counter; GRANT USAGE ON SEQUENCE %[1]q.counter TO reader;
		CREATE VIEW %[1]q.writes AS SELECT name, data || nextval('%[1]q.counter') AS data FROM %[1]q.states;
		CREATE TABLE %[1]q.secured (name text, data text); INSERT INTO %[1]q.secured VALUES ('default', '{}'), ('network', '{}');
		ALTER TABLE %[1]q.secured ENABLE ROW LEVEL SECURITY;
		CREATE POLICY network ON %[1]q.secured FOR SELECT TO reader USING (name = 'network');
		GRANT SELECT ON ALL TABLES IN SCHEMA %[1]q TO reader;
		REVOKE ALL ON %[1]q.states FROM reader; GRANT SELECT (name, data) ON %[1]q.states TO reader;
		CREATE TABLE %[1]q.half (name text, data text); GRANT SELECT (name) ON %[1]q.half TO reader;
		CREATE TABLE %[1]q.denied (name text, data text)`, x.schema))
	reader := x.reader(t)
	nobody := x.URL("stranger", readerPassword, "postgres", "sslmode=disable")
	says := sourcetest.OpenMistakes(t, "pg, a database", "c4n4ry")
	for name, c := range map[string]struct {
		connStr, table, workspace string
		data                      string
		missing, fails            bool
		host                      bool // the error is that of a host, whose end depends on the machine
	}{
		"default":                {data: `{"default": true}`},
		"odd workspace":          {workspace: "Prod é'\"; --", data: `{"odd": true}`},
		"no such workspace":      {workspace: "nothing", missing: true},
		"other letters":          {workspace: "DEFAULT", missing: true},
		"null":                   {table: "nulls", data: ""},
		"varchar":                {table: "varchars", data: "{}"},
		"view":                   {table: "view", data: `{"default": true}`},
		"view, missing":          {table: "view", workspace: "nothing", missing: true},
		"row-level security":     {table: "secured", workspace: "network", data: "{}"},
		"hidden row":             {table: "secured", missing: true},
		"no such table":          {table: "nothing", fails: true},
		"no such table, quoted":  {table: `no"thing`, fails: true},
		"denied":                 {table: "denied", fails: true},
		"half a right":           {table: "half", fails: true},
		"no right to the schema": {connStr: nobody, fails: true},
		"numbers":                {table: "numbers", fails: true},
		"bytes":                  {table: "bytes", fails: true},
		"name is a number":       {table: "names", fails: true},
		"other columns":          {table: "others", fails: true},
		"two rows":               {table: "twice", fails: true},
		"a view that writes":     {table: "writes", fails: true},
		"wrong password": {connStr: x.URL("reader", "c4n4ry", "postgres", "sslmode=disable"),
			fails: true},
		"no password": {connStr: x.URL("reader", "", "postgres", "sslmode=disable"),
			fails: true},
		"not without TLS": {connStr: x.URL("tlsuser", readerPassword, "postgres", "sslmode=disable"),
			fails: true},
		"no such database": {connStr: x.URL("reader", readerPassword, "c4n4ry", "sslmode=disable"),
			fails: true},
		"no free connection": {connStr: x.URL("busy", readerPassword, "postgres", "sslmode=disable"),
			fails: true},
		"unknown parameter":  {connStr: reader + "&c4n4ry=1", fails: true},
		"statement_timeout":  {connStr: reader + "&statement_timeout=1ms&options=-c%20c4n4ry.x=1", table: "slow", fails: true},
		"a host":             {connStr: "host=db.invalid user=me password=c4n4ry", host: true},
		"not a host":         {connStr: "host=c4n4ry..invalid user=me", host: true},
		"client certificate": {connStr: x.URL("certuser", "", "postgres", "sslmode=require"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.table == "slow" {
				x.Exec(t, "postgres", fmt.Sprintf("CREATE VIEW %[1]q.slow AS SELECT name, data FROM %[1]q.states, pg_sleep(10); GRANT SELECT ON "+
					"%[1]q.slow TO reader", x.schema))
			}
			connStr, a := reader, attrs{"schema_name": text(x.schema)}
			if c.connStr != "" {
				connStr = c.connStr
			}
			if c.table != "" {
				a["table_name"] = text(c.table)
			}
			snap, err := fetchAs(t, connStr, a, c.workspace)
			missing, isMissing := source.IsMissing(err)
			switch {
			case c.missing || c.fails || c.host:
				if err == nil {
					t.Fatalf("got %d bytes", len(snap.Data))
				}
				if isMissing != c.missing || isMissing && !missing.CredentialsSent {
					t.Errorf("got %v, missing: %t", err, isMissing)
				}
				if !isMissing {
					checkError(t, err)
				}
				if !c.host {
					says.Error(t, name, errors.New(strings.ReplaceAll(err.Error(), x.schema, "SCHEMA")))
				} else if !strings.Contains(err.Error(), netfail.NotFound) || strings.Contains(err.Error(), "c4n4ry") {
					t.Errorf("got %v", err)
				}
			case err != nil || string(snap.Data) != c.data || snap.Data == nil || snap.Revision != "" || snap.Lock != nil:
				t.Errorf("got %v, %v, want %s", snap, err, c.data)
			}
		})
	}
	if got := x.Value(t, "postgres", fmt.Sprintf("SELECT is_called::text FROM %q.counter", x.schema)); got != "false" {
		t.Error("reading a view has written")
	}
}

// The ways to log in, with TLS and without.
func TestLogins(t *testing.T) {
	x := newTable(t)
	x.put(t, "default", []byte("{}"))
	x.Exec(t, "postgres", fmt.Sprintf("GRANT USAGE ON SCHEMA %[1]q TO md5user, clearuser, certuser; GRANT SELECT ON %[1]q.states TO "+
		"md5user, clearuser, certuser", x.schema))
	dir, client := t.TempDir(), x.Authority.Issue(nettest.OfClient("certuser"))
	certificate := file(t, filepath.Join(dir, "client.crt"), client.Chain)
	key := file(t, filepath.Join(dir, "client.key"), client.Key)
	der, _ := pem.Decode([]byte(client.Key))
	//nolint:staticcheck // this is what libpq's sslpassword is for
	locked, err := x509.EncryptPEMBlock(rand.Reader, der.Type, der.Bytes, []byte("c4n4ry"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	lockedKey := file(t, filepath.Join(dir, "locked.key"), string(pem.EncodeToMemory(locked)))
	ca := caFile(t, x.Server)
	withLockedKey := x.URL("certuser", "", "postgres", "sslmode=verify-full&sslrootcert="+ca+"&sslcert="+certificate+"&sslkey="+lockedKey+
		"&sslpassword=")
	_, err = fetchAs(t, withLockedKey+"not-c4n4ry", attrs{"schema_name": text(x.schema)}, "default")
	sourcetest.OpenMistakes(t, "pg, sslpassword", "c4n4ry").Error(t, "another", err)
	for name, connStr := range map[string]string{
		"SCRAM":                  x.URL("reader", readerPassword, "postgres", "sslmode=verify-full&channel_binding=require&sslrootcert="+ca),
		"SCRAM, verify-ca":       x.URL("reader", readerPassword, "postgres", "sslmode=verify-ca&sslrootcert="+ca),
		"SCRAM, require":         x.URL("reader", readerPassword, "postgres", "sslmode=require"),
		"SCRAM, by default":      x.URL("reader", readerPassword, "postgres", ""),
		"SCRAM, in plaintext":    x.URL("reader", readerPassword, "postgres", "sslmode=disable"),
		"MD5":                    x.URL("md5user", readerPassword, "postgres", "sslmode=require"),
		"the password, with TLS": x.URL("clearuser", readerPassword, "postgres", "sslmode=require"),
		"the password, local":    x.URL("clearuser", readerPassword, "postgres", "sslmode=disable"),
		"certificate":            x.URL("certuser", "", "postgres", "sslmode=verify-full&sslrootcert="+ca+"&sslcert="+certificate+"&sslkey="+key),
		"certificate, locked":    withLockedKey + "c4n4ry",
		"two hosts":              fmt.Sprintf("postgres://reader:%s@127.0.0.1:%s,127.0.0.1:%s/postgres", readerPassword, nettest.Port(t), x.Port),
		"a primary":              x.URL("reader", readerPassword, "postgres", "target_session_attrs=primary"),
		"keywords": fmt.Sprintf("host=127.0.0.1 port=%s user=reader password='%s' dbname=postgres binary_parameters=yes", x.Port,
			readerPassword),
		"another search_path": x.reader(t) + "&search_path=pg_temp",
	} {
		if snap, err := fetchAs(t, connStr, attrs{"schema_name": text(x.schema)}, "default"); err != nil || string(snap.Data) != "{}" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// When nobody waits for the read any more, nor does the server for the table.
func TestCancelledQuery(t *testing.T) {
	x := newTable(t)
	x.put(t, "default", []byte("{}"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	name := fmt.Sprintf("reads %s", x.schema)
	waiting := func() string {
		return x.Value(t, "postgres", "SELECT count(*)::text FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'",
			name)
	}
	defer x.lock(t)()
	connStr := x.reader(t) + "&application_name=" + strings.ReplaceAll(name, " ", "+")
	src, err := Kind().Start(settingsOf(attrs{"conn_str": text(connStr)}))(request(t,
		attrs{"schema_name": text(x.schema)}, nil))
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := src.Fetch(ctx)
		read <- err
	}()
	until(t, func() bool { return waiting() == "1" })
	begin := time.Now()
	cancel()
	if err := <-read; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("it took %s to give up", took)
	}
	until(t, func() bool { return waiting() == "0" })
}

// until waits for what happens soon.
func until(t *testing.T, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !happened(); {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// The view of the documentation is enough for its reader, and no more.
func TestOneWorkspace(t *testing.T) {
	s := postgres(t)
	s.Exec(t, "postgres", "CREATE DATABASE documented")
	for _, sql := range []string{
		"CREATE SCHEMA terraform_remote_state; CREATE TABLE terraform_remote_state.states (id bigserial PRIMARY KEY, name text UNIQUE, data " +
			"text)",
		"INSERT INTO terraform_remote_state.states (name, data) VALUES ('default', '{}'), ('network', '{\"network\": true}')",
		example(t, "one-workspace.sql"),
		"ALTER ROLE network_reader PASSWORD '" + readerPassword + "'",
	} {
		s.Exec(t, "documented", sql)
	}
	connStr := s.URL("network_reader", readerPassword, "documented", "")
	if snap, err := fetchAs(t, connStr, attrs{"schema_name": text("network_state")}, "network"); err != nil ||
		string(snap.Data) != `{"network": true}` {
		t.Errorf("got %v, %v", snap, err)
	}
	if _, err := fetchAs(t, connStr, attrs{"schema_name": text("network_state")}, "default"); err == nil {
		t.Error("another workspace is read")
	}
	if _, err := fetchAs(t, connStr, nil, "network"); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Errorf("got %v", err)
	}
}

// Every attribute of the backend, of OpenTofu 1.12.6 and Terraform, has its
// place, or a reason not to have one.
func TestBackendAttributes(t *testing.T) {
	const creates = "it is for who creates what is not there; a read creates nothing"
	for attr, place := range map[string]string{
		"conn_str":             "credentials",
		"schema_name":          "data source",
		"table_name":           "data source",
		"index_name":           creates,
		"skip_schema_creation": creates,
		"skip_table_creation":  creates,
		"skip_index_creation":  creates,
	} {
		_, in := table().Attr(attr)
		_, secret := credentials().Attr(attr)
		if in != (place == "data source") || secret != (place == "credentials") {
			t.Errorf("%s: want it in %s", attr, place)
		}
	}
}

// Where the backend puts a workspace, and what the data source leaves open.
func TestPlaces(t *testing.T) {
	env := variables{"PG_SCHEMA_NAME": "of env", "PG_TABLE_NAME": "t"}
	for name, c := range map[string]struct {
		attrs     attrs
		env       variables
		workspace string
		want      string
	}{
		"defaults":         {nil, nil, "default", `row "default" of "terraform_remote_state"."states" in PostgreSQL`},
		"no workspace":     {nil, nil, "", `row "default" of "terraform_remote_state"."states" in PostgreSQL`},
		"workspace":        {nil, nil, "prod", `row "prod" of "terraform_remote_state"."states" in PostgreSQL`},
		"environment":      {nil, env, "prod", `row "prod" of "of env"."t" in PostgreSQL`},
		"schema and table": {attrs{"schema_name": text(`a"b.c`), "table_name": text("Ü")}, env, "x", `row "x" of "a\"b.c"."Ü" in PostgreSQL`},
		"named": {attrs{"credentials_name": text("main")}, nil, "x",
			`row "x" of "terraform_remote_state"."states" in the PostgreSQL database "main"`},
	} {
		r := request(t, c.attrs, c.env.lookup)
		r.Workspace = c.workspace
		src, err := Kind().Start(settingsOf(attrs{"conn_str": text("host=a")}, attrs{"name": text("main"), "conn_str": text("host=b")}))(r)
		if err != nil || src.String() != c.want {
			t.Errorf("%s: got %v, %v, want %s", name, src, err, c.want)
		}
	}
	says := sourcetest.OpenMistakes(t, "pg, names")
	for name, c := range map[string]struct {
		attrs     attrs
		workspace string
	}{
		"empty schema":         {attrs: attrs{"schema_name": text("")}},
		"empty table":          {attrs: attrs{"table_name": text("")}},
		"NUL":                  {attrs: attrs{"table_name": text("a\x00b")}},
		"NUL in the workspace": {workspace: "a\x00b"},
	} {
		r, err := decoded(c.attrs, nil)
		if err == nil {
			r.Workspace = c.workspace
			_, err = Kind().Start(settingsOf(attrs{"conn_str": text("host=a")}))(r)
		}
		says.Error(t, name, err)
	}
}
