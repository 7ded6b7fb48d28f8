package pg

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/trust"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const (
	patience = 2 * time.Minute // limit for one read, from connecting to the last byte

	// connecting limits the time for connecting and logging in, unless connect_timeout is set.
	connecting = 30 * time.Second

	// goodbye limits the time for telling the server that the query was cancelled or that the connection is
	// closed.
	goodbye = 500 * time.Millisecond

	// overhead limits the number of bytes that a server sends in addition to the state: its parameters,
	// notices, and login responses.
	overhead = 1 << 20

	// maxValue is the maximum size of a PostgreSQL value, in bytes.
	maxValue = 1 << 30
)

// connection holds the driver configuration, and facts about it for errors and warnings.
type connection struct {
	config     *pgconn.Config
	local      bool // whether all hosts are this machine
	encrypted  bool
	verified   bool
	hasAccount bool // whether there is a password or a client certificate
}

// newConnection reads the files that s names and prepares a connection that can read a state of at most limit
// bytes. It does not contact the server.
func newConnection(w world.World, s settings, limit int64) (*connection, error) {
	config, err := driverConfig(s)
	if err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connecting
	}
	c := &connection{
		config: config, local: true,
		encrypted:  s["sslmode"] != "disable",
		verified:   strings.HasPrefix(s["sslmode"], "verify-") || s["sslmode"] == "require" && s["sslrootcert"] != "",
		hasAccount: config.Password != "" || s["sslcert"] != "",
	}
	for host := range strings.SplitSeq(s["host"], ",") {
		c.local = c.local && isLocal(host)
	}
	if addr := s["hostaddr"]; addr != "" {
		c.local = isLocal(addr)
		config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{addr}, nil }
	}
	config.RuntimeParams = s.runtimeParams()
	secure(config)
	if config.TLSConfig != nil && c.verified && s["sslrootcert"] == "" {
		if err := trust.Check(w); err != nil {
			return nil, err
		}
	}
	if !c.verified && !c.local {
		config.RequireAuth = withoutPassword(config.RequireAuth) // an unverified server would receive the password in plaintext
	}
	allowed := min(limit, maxValue) + overhead
	config.MaxProtocolMessageBodyLen = int(allowed)
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(&capped{r, allowed}, w)
	}
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		// Without a cancel request, the server would continue the query.
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: goodbye}
	}
	return c, nil
}

// unreadable returns an error for the first TLS file that cannot be read, or nil if there is none. The error
// shows a path only if it surely is one, because it may be the key itself.
func (s settings) unreadable() error {
	half := (s["sslkey"] == "") != (s["sslcert"] == "")
	for _, key := range []string{"sslrootcert", "sslkey", "sslcert"} {
		if s[key] == "" || s[key] == "system" || half && key != "sslrootcert" {
			continue
		}
		if _, err := keyfile.Read(s[key]); err != nil {
			return fmt.Errorf("the file%s that %s names in the connection settings: %w", shownPath(s[key]), key, errors.Unwrap(err))
		}
	}
	return nil
}

// driverConfig passes the settings to pgconn, which reads the files that they name. It gives each keyword a
// value, because pgconn looks up missing keywords in the environment. The exception is the service: if
// PGSERVICE is set, pgconn reads the service file and fails if it cannot, but it uses none of the values.
func driverConfig(s settings) (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(s.driverText())
	if err == nil {
		return config, nil
	}
	// The error may contain parts of the password.
	switch text := err.Error(); {
	case strings.Contains(text, "failed to read service"):
		return nil, errors.New("the environment variable PGSERVICE names a service that cannot be read; unset the variable")
	case strings.Contains(text, "failed to configure TLS"):
		if err := s.unreadable(); err != nil {
			return nil, err
		}
		return nil, errors.New("sslcert, sslkey or sslrootcert cannot be used; set them to the paths of PEM files. Set both sslcert and " +
			"sslkey, or neither. If sslkey is encrypted, set sslpassword")
	}
	return nil, errors.New(s.unusable())
}

// unusable returns an error message for the setting that the driver rejects. It finds that setting by
// removing one setting at a time until the driver accepts the rest. If it finds none, the message names all
// candidates.
func (s settings) unusable() string {
	means := map[string]string{
		"port": "set it to a number from 1 to 65535", "connect_timeout": "set it to a number of seconds",
		"sslcertmode": "set it to disable, allow or require", "channel_binding": "set it to disable, prefer or require",
		"target_session_attrs": "set it to any, read-write, read-only, primary, standby or prefer-standby",
		"require_auth":         "set it to names of login methods like scram-sha-256",
	}
	for _, key := range slices.Sorted(maps.Keys(means)) {
		without := maps.Clone(s)
		delete(without, key)
		if _, err := pgconn.ParseConfig(without.driverText()); s[key] != "" && err == nil {
			what := "the connection setting " + key
			if variable := variable(key); variable != "" {
				what += " (" + variable + " in the environment)"
			}
			return what + " is not valid; " + means[key]
		}
	}
	return "the connection settings cannot be used; check " + strings.Join(slices.Sorted(maps.Keys(means)), ", ")
}

// driverText returns a connection string for the driver with all of the driver's keywords.
func (s settings) driverText() string {
	var text strings.Builder
	escape := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	for key, value := range driverKeywords() {
		if own, set := s[key]; set {
			value = own
		}
		fmt.Fprintf(&text, "%s='%s' ", key, escape.Replace(value))
	}
	return text.String()
}

// secure requires at least TLS 1.2, regardless of the settings.
func secure(config *pgconn.Config) {
	all := []*tls.Config{config.TLSConfig}
	for _, f := range config.Fallbacks {
		all = append(all, f.TLSConfig)
	}
	for _, c := range all {
		if c != nil {
			c.MinVersion = tls.VersionTLS12
		}
	}
}

// withoutPassword adds "!password" to the value of require_auth, which forbids sending the password in
// plaintext. It does not change a value that already contains it or that lists the allowed methods.
func withoutPassword(requireAuth string) string {
	const no = "!password"
	switch {
	case requireAuth == "":
		return no
	case strings.HasPrefix(requireAuth, "!") && !strings.Contains(requireAuth, no):
		return requireAuth + "," + no
	}
	return requireAuth
}

// isLocal reports whether connections to host stay on this machine.
func isLocal(host string) bool {
	return strings.HasPrefix(host, "/") || netfail.IsLoopback(host)
}

// warnings returns a warning if a connection to another machine was not encrypted or not verified.
func (c *connection) warnings() []source.Warning {
	switch {
	case c.local:
		return nil
	case !c.encrypted:
		return []source.Warning{{Title: netfail.NotEncrypted, Text: "The connection to PostgreSQL was not encrypted, because sslmode is " +
			"disable. Anyone on the network path can read and replace the state; set sslmode=verify-full."}}
	case !c.verified:
		return []source.Warning{{Title: netfail.NotVerified, Text: "The certificate of the PostgreSQL server was not verified, because " +
			"sslmode is require (the default) and sslrootcert is not set. Anyone on the network path can read the credentials and " +
			"replace the state; set sslmode=verify-full."}}
	}
	return nil
}

// capped is a reader that fails with errTooMuch after left bytes, because a server could send data endlessly.
type capped struct {
	io.Reader
	left int64
}

var errTooMuch = errors.New("the server sent more data than requested")

func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuch
	}
	n, err := c.Reader.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// shownPath returns a space and the quoted path if path surely is a path. Otherwise it returns an empty
// string.
func shownPath(path string) string {
	if shown := keyfile.Shown(path); shown != "" {
		return " " + shown
	}
	return ""
}
