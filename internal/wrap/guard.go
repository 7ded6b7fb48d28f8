package wrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/world"
)

// invocation is a run of terraform or tofu.
type invocation struct {
	command []string
	name    string   // the subcommand, "" if there is none
	words   []string // arguments, also those in variables
	quoting string   // a variable whose words for apply are hard to tell apart, "" if there is none
	dir     string   // where the child works
	data    string   // its .terraform
}

func newInvocation(command, environ []string) (*invocation, error) {
	if len(command) == 0 || !isCLI(command[0]) {
		return nil, errors.New("only terraform and tofu can be run")
	}
	i := &invocation{command: command, dir: ".", words: slices.Clone(command[1:])}
	lookup := world.Lookup(environ)
	common, _ := lookup("TF_CLI_ARGS")
	for _, arg := range append(i.words, words(common)...) {
		if !strings.HasPrefix(arg, "-") {
			i.name, _, _ = strings.Cut(arg, " ") // the CLI finds "apply" in "apply "
			break
		}
		if dir, ok := strings.CutPrefix(arg, "-chdir="); ok {
			i.dir = dir
		}
	}
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		if name = strings.ToUpper(name); !strings.HasPrefix(name, "TF_CLI_ARGS") {
			continue
		}
		i.words = append(i.words, words(text)...)
		if strings.ContainsAny(text, "\"'\\") && (name == "TF_CLI_ARGS" || name == "TF_CLI_ARGS_APPLY") {
			i.quoting = pair[:len(name)]
		}
	}
	i.data = ".terraform"
	if dir, _ := lookup("TF_DATA_DIR"); dir != "" {
		i.data = dir
	}
	if !filepath.IsAbs(i.data) {
		i.data = filepath.Join(i.dir, i.data)
	}
	var err error
	i.data, err = filepath.Abs(i.data) // "~" is not the home directory
	return i, err
}

func isCLI(program string) bool {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(program)), ".exe")
	return name == "terraform" || name == "tofu"
}

// words are the arguments in the value of a variable. Quotes and backslashes are
// left out, so that they hide no flag; one with a space in it becomes several.
func words(text string) []string {
	return strings.Fields(strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(text))
}

// has reports whether a flag is set.
func (i *invocation) has(flag string) bool {
	return slices.ContainsFunc(i.words, func(word string) bool {
		name, value, _ := strings.Cut(word, "=")
		return strings.HasPrefix(word, "-") && strings.TrimLeft(name, "-") == flag && value != "false"
	})
}

// changes reports whether the command changes more than the state.
func (i *invocation) changes() bool {
	return slices.Contains([]string{"apply", "destroy", "import", "refresh"}, i.name) && !i.has("help") && !i.has("h")
}

// check refuses what would make the child read or write a state elsewhere. The
// argument is the result of [invocation.record].
func (i *invocation) check(recorded error) error {
	if i.has("backend-config") {
		return errors.New("-backend-config is refused: it could send the state past the encryption; " +
			"set TF_HTTP_ADDRESS and the other TF_HTTP_* variables")
	}
	for _, flag := range []string{"state", "state-out"} {
		if i.has(flag) {
			return fmt.Errorf("-%s is refused: it names a state that is not encrypted", flag)
		}
	}
	switch {
	case i.name == "init": // looked at afterwards
		return nil
	case recorded != nil || i.name != "apply":
		return recorded
	case i.quoting != "":
		return fmt.Errorf("%s has quotes or backslashes, which could hide a plan from wrap; give such arguments to the command itself", i.quoting)
	}
	return i.checkPlans()
}

// checkPlans looks at whatever may be a plan: a plan brings its backend along.
func (i *invocation) checkPlans() error {
	for _, word := range i.words {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(i.dir, path)
		}
		if err := checkPlan(path); err != nil {
			return fmt.Errorf("the plan %s: %w", outside.Quoted(word, 300), err)
		}
	}
	return nil
}

// checkAfter looks at the record once more, which init writes. Before is what it
// was.
func (i *invocation) checkAfter(stderr io.Writer, before error) error {
	after := i.record()
	switch {
	case after == nil:
		return nil
	case i.name == "init" && before == nil && (i.has("migrate-state") || i.has("force-copy")):
		say(stderr, "the state has been moved to another backend, and wrap does not encrypt it there")
		return nil
	}
	return fmt.Errorf("%w; a state that this run moved there is not encrypted", after)
}

// record looks at what init has written down about the backend. The error says
// how the child would get around us.
func (i *invocation) record() error {
	path := filepath.Join(i.data, "terraform.tfstate")
	content, err := keyfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(`there is no record of a backend; the configuration requires an empty block, backend "http" {}, ` +
			"and init has to be run with wrap")
	}
	if err != nil {
		return err
	}
	var recorded struct {
		Backend *struct {
			Type   string         `json:"type"`
			Config map[string]any `json:"config"`
		} `json:"backend"`
		StateStore any `json:"state_store"`
	}
	switch err := json.Unmarshal(content, &recorded); {
	case err != nil: // it may quote a password
		return fmt.Errorf("%s is not a record of a backend", outside.Quoted(path, 300))
	case recorded.Backend == nil || recorded.StateStore != nil:
		return notOurs("another kind")
	}
	for name, value := range recorded.Backend.Config {
		if value != nil {
			return hasSetting(name)
		}
	}
	if recorded.Backend.Type != "http" {
		return notOurs(outside.Quoted(recorded.Backend.Type, 100))
	}
	return nil
}

func notOurs(kind string) error {
	return fmt.Errorf(`the backend is %s; the configuration requires an empty block, backend "http" {}`, kind)
}

// hasSetting is about any setting: those of the block win over ours.
func hasSetting(name string) error {
	return fmt.Errorf(`the backend has a setting of its own, %s; the block must be empty, backend "http" {}: `+
		"set the TF_HTTP_* variables, and run init -reconfigure with wrap", outside.Quoted(name, 100))
}
