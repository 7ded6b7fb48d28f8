package pg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/pg/pgtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// shared is the server of all tests of the package, once one has asked for it.
var shared struct {
	once sync.Once
	*pgtest.Server
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.Server != nil {
		shared.Stop()
	}
	os.Exit(code)
}

var (
	tables atomic.Int64
	roles  sync.Once
)

const readerPassword = "reader-ssssssssssssssssss"

// postgres returns the server. Tests are skipped where none is installed.
func postgres(t *testing.T) *pgtest.Server {
	t.Helper()
	shared.once.Do(func() { shared.Server, shared.err = pgtest.Start(nettest.Port(t)) })
	s := shared.Server
	if errors.Is(shared.err, pgtest.ErrNotInstalled) {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	roles.Do(func() { // none of them may do anything yet
		const login = " LOGIN PASSWORD '" + readerPassword + "';"
		s.Exec(t, "postgres", "CREATE ROLE reader"+login+"CREATE ROLE stranger"+login+"CREATE ROLE clearuser"+login+"CREATE ROLE tlsuser"+login+
			"CREATE ROLE certuser LOGIN; CREATE ROLE busy CONNECTION LIMIT 0"+login+"SET password_encryption = 'md5'; CREATE ROLE md5user"+login)
	})
	return s
}

// caFile is the certificate of the server's authority.
func caFile(t *testing.T, s *pgtest.Server) string {
	t.Helper()
	return file(t, filepath.Join(t.TempDir(), "ca.pem"), s.Authority.PEM)
}

// states is a table of the backend in a schema of its own, from which the role
// reader may read.
type states struct {
	*pgtest.Server
	schema string
}

func newTable(t *testing.T) states {
	t.Helper()
	x := states{postgres(t), fmt.Sprintf("states %d", tables.Add(1))}
	x.Exec(t, "postgres", fmt.Sprintf(`CREATE SCHEMA %[1]q; CREATE TABLE %[1]q.states (id bigserial PRIMARY KEY, name text UNIQUE, data text);
		GRANT USAGE ON SCHEMA %[1]q TO reader; GRANT SELECT (name, data) ON %[1]q.states TO reader`, x.schema))
	return x
}

func (x states) reader(t *testing.T) string {
	t.Helper()
	return x.URL("reader", readerPassword, "postgres", "sslmode=verify-full&sslrootcert="+caFile(t, x.Server))
}

func (x states) put(t *testing.T, name string, data []byte) {
	t.Helper()
	x.Value(t, "postgres", fmt.Sprintf("INSERT INTO %q.states (name, data) VALUES ($1, $2) RETURNING name", x.schema), name, string(data))
}

// contents tells every write.
func (x states) contents(t *testing.T) string {
	t.Helper()
	return x.Value(t, "postgres", fmt.Sprintf("SELECT coalesce(string_agg(concat_ws(' ', xmin, xmax, ctid, id, name, md5(data)), ',' "+
		"ORDER BY id), '') FROM %q.states", x.schema))
}

// lock keeps everybody from the table until the function that it returns is
// called.
func (x states) lock(t *testing.T) (release func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	conn, err := x.Connect(ctx, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf("BEGIN; LOCK TABLE %q.states IN ACCESS EXCLUSIVE MODE", x.schema)); err != nil {
		t.Fatal(err)
	}
	return func() {
		conn.Close(ctx)
		cancel()
	}
}

func file(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
