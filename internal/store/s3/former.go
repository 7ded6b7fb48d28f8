package s3

import (
	"errors"
	"fmt"
	"strings"
)

// Former compares the state with that of an s3 backend. A lock keeps out only those who take the
// same one.
func (s *state) Former(kind string, arguments map[string]any) (same bool, err error) {
	text := func(name string) string { t, _ := arguments[name].(string); return t }
	endpoints, _ := arguments["endpoints"].(map[string]any)
	endpoint, _ := endpoints["s3"].(string)
	elsewhere := endpoint != "" && strings.TrimSuffix(endpoint, "/") != strings.TrimSuffix(s.server.Endpoint(), "/")
	same = kind == "s3" && text("bucket") == s.server.Bucket && text("key") == s.key && !elsewhere
	lockfile, _ := arguments["use_lockfile"].(bool)
	theirs, ours := lockNames(lockfile, text("dynamodb_table")), lockNames(s.lockfile, s.bucket.String("dynamodb_table"))
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

func lockNames(lockfile bool, table string) string {
	var names []string
	if lockfile {
		names = append(names, "use_lockfile")
	}
	if table != "" {
		names = append(names, fmt.Sprintf("dynamodb_table = %q", table))
	}
	return strings.Join(names, " and ")
}
