package pg

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// connStrVar is the backend's variable for conn_str. The libpq variables are in [keywords].
const connStrVar = "PG_CONN_STR"

// serviceFile is the keyword for the connection service file, which defines the service.
const serviceFile = "servicefile"

// settings maps libpq keywords to values, like a connection string.
type settings map[string]string

// set sets a keyword. It ignores an empty value, which has no effect in a connection string.
func (s settings) set(key, value string) {
	if key == "database" { // Go's drivers also accept this name
		key = "dbname"
	}
	if value != "" {
		s[key] = value
	}
}

// target is a database, with the settings and credentials for opening it.
type target struct {
	settings                       // the effective settings: from the connection string, then the service, then the environment
	own         settings           // settings from the connection string alone
	grant       source.Grant       // the block and the variables that the settings come from
	credentials source.Credentials // Table holds the keywords; Env is nil if variables must not be read
	named       bool               // the block was chosen by name; home directory files, which may be for another login, are not read
}

// choose returns the target of the block called name.
func choose(credentials source.Credentials, name string) (target, error) {
	g, err := credentials.Named("credentials_name", name)
	if err != nil {
		return target{}, err
	}
	t := target{credentials: credentials, named: name != ""}
	t.credentials.Table, t.credentials.Env = keywords(), g.Env
	if t.own, err = parseConnStr(g.String("conn_str")); err != nil {
		return target{}, g.Errorf("conn_str", "%w", err)
	}
	if err := t.complete(g, "conn_str", t.own); err != nil {
		return target{}, err
	}
	if len(t.settings) == 0 {
		hint := "set conn_str in {credentials}"
		if g.ReadsEnvironment() {
			hint += ", or set " + connStrVar + ", or set variables of libpq like PGHOST"
		}
		nothing := errors.New("no database is set; " + hint)
		if g.Found {
			nothing = g.Errorf("", "%w", nothing)
		}
		return target{}, nothing
	}
	if err := t.check(); err != nil {
		return target{}, g.Errorf("", "%w", err)
	}
	return t, nil
}

// complete sets t.settings and t.grant from document and from the environment. The attribute of g either
// contains the document (conn_str) or names it (service).
func (t *target) complete(g source.Grant, attribute string, document settings) (err error) {
	c, values := t.credentials, map[string]cty.Value{}
	for key, value := range document {
		values[key] = cty.StringVal(value)
	}
	if document["service"] != "" { // the service may set any other keyword, so no variable sets one until the service is read
		c.Table.Attrs = slices.Clone(c.Table.Attrs)
		for i, a := range c.Table.Attrs {
			if a.Name != serviceFile {
				c.Table.Attrs[i].Env = nil
			}
		}
	}
	if t.grant, err = c.Complete(g, attribute, unstable.NewEntry("conn_str", c.Table, values)); err != nil {
		return err
	}
	t.settings = maps.Clone(document)
	for _, a := range c.Table.Attrs {
		t.set(a.Name, t.grant.String(a.Name))
	}
	return nil
}

// home declares that the PG* variables are meant only for the server in PGHOST or PGHOSTADDR.
func home() source.Home {
	return source.Home{Vars: []string{"PGHOST", "PGHOSTADDR"}, Attrs: []string{"host", "hostaddr"}, Compare: near}
}

func near(home, asked string) source.Match {
	return source.SameServerIf(strings.EqualFold(home, asked))
}

