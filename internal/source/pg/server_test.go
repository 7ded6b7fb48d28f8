package pg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// server is a real PostgreSQL, one for all tests of the package.
type server struct {
	port      string
	authority *authority
}

const (
	adminPassword  = "admin-ssssssssssssssssss"
	readerPassword = "reader-ssssssssssssssssss"
)

var (
	startServer = sync.OnceValues(newServer)
	stopServer  = func() {}
)

func TestMain(m *testing.M) {
	code := m.Run()
	stopServer()
	os.Exit(code)
}

// postgres returns the server. Tests are skipped where none is installed.
func postgres(t *testing.T) *server {
	t.Helper()
	s, err := startServer()
	if errors.Is(err, errNoServer) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var errNoServer = errors.New("PostgreSQL is not installed in /usr/lib/postgresql")

func newServer() (*server, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return nil, errNoServer
	}
	bin := filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp("", "statecrypt-pg-")
	if err != nil {
		return nil, err
	}
	stopServer = func() { os.RemoveAll(dir) }
	authority := newAuthority()
	files := map[string]string{
		"password": adminPassword,
		"hba": "hostssl all md5user 127.0.0.1/32 md5\n" +
			"host all clearuser 127.0.0.1/32 password\n" +
			"hostssl all certuser 127.0.0.1/32 cert\n" +
			"hostnossl all nosslonly 127.0.0.1/32 reject\n" +
			"host all all 127.0.0.1/32 scram-sha-256\n",
		"ca.pem": authority.pem,
	}
	certificate := authority.issue(valid)
	files["server.crt"], files["server.key"] = certificate.chain, certificate.key
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	run := func(program string, args ...string) error {
		cmd := exec.Command(filepath.Join(bin, program), args...)
		cmd.Dir = dir
		if os.Getuid() == 0 { // as which PostgreSQL does not run
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		out := filepath.Join(dir, program+".log")
		log, err := os.Create(out) // a pipe would be held open by the server
		if err != nil {
			return err
		}
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			text, _ := os.ReadFile(out)
			return fmt.Errorf("%s: %w\n%s", program, err, text)
		}
		return nil
	}
	if os.Getuid() == 0 {
		if err := filepath.Walk(dir, func(path string, _ os.FileInfo, _ error) error { return os.Chown(path, nobody, nobody) }); err != nil {
			return nil, err
		}
	}
	port := freePort()
	data := filepath.Join(dir, "data")
	if err := run("initdb", "-D", data, "-U", "admin", "--pwfile", filepath.Join(dir, "password"), "-A", "scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C"); err != nil {
		return nil, err
	}
	options := []string{
		"-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=40",
		"-c", "ssl=on", "-c", "ssl_cert_file=" + filepath.Join(dir, "server.crt"), "-c", "ssl_key_file=" + filepath.Join(dir, "server.key"), "-c", "ssl_ca_file=" + filepath.Join(dir, "ca.pem"),
		"-c", "hba_file=" + filepath.Join(dir, "hba"),
	}
	if err := run("pg_ctl", "-D", data, "-w", "-o", strings.Join(options, " "), "start"); err != nil {
		return nil, err
	}
	s := &server{port: port, authority: authority}
	stopServer = func() {
		_ = run("pg_ctl", "-D", data, "-m", "immediate", "stop")
		os.RemoveAll(dir)
	}
	return s, s.prepare()
}

// nobody owns no files, and runs the server.
const nobody = 65534

func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// prepare makes the roles, none of which may do anything yet.
func (s *server) prepare() error {
	for _, sql := range []string{
		"CREATE ROLE reader LOGIN PASSWORD '" + readerPassword + "'",
		"CREATE ROLE stranger LOGIN PASSWORD '" + readerPassword + "'",
		"SET password_encryption = 'md5'; CREATE ROLE md5user LOGIN PASSWORD '" + readerPassword + "'",
		"CREATE ROLE clearuser LOGIN PASSWORD '" + readerPassword + "'",
		"CREATE ROLE certuser LOGIN",
		"CREATE ROLE one LOGIN PASSWORD '" + readerPassword + "' CONNECTION LIMIT 0",
	} {
		if err := s.try("postgres", sql); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) url(user, password, database, query string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%s/%s?%s", user, password, s.port, database, query)
}

func (s *server) admin(database string) string {
	return s.url("admin", adminPassword, database, "sslmode=disable")
}

// reader is the connection string of the role that may read.
func (s *server) reader(t *testing.T) string {
	return s.url("reader", readerPassword, "postgres", "sslmode=verify-full&sslrootcert="+s.ca(t))
}

func (s *server) ca(t *testing.T) string {
	return file(t, filepath.Join(t.TempDir(), "ca.pem"), s.authority.pem)
}

func (s *server) try(database, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, s.admin(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql).ReadAll()
	return err
}

// exec runs statements as the administrator.
func (s *server) exec(t *testing.T, sql string) {
	t.Helper()
	if err := s.try("postgres", sql); err != nil {
		t.Fatal(err)
	}
}

// query returns one value.
func (s *server) query(t *testing.T, sql string, args ...any) string {
	t.Helper()
	return s.in(t, "postgres", sql, args...)
}

// in is query in another database.
func (s *server) in(t *testing.T, database, sql string, args ...any) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.admin(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var text string
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

var schemas atomic.Int64

// table is a table of the backend in a schema of its own.
type table1 struct {
	*server
	schema string
}

func newTable(t *testing.T) table1 {
	t.Helper()
	s := postgres(t)
	x := table1{s, fmt.Sprintf("states %d", schemas.Add(1))}
	x.exec(t, fmt.Sprintf(`CREATE SCHEMA %[1]q; CREATE TABLE %[1]q.states (id bigserial PRIMARY KEY, name text UNIQUE, data text);
		GRANT USAGE ON SCHEMA %[1]q TO reader; GRANT SELECT (name, data) ON %[1]q.states TO reader`, x.schema))
	return x
}

func (x table1) put(t *testing.T, name string, data []byte) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), x.admin("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), fmt.Sprintf("INSERT INTO %q.states (name, data) VALUES ($1, $2)", x.schema), name, string(data)); err != nil {
		t.Fatal(err)
	}
}

// contents tells every write.
func (x table1) contents(t *testing.T) string {
	return x.query(t, fmt.Sprintf("SELECT coalesce(string_agg(concat_ws(' ', xmin, xmax, ctid, id, name, md5(data)), ',' ORDER BY id), '') FROM %q.states", x.schema))
}

func file(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lock keeps everybody from the table until release is closed.
func (x table1) lock(release <-chan struct{}, locked chan<- error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, x.admin("postgres"))
	if err == nil {
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, fmt.Sprintf("BEGIN; LOCK TABLE %q.states IN ACCESS EXCLUSIVE MODE", x.schema)).ReadAll()
	}
	locked <- err
	<-release
	return err
}
