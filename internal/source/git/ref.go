package git

import (
	"errors"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// ref is a request's ref after it was checked.
type ref struct {
	name       string   // as written in the settings; "HEAD" by default
	candidates []string // full names in the order to try, or one object id
	isID       bool
}

func (r ref) String() string { return shown(r.name) }

// isBranch reports whether the ref can only be a branch.
func (r ref) isBranch() bool {
	return len(r.candidates) == 1 && strings.HasPrefix(r.candidates[0], "refs/heads/")
}

var objectID = lazyregexp.New(`^([0-9A-Fa-f]{40}|[0-9A-Fa-f]{64})$`)

// parseRef expands a short name to the full names of a branch and a tag, in this order. Git fetch itself
// would prefer a tag to a branch of the same name.
func parseRef(text string) (ref, error) {
	switch {
	case text == "" || text == "HEAD":
		return ref{name: "HEAD", candidates: []string{"HEAD"}}, nil
	case objectID.MatchString(text):
		id := strings.ToLower(text)
		return ref{name: id, candidates: []string{id}, isID: true}, nil
	}
	if err := CheckBranch(text); err != nil {
		return ref{}, err
	}
	if strings.HasPrefix(text, "refs/") {
		return ref{name: text, candidates: []string{text}}, nil
	}
	return ref{name: text, candidates: []string{"refs/heads/" + text, "refs/tags/" + text}}, nil
}

// CheckBranch returns an error for a name that breaks the rules of git-check-ref-format(1). In a refspec,
// such a name could be a pattern, name two refs or be an option.
func CheckBranch(name string) error {
	switch {
	case strings.HasPrefix(name, "-"):
		return errors.New("a ref must not start with a dash; set a branch, tag or commit, such as main")
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(" ~^:?*[\\", r) }):
		return errors.New("a ref must not contain spaces, control characters or any of ~ ^ : ? * [ \\")
	case strings.Contains(name, ".."), strings.Contains(name, "@{"), name == "@", strings.HasSuffix(name, "."), !utf8.ValidString(name):
		return errors.New(`this is not the name of a branch or tag; expressions such as "a..b" and "@{1}" are not supported`)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return errors.New(`no part of a ref may be empty, start with a dot or end with ".lock"`)
		}
	}
	return nil
}

// CleanPath returns a file's path in the form in which git lists it.
func CleanPath(text string) (string, error) {
	switch clean := path.Clean(text); {
	case text == "" || clean == ".":
		return "", errors.New("the path of a file inside the repository is required")
	case recognize.Scheme(text) != "":
		return "", errors.New("a path inside the repository is required, but this is the address of a server, which belongs in repository")
	case strings.HasPrefix(clean, "/"):
		return "", errors.New("the path starts at the root of the repository; remove the leading slash")
	case clean == "..", strings.HasPrefix(clean, "../"):
		return "", errors.New("the path leaves the repository, because it starts at the repository's root; remove ../")
	case strings.Contains(clean, "\x00"):
		return "", errors.New("the path contains a NUL character")
	default:
		return clean, nil
	}
}
