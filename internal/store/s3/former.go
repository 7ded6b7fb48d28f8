package s3

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Former compares the state with that of an s3 backend. A lock keeps out only those who take the
// same one.
func (s *state) Former(kind string, arguments map[string]any) (same bool, err error) {
	text := func(name string) string { t, _ := arguments[name].(string); return t }
	theirEndpoints, _ := arguments["endpoints"].(map[string]any)
	ourEndpoints, _ := s.Block("endpoints")
	// An endpoint that only a variable names here is in a variable there as well.
	at := func(service, deprecated string) (theirs, ours string) {
		named, _ := theirEndpoints[service].(string)
		theirs, ours = cmp.Or(named, text(deprecated)), ourEndpoints.String(service)
		if theirs == "" && ourEndpoints.Variable(service) != "" {
			ours = ""
		}
		return strings.TrimSuffix(awsauth.WithScheme(theirs), "/"), strings.TrimSuffix(awsauth.WithScheme(ours), "/")
	}
	theirS3, ourS3 := at("s3", "endpoint")
	theirTables, ourTables := at("dynamodb", "dynamodb_endpoint")
	same = kind == "s3" && text("bucket") == s.server.Bucket && text("key") == s.key && theirS3 == ourS3
	lockfile, _ := arguments["use_lockfile"].(bool)
	theirs := lockNames(lockfile, text("dynamodb_table"), theirTables)
	ours := lockNames(s.lockfile, s.bucket.String("dynamodb_table"), ourTables)
	switch {
	case ours == "":
		return same, errors.New("the block has no lock, so somebody who works without wrap may be about to write over it; set use_lockfile or " +
			"dynamodb_table")
	case !same && !s.Has("use_lockfile") && !s.Has("dynamodb_table"):
		return false, errors.New("nothing says which lock those take who work without wrap; set use_lockfile or dynamodb_table in the block, " +
			"as their backend has it")
	case same && theirs == "":
		return true, errors.New("the s3 backend of this module takes no lock, so somebody who works without wrap may be about to write over " +
			"it; set use_lockfile = true there, and have everybody init first")
	case same && theirs != ours:
		return true, fmt.Errorf("the s3 backend of this module locks with %s, and the block with %s: neither keeps the other out; set the "+
			"same in both", theirs, ours)
	}
	return same, nil
}

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
