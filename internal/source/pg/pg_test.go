package pg

import (
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

type attrs = map[string]cty.Value

var text = cty.StringVal

type variables map[string]string

func (e variables) lookup(name string) (string, bool) {
	v, ok := e[name]
	return v, ok
}

// settingsOf are those of a provider block, without an environment.
func settingsOf(blocks ...attrs) source.Settings {
	s := source.Settings{Credentials: source.Credentials{Table: credentials()}}
	for i, b := range blocks {
		s.Credentials.Entries = append(s.Credentials.Entries, unstable.NewEntry(fmt.Sprintf("credentials.pg[%d]", i), credentials(), b))
	}
	return s
}

func with(env variables, blocks ...attrs) source.Settings {
	s := settingsOf(blocks...)
	s.LookupEnv, s.Credentials.Env = env.lookup, env.lookup
	return s
}

func request(t *testing.T, a attrs, env attr.LookupEnv) source.Request {
	t.Helper()
	r, err := decoded(a, env)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func decoded(a attrs, env attr.LookupEnv) (source.Request, error) {
	values, err := unstable.NewEntry("data.statecrypt_remote_state.test.pg", table(), a).Decode(table(), env)
	return source.Request{Values: values, Workspace: "default", MaxSize: 1 << 20}, err
}

func TestSource(t *testing.T) {
	s := postgres(t)
	place := func(x states, connStr string) sourcetest.Place {
		before := x.contents(t)
		return sourcetest.Place{
			Attrs:    attrs{"schema_name": text(x.schema)},
			Settings: settingsOf(attrs{"conn_str": text(connStr)}),
			Secrets:  []string{readerPassword, connStr},
			Changed: func() error {
				if after := x.contents(t); after != before {
					return fmt.Errorf("got %s, want %s", after, before)
				}
				return nil
			},
		}
	}
	state := func(t *testing.T) states {
		x := newTable(t)
		x.put(t, "default", []byte("{}"))
		return x
	}
	bad := func(user, password, database, query string) func(t *testing.T) sourcetest.Place {
		return func(t *testing.T) sourcetest.Place {
			return place(state(t), s.URL(user, password, database, query+"&sslrootcert="+caFile(t, s)))
		}
	}
	sourcetest.Run(t, sourcetest.Harness{
		Kind: Kind(),
		Place: func(t *testing.T, data []byte) sourcetest.Place {
			x := newTable(t)
			if data != nil {
				x.put(t, "default", data)
			}
			return place(x, x.reader(t))
		},
		Bad: map[string]func(t *testing.T) sourcetest.Place{
			"wrong password": bad("reader", "wrong", "postgres", "sslmode=verify-full"),
			"no password":    bad("reader", "", "postgres", "sslmode=verify-full"),
			"no such role":   bad("nobody", "wrong", "postgres", "sslmode=verify-full"),
			"no rights":      bad("stranger", readerPassword, "postgres", "sslmode=verify-full"),
			"no database":    bad("reader", readerPassword, "nowhere", "sslmode=verify-full"),
			"no slots":       bad("busy", readerPassword, "postgres", "sslmode=verify-full"),
			"no schema": func(t *testing.T) sourcetest.Place {
				x := state(t)
				p := place(x, x.reader(t))
				p.Attrs["schema_name"] = text("nowhere")
				return p
			},
			"no table": func(t *testing.T) sourcetest.Place {
				x := state(t)
				p := place(x, x.reader(t))
				p.Attrs["table_name"] = text("nothing")
				return p
			},
			"nobody listens": func(t *testing.T) sourcetest.Place {
				return place(state(t), fmt.Sprintf("postgres://reader:%s@127.0.0.1:%s/postgres", readerPassword, nettest.Port(t)))
			},
		},
		Stuck: func(t *testing.T) sourcetest.Place {
			connStr := fmt.Sprintf("postgres://reader:%s@%s/postgres", readerPassword, nettest.Mute(t))
			return sourcetest.Place{Settings: settingsOf(attrs{"conn_str": text(connStr)}), Secrets: []string{readerPassword}}
		},
	})
}
