package pg

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

// parseConnStr parses a connection string in either of libpq's formats. It does not use pgconn's parser,
// because that parser adds values from the environment. Errors never repeat a part of the text, because any
// part of a malformed connection string may be the password.
//
// https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING
func parseConnStr(text string) (settings, error) {
	if strings.ContainsRune(text, 0) {
		return nil, errors.New("the connection string contains a NUL byte; remove it")
	}
	if strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://") {
		return parseURL(text)
	}
	if scheme.MatchString(text) {
		return nil, errors.New("this URL is for another program; write a URL like postgres://user:password@host:5432/db")
	}
	if semicolons.MatchString(text) {
		return nil, errors.New("this connection string with semicolons is for another program; write pairs with spaces between them, like " +
			"host=db.example.com port=5432 user=tf")
	}
	s, err := parseKeywords(text)
	if host, port, ok := strings.Cut(s["host"], ":"); err == nil && ok && number.MatchString(port) && !strings.Contains(host, "/") {
		err = errors.New("the host includes a port; set the port with port=…")
	}
	return s, err
}

var (
	scheme     = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.:-]*://`)
	semicolons = lazyregexp.New(`^[A-Za-z ]+=[^;' ]*;[A-Za-z ]+=`)
	number     = lazyregexp.New(`^[0-9]+$`)
)

// urlParts matches a connection URL. A password may contain any character that does not end the authority.
var urlParts = lazyregexp.New(`^[a-z]+://(?:([^/?#]*)@)?([^/?#@]*)(?:/([^?#]*))?(?:\?([^#]*))?$`)

// parseURL parses a connection URL without net/url, which does not support lists of hosts with ports.
func parseURL(text string) (settings, error) {
	errNotURL := errors.New("this is not a connection URL like postgres://user:password@host:5432/database; encode special characters in " +
		"the password (write %40 for @)")
	parts := urlParts.FindStringSubmatch(text)
	if parts == nil {
		return nil, errNotURL
	}
	if strings.Contains(parts[3], "@") { // the rest of a password that contains a slash
		return nil, errNotURL
	}
	user, password, _ := strings.Cut(parts[1], ":")
	hosts, ports := splitHosts(parts[2])
	s := settings{}
	for key, value := range map[string]string{"user": user, "password": password, "host": hosts, "port": ports, "dbname": parts[3]} {
		plain, err := url.PathUnescape(value)
		if err != nil || strings.ContainsRune(plain, 0) {
			return nil, errNotURL
		}
		s.set(key, plain)
	}
	query, err := url.ParseQuery(parts[4])
	if err != nil {
		return nil, errNotURL
	}
	for key, values := range query {
		if strings.ContainsRune(key+values[0], 0) {
			return nil, errNotURL
		}
		s.set(key, values[0])
	}
	return s, nil
}

// splitHosts splits a list such as "a:1,[::1]:2" into hosts and ports, each separated by commas. ports is
// empty if no host has a port.
func splitHosts(authority string) (hosts, ports string) {
	var h, p []string
	for host := range strings.SplitSeq(authority, ",") {
		port := ""
		if own, its, err := net.SplitHostPort(host); err == nil {
			host, port = own, its
		}
		h, p = append(h, strings.Trim(host, "[]")), append(p, port)
	}
	if ports = strings.Join(p, ","); strings.Trim(ports, ",") == "" {
		ports = ""
	}
	return strings.Join(h, ","), ports
}

// parseKeywords parses the format host=… user='…', in which a backslash escapes the next character.
func parseKeywords(text string) (settings, error) {
	s := settings{}
	rest := strings.TrimLeftFunc(text, unicode.IsSpace)
	for rest != "" {
		key, after, ok := strings.Cut(rest, "=")
		if key = strings.TrimSpace(key); !ok || key == "" || strings.ContainsFunc(key, unicode.IsSpace) {
			return nil, errors.New("this is neither a URL nor a list of settings; write postgres://… or host=… user=… password='…'")
		}
		value, left, err := cutValue(strings.TrimLeftFunc(after, unicode.IsSpace))
		if err != nil {
			return nil, err
		}
		s.set(key, value)
		rest = strings.TrimLeftFunc(left, unicode.IsSpace)
	}
	return s, nil
}

// cutValue returns the value at the start of text, and the rest of text.
func cutValue(text string) (value, rest string, err error) {
	quoted := strings.HasPrefix(text, "'")
	if quoted {
		text = text[1:]
	}
	var b strings.Builder
	escaped := false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
			b.WriteRune(r)
		case r == '\\':
			escaped = true
		case quoted && r == '\'':
			return b.String(), text[i+1:], nil
		case !quoted && unicode.IsSpace(r):
			return b.String(), text[i:], nil
		default:
			b.WriteRune(r)
		}
	}
	if quoted {
		return "", "", fmt.Errorf("the closing ' of a quoted value is missing; add it")
	}
	return b.String(), "", nil
}
