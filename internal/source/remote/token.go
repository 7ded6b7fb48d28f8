package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/hcl/ast"
	"github.com/hashicorp/hcl/hcl/parser"
	"github.com/hashicorp/hcl/hcl/strconv"
	"github.com/hashicorp/hcl/hcl/token"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// cliTokens holds the tokens in the files of the Terraform and OpenTofu CLIs.
type cliTokens struct {
	lookup attr.LookupEnv // nil if the environment must not be used

	once  sync.Once
	files map[string]string // tokens by host
	bad   []string          // files that cannot be read
}

// forHost returns the token for a host, which may have a port, or an empty string if there is none.
func (t *cliTokens) forHost(host string) string {
	t.once.Do(t.readFiles)
	return t.files[canonical(host)]
}

// canonical returns a host in the form in which the CLIs compare hosts, or an empty string if the host is
// invalid.
func canonical(host string) string {
	h, err := svchost.ForComparison(svchost.ForDisplay(host))
	if err != nil {
		return ""
	}
	return h.String()
}

// trouble returns text about unreadable files, for errors about a missing token.
func (t *cliTokens) trouble() string {
	t.once.Do(t.readFiles)
	if len(t.bad) == 0 {
		return ""
	}
	return ", and these CLI files cannot be read: " + strings.Join(t.bad, ", ")
}

// variable returns the name of the environment variable with the token for a host. Dots and hyphens are
// replaced, because shells do not allow them in variable names.
func variable(host string) string {
	return "TF_TOKEN_" + strings.NewReplacer(".", "_", "-", "__").Replace(host)
}

// variables returns all names under which the CLIs accept an environment variable with the token for a host,
// except names that mix lowercase and capital letters.
func variables(host string) []string {
	if host = canonical(host); host == "" {
		return nil
	}
	var names []string
	for _, h := range []string{host, strings.ToUpper(host)} {
		for _, hyphen := range []string{"__", "-"} {
			for _, dot := range []string{"_", "."} {
				names = append(names, "TF_TOKEN_"+strings.NewReplacer(".", dot, "-", hyphen).Replace(h))
			}
		}
	}
	return names
}

func (t *cliTokens) readFiles() {
	t.files = map[string]string{}
	for _, path := range t.paths() {
		tokens, err := readTokens(path)
		if err != nil {
			t.bad = append(t.bad, fmt.Sprintf("%s (%v)", path, err))
			continue
		}
		for host, token := range tokens {
			if h, err := svchost.ForComparison(host); err == nil && t.files[h.String()] == "" {
				t.files[h.String()] = token
			}
		}
	}
}

// paths returns the paths of the files that may contain tokens, in order of precedence.
func (t *cliTokens) paths() []string {
	if one, ok := t.lookup.Get("TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG"); ok {
		return []string{one}
	}
	var paths []string
	add := func(dir string, names ...string) {
		for _, name := range names {
			if dir != "" {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
	}
	if runtime.GOOS == "windows" {
		dir, _ := world.ConfigDir()
		add(dir, `terraform.d\credentials.tfrc.json`, "tofu.rc", "terraform.rc")
		return paths
	}
	home, _ := world.Home()
	xdg, _ := t.lookup.Get("XDG_CONFIG_HOME")
	add(home, ".terraform.d/credentials.tfrc.json")
	add(xdg, "opentofu/credentials.tfrc.json")
	add(home, ".tofurc", ".terraformrc")
	add(xdg, "opentofu/tofurc")
	return paths
}

// readTokens returns the tokens in the credentials blocks of one file, by host. It returns none if the file
// does not exist. Its errors do not contain any part of the file.
func readTokens(path string) (map[string]string, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // such as /dev/null
		return nil, nil
	}
	text, err := keyfile.ReadText(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, errors.Unwrap(err)
	}
	if trimmed := strings.TrimSpace(string(text)); strings.HasPrefix(trimmed, "{") {
		return parseJSON(text)
	}
	return parseHCL(text)
}

func parseJSON(text []byte) (map[string]string, error) {
	var file struct {
		Credentials map[string]struct {
			Token string `json:"token"`
		} `json:"credentials"`
	}
	if json.Unmarshal(text, &file) != nil {
		return nil, errors.New("its JSON is not in the CLI's format")
	}
	tokens := map[string]string{}
	for host, c := range file.Credentials {
		tokens[host] = c.Token
	}
	return tokens, nil
}

// maxBrackets is far more than the number of brackets in any real CLI file. It is needed because the parser's
// running time grows with the square of the nesting depth of lists.
const maxBrackets = 5000

// parseHCL returns the tokens in a file such as .terraformrc, which the CLIs read as HCL 1. It ignores other
// parts of the file.
func parseHCL(text []byte) (map[string]string, error) {
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > maxBrackets {
		return nil, errors.New("it has more brackets than any CLI file")
	}
	file, err := parser.ParseDontErrorOnDuplicateKeys(text) // like Terraform; OpenTofu refuses duplicates
	if err != nil {
		return nil, errors.New("its syntax is not valid")
	}
	tokens := map[string]string{}
	if root, ok := file.Node.(*ast.ObjectList); ok {
		err = findTokens(root, nil, tokens)
	}
	if err != nil {
		return nil, err
	}
	return tokens, nil
}

// findTokens adds the values at the path credentials, host, token to tokens, by host. In HCL 1, each part of
// the path may be a block label, a block name or an argument name.
func findTokens(list *ast.ObjectList, above []string, tokens map[string]string) error {
	for _, item := range list.Items {
		path := slices.Clone(above)
		for _, key := range item.Keys[:min(len(item.Keys), 4)] {
			name, _ := textOf(key.Token)
			path = append(path, name)
		}
		if len(path) == 0 || path[0] != "credentials" {
			continue
		}
		object, isObject := item.Val.(*ast.ObjectType)
		switch {
		case len(path) < 3 && isObject:
			if err := findTokens(object.List, path, tokens); err != nil {
				return err
			}
		case len(path) < 3:
			return errors.New("a credentials block is not in the CLI's format")
		case len(path) == 3 && path[2] == "token":
			literal, _ := item.Val.(*ast.LiteralType)
			if literal == nil {
				return errNoString
			}
			text, ok := textOf(literal.Token)
			if !ok {
				return errNoString
			}
			tokens[path[1]] = text
		}
	}
	return nil
}

var errNoString = errors.New("the token in a credentials block is not a string")

// textOf returns the text of a name or a quoted string. It returns false for other tokens.
func textOf(t token.Token) (string, bool) {
	switch t.Type {
	case token.IDENT:
		return t.Text, true
	case token.STRING:
		text, err := strconv.Unquote(t.Text)
		return text, err == nil
	}
	return "", false
}
