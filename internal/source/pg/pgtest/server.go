// Package pgtest runs a real PostgreSQL server for tests, if PostgreSQL is installed.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Server is a PostgreSQL server at 127.0.0.1 that accepts connections with and without TLS. Its role admin is
// a superuser.
type Server struct {
	Port      string
	Authority *nettest.Authority // issues the certificates of the server and its clients

	bin, dir string
}

// AdminPassword is the password of the role admin.
const AdminPassword = "admin-ssssssssssssssssss"

// ErrNotInstalled means that PostgreSQL is not installed.
var ErrNotInstalled = errors.New("PostgreSQL is not installed: there is no initdb in PATH, nor in /usr/lib/postgresql/*/bin")

// New starts a server for one test. It skips the test if PostgreSQL is not installed.
func New(t *testing.T) *Server {
	t.Helper()
	s, err := Start(nettest.Port(t))
	if errors.Is(err, ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Start starts a server on an unused port. This takes about a second.
func Start(port string) (*Server, error) {
	initdb, err := exec.LookPath("initdb")
	if err != nil { // Debian does not put it in PATH
		found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
		if err != nil || len(found) == 0 {
			return nil, ErrNotInstalled
		}
		initdb = found[len(found)-1]
	}
	dir, err := os.MkdirTemp("", "statecrypt-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{Port: port, Authority: nettest.NewAuthority(), bin: filepath.Dir(initdb), dir: dir}
	if err := s.start(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// hba says how each role logs in. Tests create the roles that they need.
const hba = `
hostssl   all md5user   127.0.0.1/32 md5
host      all clearuser 127.0.0.1/32 password
hostssl   all certuser  127.0.0.1/32 cert
hostnossl all tlsuser   127.0.0.1/32 reject
host      all all       127.0.0.1/32 scram-sha-256
`

func (s *Server) start() error {
	certificate := s.Authority.Issue(nil)
	for name, text := range map[string]string{
		"password": AdminPassword, "hba": hba, "ca.pem": s.Authority.PEM, "server.crt": certificate.Chain, "server.key": certificate.Key,
	} {
		if err := os.WriteFile(s.file(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if os.Getuid() == 0 { // PostgreSQL does not run as root
		if err := filepath.WalkDir(s.dir, giveAway); err != nil {
			return err
		}
	}
	if err := s.run("initdb", "-D", s.file("data"), "-U", "admin", "--pwfile", s.file("password"), "-A", "scram-sha-256", "--no-sync", "-E",
		"UTF8", "--locale=C"); err != nil {
		return err
	}
	return s.run("pg_ctl", "-D", s.file("data"), "-w", "-o", strings.Join([]string{
		"-p", s.Port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c",
		"max_connections=40",
		"-c", "ssl=on", "-c", "ssl_cert_file=" + s.file("server.crt"), "-c", "ssl_key_file=" + s.file("server.key"), "-c", "ssl_ca_file=" +
			s.file("ca.pem"),
		"-c", "hba_file=" + s.file("hba"),
	}, " "), "start")
}

// nobody is a user that owns nothing else.
const nobody = 65534

func giveAway(path string, _ fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	return os.Lchown(path, nobody, nobody) //nolint:gosec // a folder that only this test uses
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

// run runs a PostgreSQL program. If this process runs as root, run uses another user, because these programs
// refuse to run as root.
func (s *Server) run(program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...) //nolint:gosec // arguments from tests
	cmd.Dir = s.dir
	asSomebodyElse(cmd)
	log, err := os.Create(s.file(program + ".log")) // the server would keep a pipe open
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w\n%s", program, err, text)
	}
	return nil
}

// Stop stops the server and removes its files.
func (s *Server) Stop() {
	_ = s.run("pg_ctl", "-D", s.file("data"), "-m", "immediate", "stop") // it may not have started
	_ = os.RemoveAll(s.dir)
}

// URL returns a connection string.
func (s *Server) URL(user, password, database, query string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%s/%s?%s", user, password, s.Port, database, query)
}

// Connect connects as the administrator. The caller must close the connection.
func (s *Server) Connect(ctx context.Context, database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, s.URL("admin", AdminPassword, database, "sslmode=disable"))
}

// Exec runs statements as the administrator.
func (s *Server) Exec(t *testing.T, database, statements string) {
	t.Helper()
	s.connected(t, database, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statements)
		return err
	})
}

// Value returns the result of a query.
func (s *Server) Value(t *testing.T, database, query string, args ...any) (text string) {
	t.Helper()
	s.connected(t, database, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, query, args...).Scan(&text) })
	return text
}

func (s *Server) connected(t *testing.T, database string, do func(context.Context, *pgx.Conn) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	conn, err := s.Connect(ctx, database)
	if err == nil {
		defer conn.Close(ctx) //nolint:errcheck // it is only closed
		err = do(ctx, conn)
	}
	if err != nil {
		t.Fatal(err)
	}
}
