// Package pg reads a state from the PostgreSQL database that Terraform's pg backend writes to. It uses one
// SELECT in a read-only transaction.
//
// https://github.com/opentofu/opentofu/tree/v1.12.6/internal/backend/remote-state/pg
// https://github.com/hashicorp/terraform/tree/main/internal/backend/remote-state/pg
package pg

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Kind returns the pg source.
func Kind() source.Kind {
	return source.Kind{Table: table(), Credentials: credentials(), Home: home(), Workspaces: true, Begin: start}
}

func table() attr.Table {
	return attr.Table{
		Name: "pg",
		Doc: "Reads the state from the PostgreSQL database of the `pg` backend, with one `SELECT`. How to reach it is set in " +
			"`credentials`, in the provider block.",
		Attrs: []attr.Attr{
			{Name: "schema_name", Type: cty.String, Env: []string{"PG_SCHEMA_NAME"}, Default: cty.StringVal("terraform_remote_state"),
				Check: attr.Is(isName, noName),
				Doc:   "The schema of the table. Defaults to `terraform_remote_state`."},
			{Name: "table_name", Type: cty.String, Env: []string{"PG_TABLE_NAME"}, Default: cty.StringVal("states"), Check: attr.Is(isName, noName),
				Doc: "The table, or a view with the columns `name` and `data`. Defaults to `states`, which is the name that Terraform always uses."},
			source.ChoiceAttr("credentials_name", "pg", "that says how to reach the database"),
		},
	}
}

func credentials() attr.Table {
	return attr.Table{
		Name: "pg",
		Doc: "How to reach a PostgreSQL database. In the block without a name, the variables and files of libpq complete `conn_str`, for " +
			"example `PGPASSWORD` and `~/.pgpass`.",
		Attrs: []attr.Attr{
			source.NameAttr("credentials_name"),
			{Name: "conn_str", Type: cty.String, Secrecy: attr.Secret, Form: attr.Lines, Env: []string{connStrVar},
				Doc: "`postgres://user:password@host/database?sslmode=verify-full`, or `host=… user=…`. `sslmode` is by default `require`, " +
					"which does not verify the server. `PGPASSWORD` may hold the password."},
		},
	}
}
