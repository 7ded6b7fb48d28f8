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
		return errors.New("the name starts with a dash; set the name of a branch or tag, or the ID of a commit")
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(" ~^:?*[\\", r) }):
		return errors.New("the name contains a space, a control character or one of ~ ^ : ? * [ \\")
	case strings.Contains(name, ".."), strings.Contains(name, "@{"), name == "@", strings.HasSuffix(name, "."), !utf8.ValidString(name):
		return errors.New(`the name looks like an expression (for example a..b or @{1}), but expressions are not supported`)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return errors.New(`a part of the name is empty, starts with a dot or ends with ".lock"`)
		}
	}
	return nil
}

// CleanPath returns a file's path in the form in which git lists it.
func CleanPath(text string) (string, error) {
	switch clean := path.Clean(text); {
	case text == "" || clean == ".":
		return "", errors.New("the path names no file; set the path of a file inside the repository")
	case recognize.Scheme(text) != "":
		return "", errors.New("this is the address of a server, not a path inside the repository; move it to the argument repository")
	case strings.HasPrefix(clean, "/"):
		return "", errors.New("the path begins with a slash; remove the slash")
	case clean == "..", strings.HasPrefix(clean, "../"):
		return "", errors.New("the path leaves the repository; remove ../")
	case strings.Contains(clean, "\x00"):
		return "", errors.New("the path contains a NUL character; remove it")
	default:
		return clean, nil
	}
}
