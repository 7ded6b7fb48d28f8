package pg

import (
	"strings"
	"testing"
)

// TestKeywordsBesideAPassword: a variable of libpq completes what the code says
// of a connection only if it does no harm to the password beside it.
//
// Promise: Where secrets go
func TestKeywordsBesideAPassword(t *testing.T) {
	t.Parallel()
	harmless := map[string]string{
		"PGDATABASE": "d", "PGAPPNAME": "a", "PGTZ": "UTC", "PGCONNECT_TIMEOUT": "7", "PGTARGETSESSIONATTRS": "primary",
		"PGSSLMODE": "verify-full", "PGREQUIREAUTH": "scram-sha-256", "PGCHANNELBINDING": "require",
		"PGSSLCERT": "c", "PGSSLKEY": "k", "PGSSLPASSWORD": "p", // an identity of its own
		"PGPASSWORD": "said by the code", "PGPASSFILE": "not used beside a password",
	}
	own := settings{"host": "own.test", "password": "OWN"}
	for _, a := range keywords().Attrs {
		variable := a.Env[0]
		value, open := harmless[variable]
		if !open {
			value = "28777"
		}
		target, err := choose(with(variables{variable: value}, attrs{"conn_str": text("host=own.test password=OWN")}).For(Kind()).Credentials, "")
		s := target.settings
		refused := err != nil && strings.Contains(err.Error(), variable) && strings.Contains(err.Error(), "password")
		ignored := strings.HasPrefix(a.Name, "host") // it is another server, for which the code's password is not meant
		if err != nil && !refused || refused == (open || ignored) {
			t.Errorf("%s: got %v, %q; it is harmless: %t", variable, err, s, open)
		}
		if own[a.Name] != "" && s[a.Name] != own[a.Name] {
			t.Errorf("%s replaces what the code says", variable)
		}
	}
}

// TestStringOfTheEnvironment: a password in a connection string that a variable brings is
// not the code's, also if the code has a block.
func TestStringOfTheEnvironment(t *testing.T) {
	t.Parallel()
	vars := variables{connStrVar: "host=own.test password=THEIRS", "PGPORT": "28777"}
	target, err := choose(with(vars, attrs{}).For(Kind()).Credentials, "")
	if err != nil || target.settings["port"] != "28777" || target.settings["password"] != "THEIRS" {
		t.Errorf("got %v, %q", err, target.settings)
	}
}
