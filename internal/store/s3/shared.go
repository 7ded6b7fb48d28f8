package s3

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// IsStateOf reports whether an s3 backend with these arguments uses the same state. It returns an error if our lock
// would not keep out users of that backend, or if this is unknown.
func (s *state) IsStateOf(kind string, arguments map[string]any) (same bool, err error) {
	text := func(name string) string { t, _ := arguments[name].(string); return t }
	theirEndpoints, _ := arguments["endpoints"].(map[string]any)
	ourEndpoints, _ := s.Block("endpoints")
	// If their backend names no endpoint, it uses the environment variables, as we do.
	at := func(service, deprecated string, variables ...string) (theirs, ours string) {
		named, _ := theirEndpoints[service].(string)
		if theirs = cmp.Or(named, text(deprecated)); theirs == "" {
			theirs, _ = s.Environment().Get(variables...)
		}
		return endpoint(theirs), endpoint(ourEndpoints.String(service))
	}
	theirS3, ourS3 := at("s3", "endpoint", "AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT", "AWS_ENDPOINT_URL")
	theirTables, ourTables := at("dynamodb", "dynamodb_endpoint", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_DYNAMODB_ENDPOINT", "AWS_ENDPOINT_URL")
	// A store may have several addresses, so the same names at a different address may mean the same state.
	mayBe := kind == "s3" && text("bucket") == s.server.Bucket && text("key") == s.key
	same = mayBe && theirS3 == ourS3
	lockfile, _ := arguments["use_lockfile"].(bool)
	theirs := lockNames(lockfile, text("dynamodb_table"), theirTables)
	ours := lockNames(s.lockfile, s.bucket.String("dynamodb_table"), ourTables)
	switch {
	case ours == "":
		return same, errors.New("the block has no lock, so someone without wrap may overwrite the state; set use_lockfile or dynamodb_table in " +
			"the block")
	case !mayBe && !s.Has("use_lockfile") && !s.Has("dynamodb_table"):
		return false, errors.New("the block does not say which lock the s3 backend uses without wrap; set use_lockfile or dynamodb_table in " +
			"the block as in that backend")
	case mayBe && theirs == "":
		return same, errors.New("the s3 backend of this module uses no lock, so someone without wrap may overwrite the state; set " +
			"use_lockfile = true in the backend, and have everybody run init")
	case mayBe && theirs != ours:
		return same, fmt.Errorf("the s3 backend of this module locks with %s, but the block locks with %s, so the locks do not exclude "+
			"each other; set the same lock in both", theirs, ours)
	}
	return same, nil
}

// endpoint returns a URL in the form used for comparisons, or an empty string for the AWS endpoints.
func endpoint(text string) string {
	u, err := url.Parse(strings.TrimSuffix(recognize.WithScheme(text), "/"))
	if err != nil {
		return text
	}
	u.Host = strings.ToLower(u.Host)
	if ofAWS.MatchString(u.String()) {
		return ""
	}
	return u.String()
}

var ofAWS = lazyregexp.New(`^https://(s3|dynamodb)([.-][0-9a-z-]+)?\.amazonaws\.com(\.cn)?$`)

func lockNames(lockfile bool, table, endpoint string) string {
	var names []string
	if lockfile {
		names = append(names, "use_lockfile")
	}
	if table != "" {
		table = fmt.Sprintf("dynamodb_table = %q", table)
		if u, err := url.Parse(endpoint); err == nil && endpoint != "" {
			table += " at " + outside.Line(source.Origin(u), 300)
		}
		names = append(names, table)
	}
	return strings.Join(names, " and ")
}
