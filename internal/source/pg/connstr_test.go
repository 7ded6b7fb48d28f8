package pg

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

func TestParseConnStr(t *testing.T) {
	for text, want := range map[string]settings{
		"":                                   {},
		"postgres://":                        {},
		"postgres://db.example.com":          {"host": "db.example.com"},
		"postgresql://db.example.com/states": {"host": "db.example.com", "dbname": "states"},
		"postgres://me:p%40%2Fss@db.example.com:5433/states?sslmode=verify-full&sslrootcert=/etc/ca.pem": {
			"host": "db.example.com", "port": "5433", "user": "me", "password": "p@/ss", "dbname": "states", "sslmode": "verify-full",
			"sslrootcert": "/etc/ca.pem",
		},
		"postgres://me:a@b@db.example.com/":                       {"host": "db.example.com", "user": "me", "password": "a@b"},
		"postgres://me@[2001:db8::1]:5433/x":                      {"host": "2001:db8::1", "port": "5433", "user": "me", "dbname": "x"},
		"postgres://[::1]/x":                                      {"host": "::1", "dbname": "x"},
		"postgres://a,b:1/x":                                      {"host": "a,b", "port": ",1", "dbname": "x"},
		"postgres://a:1,b:2/x?target_session_attrs=any":           {"host": "a,b", "port": "1,2", "dbname": "x", "target_session_attrs": "any"},
		"postgres://%2Fvar%2Frun%2Fpostgresql/x":                  {"host": "/var/run/postgresql", "dbname": "x"},
		"postgres:///x?host=/run/postgresql&user=me":              {"host": "/run/postgresql", "dbname": "x", "user": "me"},
		"host=a user=me dbname=x":                                 {"host": "a", "user": "me", "dbname": "x"},
		"  host = a\tpassword = 'it\\'s a \\\\'  port=1 ":         {"host": "a", "password": `it's a \`, "port": "1"},
		`host=a password=a\ b\\ database=x`:                       {"host": "a", "password": `a b\`, "dbname": "x"},
		"host=a password='' user=":                                {"host": "a"},
		"password=p=q host=a":                                     {"password": "p=q", "host": "a"},
		"application_name='\u00fcber den Wolken' search_path=abc": {"application_name": "\u00fcber den Wolken", "search_path": "abc"},
	} {
		got, err := parseConnStr(text)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	says := sourcetest.OpenMistakes(t, "pg, conn_str")
	for _, text := range []string{
		"c4n4ry",
		"host=a c4n4ry",
		"host=a c4n4ry password=b",
		"=c4n4ry",
		"password='c4n4ry",
		`password='c4n4ry\'`,
		"mysql://me:c4n4ry@db",
		"postgres://me:c4n4ry#1@db/x",
		"postgres://me:c4n4ry/1@db/x",
		"postgres://me:c4n4ry%zz@db/x",
		"postgres://me:c4n4ry%00@db/x",
		"postgres://db/x?password=c4n4ry%00",
		"postgres://db/x?password=c4n4ry;a=%zz",
		"host=a password=c4n4ry\x00 sslmode=disable",
	} {
		_, err := parseConnStr(text)
		says.Error(t, strconv.Quote(text), err)
	}
}

// Whatever can be read says to the driver what it says to us.
func FuzzConnStr(f *testing.F) {
	for _, text := range []string{
		"postgres://me:p%40ss@a:1,[::1]:2/x?sslmode=disable", "host=a password='it\\'s' port=1", `password=\\\' sslmode=require`, "user=a\\",
		"postgres://a?b=c&b=d",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseConnStr(text)
		if err != nil || s.check() != nil {
			return
		}
		for _, key := range []string{"sslcert", "sslkey", "sslrootcert", "passfile"} { // no files of the machine
			delete(s, key)
		}
		if s["user"] == "" {
			s["user"] = "someone"
		}
		if s["host"] == "" || strings.HasPrefix(s["host"], ",") {
			s["host"] = "localhost"
		}
		c, err := newConnection(world.Here(), s, 1<<20)
		if err != nil {
			return
		}
		if c.config.User != s["user"] || c.config.Password != s["password"] || c.config.Database != s["dbname"] ||
			!strings.HasPrefix(s["host"], c.config.Host) {
			t.Errorf("%q: got %q, %q, %q, %q for %q", text, c.config.User, c.config.Password, c.config.Database, c.config.Host, s)
		}
		if (c.config.TLSConfig == nil) != (s["sslmode"] == "disable" || strings.HasPrefix(c.config.Host, "/")) && s["sslmode"] != "" {
			t.Errorf("%q: TLS does not follow sslmode", text)
		}
	})
}

// What is for other programs is no pair of a name and a value: without a host, the
// server would be one that nobody named.
func TestConnStrOfOthers(t *testing.T) {
	t.Parallel()
	says := sourcetest.OpenMistakes(t, "pg, settings of other programs")
	for _, text := range []string{
		"jdbc:postgresql://db.example.com/tf?user=tf&password=c4n4ry",
		"postgresql+psycopg2://tf:c4n4ry@db/tf",
		"Server=db;Port=5432;User Id=tf;Password=c4n4ry;Database=tf",
		"Host=db;Username=tf;Password=c4n4ry",
		"host=127.0.0.1:5432 password=c4n4ry",
		"postgres://tf:c4n4ry@ss/c4n4ry@db.example.com/tf",
	} {
		_, err := parseConnStr(text)
		says.Error(t, text, err)
	}
}
