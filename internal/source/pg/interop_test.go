package pg

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/pg/pgtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
)

// States that a real CLI writes through its pg backend are read back, by a role
// that may do nothing else.
func TestWrittenByCLIs(t *testing.T) {
	for _, cli := range clitest.All(t) {
		t.Run(cli.Name, func(t *testing.T) { testBackend(t, cli, "terraform_remote_state", "states") })
		if !cli.Encrypted {
			t.Run(cli.Name+", odd schema", func(t *testing.T) { testBackend(t, cli, `My "odd" Schema; --'x`, "states") })
		}
		if cli.Name == "tofu" { // Terraform's table has one name
			t.Run("tofu, odd table", func(t *testing.T) { testBackend(t, cli, "Schema", `Tab "le" é`) })
		}
	}
}

func testBackend(t *testing.T, cli clitest.CLI, schema, table string) {
	s := postgres(t)
	database := fmt.Sprintf("of_a_cli_%d", tables.Add(1))
	s.Exec(t, "postgres", "CREATE DATABASE "+database)
	ca, tableName := caFile(t, s), ""
	if table != "states" {
		tableName = fmt.Sprintf("table_name = %q", table)
	}
	p := cli.Project(t, fmt.Sprintf("backend \"pg\" {\nconn_str = %q\nschema_name = %q\n%s\n}",
		s.URL("admin", pgtest.AdminPassword, database, "sslmode=verify-full&sslrootcert="+ca), schema, tableName))
	for _, workspace := range clitest.Workspaces {
		p.Apply(t, workspace)
	}

	quoted := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
	grants := strings.NewReplacer("terraform_remote_state", quoted(schema), ".states", "."+quoted(table)).Replace(example(t, "reader.sql"))
	s.Exec(t, database, grants+"; ALTER ROLE state_reader PASSWORD '"+readerPassword+"'")
	defer s.Exec(t, database, "DROP OWNED BY state_reader; DROP ROLE state_reader")
	for _, workspace := range clitest.Workspaces {
		r := request(t, attrs{"schema_name": text(schema), "table_name": text(table)}, nil)
		r.Workspace = workspace
		connStr := s.URL("state_reader", readerPassword, database, "sslmode=verify-full&sslrootcert="+ca)
		src, err := Kind().Start(settingsOf(attrs{"conn_str": text(connStr)}))(r)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := src.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held := s.Value(t, database, fmt.Sprintf("SELECT data FROM %s.%s WHERE name = $1", quoted(schema), quoted(table)), workspace)
		p.Compare(t, workspace, snap.Data, []byte(held))
		if len(snap.Warnings) > 0 {
			t.Errorf("got warnings: %q", snap.Warnings)
		}
	}
}

// example is a file of the documentation.
func example(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "sources", "pg", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
