package all

import (
	"strings"
	"testing"
)

// TestAuthoritiesOfTheEnvironment: with the environment off, no secret goes over
// a connection that was verified with the authorities of a variable. git is a
// program: it does not get the variable.
//
// Promise: use_environment = false
func TestAuthoritiesOfTheEnvironment(t *testing.T) {
	rows := policies(t)
	for _, k := range Kinds() {
		if k.Name == "file" || k.Name == "git" {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			a := arenaOf(k, rows[k.Name])
			block := a.own(a.direct)
			if k.Name == "pg" {
				block = with(block, "conn_str", block["conn_str"].AsString()+" sslmode=verify-full")
			}
			_, err := a.readAt(t, a.where(a.direct), nil, false, block)
			a.arrives(t, err, "OWN")
			for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
				t.Run(name, func(t *testing.T) {
					t.Setenv(name, stranger.caFile)
					_, err := a.readAt(t, a.where(a.direct), nil, false, block)
					a.arrives(t, err, "", "OWN")
					if err == nil || !strings.Contains(err.Error(), name) {
						t.Errorf("got %v", err)
					}
				})
			}
		})
	}
}