// keywords returns the connection string keywords for which libpq has variables.
//
// https://www.postgresql.org/docs/current/libpq-envars.html
func keywords() attr.Table {
	t := attr.Table{Name: "conn_str", Attrs: []attr.Attr{
		{Name: "password", Env: []string{"PGPASSWORD"}, Secrecy: attr.Secret, Group: "password", Harmless: harmless.Secret},
		{Name: "passfile", Env: []string{"PGPASSFILE"}, Secrecy: attr.NamesSecret, Group: "password", Harmless: harmless.Secret},
		{Name: "sslmode", Env: []string{"PGSSLMODE"}, HarmlessIf: harmless.OneOf("require", "verify-ca", "verify-full"),
			Harmless: "The connection is then protected as well as it is without it, or better."},
		{Name: "require_auth", Env: []string{"PGREQUIREAUTH"}, HarmlessIf: harmless.OneOf("scram-sha-256"),
			Harmless: "The server then does not get the password itself."},
		{Name: "channel_binding", Env: []string{"PGCHANNELBINDING"}, HarmlessIf: harmless.OneOf("prefer", "require"),
			Harmless: "The connection is then protected as well as it is without it, or better."},
		{Name: "sslcert", Env: []string{"PGSSLCERT"}, Group: "certificate",
			Harmless: "A certificate is shown to whatever server the code names, and proves nothing without its key."},
		{Name: "sslkey", Env: []string{"PGSSLKEY"}, Secrecy: attr.NamesSecret, Group: "certificate", Harmless: harmless.Secret},
		{Name: "sslpassword", Env: []string{"PGSSLPASSWORD"}, Secrecy: attr.Secret, Group: "certificate", Harmless: harmless.Secret},
		{Name: "dbname", Env: []string{"PGDATABASE"}, Harmless: "Whatever the database, the same server gets the password."},
		{Name: "application_name", Env: []string{"PGAPPNAME"}, Harmless: "It is what the server calls the session in its logs."},
		{Name: "timezone", Env: []string{"PGTZ"}, Harmless: "It says how the server writes times."},
		{Name: "connect_timeout", Env: []string{"PGCONNECT_TIMEOUT"}, Harmless: "Patience changes neither what is sent nor where."},
		{Name: "target_session_attrs", Env: []string{"PGTARGETSESSIONATTRS"}, Harmless: "It chooses among the servers that the code names."},
	}}
	// These are not harmless. They choose the server, the user, or how the server is verified; a service may
	// set any keyword.
	for name, variable := range map[string]string{
		"host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT", "user": "PGUSER", "options": "PGOPTIONS",
		"service": "PGSERVICE", serviceFile: "PGSERVICEFILE", "requirepeer": "PGREQUIREPEER", "krbsrvname": "PGKRBSRVNAME",
		"sslnegotiation": "PGSSLNEGOTIATION", "sslcertmode": "PGSSLCERTMODE", "sslsni": "PGSSLSNI", "sslrootcert": "PGSSLROOTCERT",
		"sslcrl": "PGSSLCRL", "sslcrldir": "PGSSLCRLDIR",
		"min_protocol_version": "PGMINPROTOCOLVERSION", "max_protocol_version": "PGMAXPROTOCOLVERSION",
	} {
		t.Attrs = append(t.Attrs, attr.Attr{Name: name, Env: []string{variable}})
	}
	for i := range t.Attrs {
		t.Attrs[i].Type = cty.String
	}
	return t
}

// check returns an error for a setting that would make the connection less secure than it looks, and for a
// misspelled keyword. Unknown keywords are sent to the server, together with a value that may be a password.
func (s settings) check() error {
	known := clientKeywords()
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if meant := syntax.Nearest(key, known); meant != "" && !slices.Contains(known, key) {
			return fmt.Errorf("the name of a connection setting is misspelt; did you mean %s?", meant)
		}
	}
	for _, key := range []string{"sslinline", "sslcrl", "sslcrldir", "requirepeer", "ssl_min_protocol_version", "ssl_max_protocol_version"} {
		if value, set := s[key]; set && value != "false" {
			return fmt.Errorf("the connection setting %s is not supported; remove it", key)
		}
	}
	for key, value := range s {
		if strings.ContainsRune(key+value, 0) {
			return errors.New("the connection settings contain a NUL byte; remove it")
		}
	}
	switch s["sslmode"] {
	case "", "require", "verify-ca", "verify-full", "disable":
	case "allow", "prefer":
		return fmt.Errorf("sslmode %s lets anyone on the network path turn off encryption; use verify-full, verify-ca, require or disable",
			s["sslmode"])
	default:
		return errors.New("sslmode (PGSSLMODE in the environment) must be verify-full, verify-ca, require or disable")
	}
	switch strings.ToLower(strings.ReplaceAll(s["client_encoding"], "-", "")) {
	case "", "utf8", "unicode":
	default:
		return errors.New("client_encoding is not UTF8; remove it")
	}
	if strings.Contains(s["hostaddr"], ",") || s["hostaddr"] != "" && strings.Contains(s["host"], ",") {
		return errors.New("hostaddr cannot be used with more than one host; remove hostaddr")
	}
	return nil
}

// variable returns the libpq environment variable for a keyword, or an empty string if there is none.
func variable(keyword string) string {
	a, _ := keywords().Attr(keyword)
	return strings.Join(a.Env, ", ")
}

// defaultHost is the host to connect to if no setting names one.
const defaultHost = "localhost"

// resolve returns the settings, completed with files in the home directory and the defaults of the backend's
// driver.
func (t target) resolve() (settings, error) {
	theirs := t.settings["service"] != "" && t.own[serviceFile] == "" // conn_str does not name the service file
	if t.settings["service"] != "" {
		if err := t.useService(); err != nil {
			return nil, err
		}
	}
	s, personal := maps.Clone(t.settings), t.personal
	s["port"], s["sslmode"] = cmp.Or(s["port"], "5432"), cmp.Or(s["sslmode"], "require")
	s["passfile"] = cmp.Or(s["passfile"], personal(".pgpass"))
	s["host"] = cmp.Or(s["host"], s["hostaddr"], defaultHost)
	if s["sslcert"] == "" && s["sslkey"] == "" && isFile(personal("postgresql.crt")) && isFile(personal("postgresql.key")) {
		s["sslcert"], s["sslkey"] = personal("postgresql.crt"), personal("postgresql.key")
	}
	if s["sslrootcert"] == "" && isFile(personal("root.crt")) {
		switch err := t.grant.Refuse("sslrootcert", "the file ~/.postgresql/root.crt", "password"); {
		case err == nil || theirs:
			s["sslrootcert"] = personal("root.crt")
		case s["sslmode"] != "disable" && !strings.HasPrefix(s["host"], "/"): // otherwise root.crt would not be used
			return nil, err
		}
	}
	if s["user"] == "" && t.credentials.Env != nil {
		if u, err := user.Current(); err == nil {
			s["user"] = u.Username
		}
	}
	if s["user"] == "" {
		return nil, errors.New("no user is set; set a user in conn_str in {credentials}")
	}
	s["dbname"] = cmp.Or(s["dbname"], s["user"]) // the server's default; set here because the lookup in ~/.pgpass needs it
	return s, nil
}

