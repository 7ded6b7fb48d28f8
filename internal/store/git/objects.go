package git

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	gitsource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// word runs a git command that prints one word, and returns the word.
func word(ctx context.Context, v *gitsource.Visit, stdin []byte, more []string, args ...string) (string, error) {
	out, err := v.Git(ctx, bytes.NewReader(stdin), more, args...)
	return strings.TrimSpace(string(out)), err
}

// hashObject stores data as a blob, without applying attributes or filters, and returns its ID.
func hashObject(ctx context.Context, v *gitsource.Visit, data []byte) (string, error) {
	return word(ctx, v, data, nil, "hash-object", "-w", "-t", "blob", "--no-filters", "--stdin")
}

// resolve returns the commit ID of a local ref, or an empty string if there is none.
func resolve(ctx context.Context, v *gitsource.Visit, ref string) string {
	id, err := word(ctx, v, nil, nil, "rev-parse", "--verify", "-q", ref)
	if err != nil {
		return ""
	}
	return id
}

// put copies the tree folder, sets the named file to blob, and returns the ID of the copy. An empty folder means an
// empty tree. An empty blob removes the file. put reads only the trees on the path to the file.
func put(ctx context.Context, v *gitsource.Visit, folder, name, blob string) (string, error) {
	tree, err := replace(ctx, v, folder, name, blob)
	if err == nil && tree == "" {
		tree, err = word(ctx, v, nil, nil, "mktree")
	}
	return tree, err
}

func replace(ctx context.Context, v *gitsource.Visit, folder, name, blob string) (string, error) {
	var listing []byte
	if folder != "" {
		var err error
		if listing, err = v.Git(ctx, nil, nil, "ls-tree", "-z", "--full-tree", folder); err != nil {
			return "", err
		}
	}
	name, rest, deeper := strings.Cut(name, "/")
	var entries [][]byte
	old := ""
	for entry := range bytes.SplitAfterSeq(listing, []byte{0}) {
		meta, called, _ := bytes.Cut(bytes.TrimSuffix(entry, []byte{0}), []byte{'\t'})
		switch fields := strings.Fields(string(meta)); {
		case len(entry) == 0:
		case string(called) != name:
			entries = append(entries, entry)
		case deeper == (len(fields) == 3 && fields[1] == "tree"):
			old = fields[2]
		default:
			return "", fmt.Errorf("%s is a file instead of a folder, or a folder instead of a file; change the argument "+
				"path", outside.Quoted(name, 300))
		}
	}
	mode, kind, id := "100644", "blob", blob
	if deeper {
		var err error
		mode, kind = "040000", "tree"
		if id, err = replace(ctx, v, old, rest, blob); err != nil {
			return "", err
		}
	}
	if id != "" {
		entries = append(entries, fmt.Appendf(nil, "%s %s %s\t%s\x00", mode, kind, id, name))
	}
	if len(entries) == 0 {
		return "", nil
	}
	return word(ctx, v, bytes.Join(entries, nil), nil, "mktree", "-z", "--missing")
}

// maker is the author of commits.
type maker struct {
	who   []string // environment variables for git
	signs bool
}

// commitTree creates a commit, and returns its ID. The commit is signed if the user's commit.gpgSign is true.
func (b *branch) commitTree(ctx context.Context, v *gitsource.Visit, message string, args ...string) (string, error) {
	by, err := b.author(ctx, v)
	if err != nil {
		return "", err
	}
	args = append([]string{"-c", "i18n.commitEncoding=UTF-8", "commit-tree"}, args...)
	if by.signs {
		args = append(args, "-S")
	}
	commit, err := word(ctx, v, []byte(message), by.who, args...)
	if err != nil {
		err = fmt.Errorf("could not create the commit: %w", err)
	}
	return commit, err
}

// author asks git for the author of commits, once.
func (b *branch) author(ctx context.Context, v *gitsource.Visit) (*maker, error) {
	b.asking.Lock()
	defer b.asking.Unlock()
	if b.maker == nil {
		who, err := b.who(ctx, v)
		if err != nil {
			return nil, err
		}
		signs, err := word(ctx, v, nil, nil, "config", "--type=bool", "--get", "commit.gpgSign")
		b.maker = &maker{who, err == nil && signs == "true"}
	}
	return b.maker, nil
}

var notAllowed = lazyregexp.New(`auto-detection is disabled|useConfigOnly`)

// who returns the environment variables that set the author of commits. The author comes from the block or from git's
// configuration. If git does not know one either, the author is the local user, as in terraform-backend-git.
func (b *branch) who(ctx context.Context, v *gitsource.Visit) (who []string, err error) {
	name, email := b.Values.String("author_name"), b.Values.String("author_email")
	if name != "" {
		return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email}, nil
	}
	me := store.Me()
	login, _, _ := strings.Cut(me, "@")
	for _, role := range []string{"GIT_COMMITTER", "GIT_AUTHOR"} {
		for _, more := range []string{"", "EMAIL=" + me, role + "_NAME=" + login} { // git uses EMAIL if it has no other address
			if more != "" {
				who = append(who, more)
			}
			if _, err = word(ctx, v, nil, who, "var", role+"_IDENT"); err == nil || ctx.Err() != nil {
				break
			}
			if notAllowed.MatchString(err.Error()) {
				return nil, b.Errorf("author_name", "no author of the commit is known; set author_name and author_email: %w", err)
			}
		}
		if err != nil {
			return nil, cmp.Or(context.Cause(ctx), err)
		}
	}
	return who, nil
}
