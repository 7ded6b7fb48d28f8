package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// run holds the credentials and limits that the sources of one configured provider share. It keeps no
// connection open, because an idle connection would take up one of the server's slots.
type run struct {
	credentials source.Credentials
	world       world.World
	patience    time.Duration
	lookup      pgconn.LookupFunc // resolves hosts; nil means the system's resolver
}

func start(s source.Settings) source.Open {
	return newRun(s).open
}

func newRun(s source.Settings) *run {
	return &run{credentials: s.Credentials, world: s.World(), patience: patience}
}

func (r *run) open(req source.Request) (source.Source, error) {
	l := &location{
		run: r, database: req.String("credentials_name"),
		schema: req.String("schema_name"), table: req.String("table_name"), row: cmp.Or(req.Workspace, "default"), limit: req.MaxSize,
	}
	if !isText(l.row) {
		return nil, errors.New("the workspace name is not valid text in PostgreSQL")
	}
	var err error
	l.target, err = choose(r.credentials, l.database)
	return l, err
}

const noName = "the name is empty or not valid text; check whether a variable is empty"

func isName(s string) bool { return s != "" && isText(s) }

// isText reports whether PostgreSQL can store s as text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// location is the table row that holds a state.
type location struct {
	*run
	target        target
	database      string // the name of the credentials block; may be empty
	schema, table string
	row           string
	limit         int64
}

func (l *location) String() string {
	in := "PostgreSQL"
	if l.database != "" {
		in = fmt.Sprintf("the PostgreSQL database %q", l.database)
	}
	return fmt.Sprintf("row %q of %s in %s", l.row, l.name(), in)
}

// name returns the quoted schema and table, for error messages.
func (l *location) name() string { return fmt.Sprintf("%q.%q", l.schema, l.table) }

// Fetch opens a connection, reads the state and closes the connection.
func (l *location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, l.patience, errPatience)
	defer cancel()
	s, err := l.target.resolve()
	if err != nil {
		return nil, err
	}
	c, err := newConnection(l.world, s, l.limit)
	if err != nil {
		return nil, err
	}
	if l.lookup != nil {
		c.config.LookupFunc = l.lookup
	}
	conn, err := pgconn.ConnectConfig(limited, c.config)
	if err != nil {
		return nil, c.explain(limited, l, err)
	}
	defer hangUp(conn)
	data, found, err := l.read(limited, conn)
	switch {
	case err != nil:
		return nil, c.explain(limited, l, err)
	case !found:
		return nil, &source.MissingError{Detail: fmt.Sprintf("%s has no row with the name %q, or this role may not see the row", l.name(), l.row),
			CredentialsSent: c.hasAccount}
	}
	return &source.Snapshot{Data: data, Warnings: c.warnings()}, nil
}

// hangUp closes the connection. After a cancelled query, the driver still communicates with the server in the
// background. hangUp waits at most goodbye for this to end.
func hangUp(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	_ = conn.Close(ctx) // an error does not matter: the data is complete, or is not used
	select {
	case <-conn.CleanupDone():
	case <-ctx.Done():
	}
	_ = conn.Conn().Close()
}

// read queries the row in a read-only transaction. It sends all statements at once. The transaction is made
// read-only by a statement, because poolers such as PgBouncer refuse the connection parameter for it. The
// query does not use system columns such as xmin: views lack them, and reading them requires more than
// permission to read name and data.
func (l *location) read(ctx context.Context, conn *pgconn.PgConn) (data []byte, found bool, err error) {
	const int4 = pgtype.Int4OID
	p := conn.StartPipeline(ctx)
	p.SendQueryParams("BEGIN TRANSACTION READ ONLY", nil, nil, nil, nil)
	p.SendQueryParams(
		"SELECT octet_length(data), CASE WHEN octet_length(data) <= $2 THEN data END FROM "+pgx.Identifier{l.schema, l.table}.Sanitize()+
			" WHERE name = $1 LIMIT 2",
		[][]byte{[]byte(l.row), []byte(strconv.FormatInt(min(l.limit, math.MaxInt32), 10))}, []uint32{0, int4}, nil, nil,
	)
	p.SendQueryParams("COMMIT", nil, nil, nil, nil)
	if err := p.Sync(); err != nil {
		return nil, false, err
	}
	if _, err := answer(p); err != nil {
		return nil, false, err
	}
	result, err := answer(p)
	if err != nil {
		return nil, false, err
	}
	if data, found, err = l.value(result); err != nil {
		return nil, false, err
	}
	if _, err := answer(p); err != nil {
		return nil, false, err
	}
	return data, found, p.Close()
}

// answer returns the result of the next statement.
func answer(p *pgconn.Pipeline) (*pgconn.ResultReader, error) {
	results, err := p.GetResults()
	if err != nil {
		return nil, err
	}
	result, ok := results.(*pgconn.ResultReader)
	if !ok {
		return nil, errNotPostgres
	}
	return result, nil
}

// value returns the state from the result of the SELECT, and whether there is a row. More than one row is an
// error.
func (l *location) value(result *pgconn.ResultReader) (data []byte, found bool, err error) {
	columns := result.FieldDescriptions()
	if len(columns) != 2 {
		return nil, false, errNotPostgres
	}
	switch columns[1].DataTypeOID {
	case pgtype.TextOID, pgtype.VarcharOID:
	default:
		return nil, false, web.Final("the column data of %s is not a text column, but that of the backend is; check schema_name and "+
			"table_name", l.name())
	}
	for result.NextRow() {
		values := result.Values()
		switch {
		case found:
			return nil, false, web.Final("%s has more than one row with the name %q; keep only one of them", l.name(), l.row)
		case len(values) != 2:
			return nil, false, errNotPostgres
		}
		if size, _ := strconv.ParseInt(string(values[0]), 10, 64); size > l.limit || int64(len(values[1])) > l.limit {
			return nil, false, web.Final("%w", meter.TooLarge(l.limit))
		}
		found = true
		data = append([]byte{}, values[1]...) // empty if the column is null, as in the backend
	}
	_, err = result.Close()
	return data, found, err
}