// useService adds the service's settings. They override the environment, but not the connection string.
func (t *target) useService() error {
	path := t.settings[serviceFile]
	if path == "" {
		const ofHome = ".pg_service.conf"
		if err := t.grant.Refuse(serviceFile, "the file ~/"+ofHome, "password"); err != nil && !t.named {
			return err
		}
		path = t.personal(ofHome)
	}
	service, err := readService(path, t.settings["service"])
	if err != nil {
		return err
	}
	maps.Copy(service, t.own)
	delete(service, "service")
	if err := t.complete(t.grant, "service", service); err != nil {
		return err
	}
	return t.check()
}

// personal returns the path where libpq looks for one of the user's files. It returns an empty string if
// these files must not be read, or if there is no home directory.
func (t target) personal(name string) string {
	switch {
	case t.named:
		return ""
	case runtime.GOOS == "windows":
		dir, err := world.ConfigDir()
		if err != nil {
			return ""
		}
		return filepath.Join(dir, "postgresql", strings.Replace(name, ".pgpass", "pgpass.conf", 1))
	case !strings.HasPrefix(name, "."):
		name = ".postgresql/" + name
	}
	path, err := world.ExpandHome("~/" + name)
	if err != nil {
		return ""
	}
	return path
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return path != "" && err == nil && info.Mode().IsRegular()
}

// readService returns the settings in the section called name of a connection service file.
//
// https://www.postgresql.org/docs/current/libpq-pgservice.html
func readService(path, name string) (settings, error) {
	if path == "" {
		return nil, errors.New("service is set, but servicefile is not; set servicefile to the path of the connection service file")
	}
	data, err := keyfile.ReadText(path)
	if err != nil {
		return nil, fmt.Errorf("the connection service file: %w", err)
	}
	var s settings
	for line := range bytes.Lines(data) {
		text := strings.TrimSpace(string(line))
		if strings.HasPrefix(text, "[") {
			if s != nil {
				break
			}
			if text == "["+name+"]" {
				s = settings{}
			}
			continue
		}
		key, value, ok := strings.Cut(text, "=")
		if s != nil && ok && !strings.HasPrefix(text, "#") {
			s.set(strings.TrimSpace(key), strings.TrimSpace(value))
		}
	}
	switch {
	case s == nil:
		return nil, fmt.Errorf("the connection service file %q has no such service; check the setting service, or PGSERVICE", path)
	case s["service"] != "" || s["servicefile"] != "":
		return nil, fmt.Errorf("the connection service file %q: a service names another service; remove that setting", path)
	}
	return s, nil
}

// driverKeywords returns the keywords that pgconn looks up in the environment, each with a value that has no
// effect. All of them are passed to pgconn, so that it does not use the environment.
func driverKeywords() settings {
	return settings{
		"host": "", "port": "", "dbname": "", "user": "", "password": "", "passfile": "",
		"connect_timeout": "0", "target_session_attrs": "any",
		"sslmode": "", "sslnegotiation": "", "sslcert": "", "sslkey": "", "sslpassword": "", "sslcertmode": "allow", "sslrootcert": "",
		"sslsni":       "1",
		"require_auth": "", "channel_binding": "", "min_protocol_version": "", "max_protocol_version": "",
		"krbsrvname": "", "krbspn": "",
	}
}

// clientKeywords returns the keywords that libpq, the backend's driver or our driver knows. All other
// keywords are sent to the server.
func clientKeywords() []string {
	names := slices.Collect(maps.Keys(driverKeywords()))
	for _, a := range keywords().Attrs {
		names = append(names, a.Name)
	}
	return append(append(names, forServers()...), "fallback_application_name", "load_balance_hosts", "binary_parameters",
		"disable_prepared_binary_result", "sslinline", "ssl_min_protocol_version", "ssl_max_protocol_version")
}

// forServers returns the keywords that libpq knows and passes on to the server.
func forServers() []string {
	return []string{"application_name", "timezone", "options", "client_encoding"}
}

// runtimeParams returns the settings that are sent to the server. They always include application_name and
// client_encoding.
func (s settings) runtimeParams() map[string]string {
	params := map[string]string{"application_name": "terraform-provider-statecrypt"}
	if name := s["fallback_application_name"]; name != "" {
		params["application_name"] = name
	}
	known := clientKeywords()
	for key, value := range s {
		if !slices.Contains(known, key) || slices.Contains(forServers(), key) {
			params[key] = value
		}
	}
	params["client_encoding"] = "UTF8"
	return params
}
