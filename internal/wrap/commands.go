package wrap

import (
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// command is a subcommand that wrap knows. What is not in the table is refused:
// nobody has looked at what it does with a state.
type command struct {
	name  string
	does  effect
	args  int    // how many it may have
	flags string // separated by spaces; those that take a value end in "="
}

// effect is what a command does with the state. Each does what those before it do.
type effect int

const (
	passes  effect = iota // nothing, so it gets no backend
	reads                 // of the backend
	writes                // to the backend
	changes               // what the state describes: it could not be written down otherwise
)

// Flags that several commands have, in any version of Terraform and OpenTofu. One
// that a version does not have is refused there.
const (
	inputs    = "var= var-file= "
	view      = inputs + "input json json-into= compact-warnings concise consolidate-warnings consolidate-errors deprecation= show-sensitive "
	locks     = view + "lock lock-timeout= ignore-remote-version "
	operation = locks + "parallelism= refresh refresh-only destroy allow-deferral target= target-file= exclude= exclude-file= replace= " +
		"invoke= "
	everyone = "no-color help h "
)

func commands() []command {
	return []command{
		{name: "apply", does: changes, args: 1, flags: operation + "auto-approve suppress-forget-errors"},
		{name: "console", does: reads, flags: view + "plan target="},
		{name: "destroy", does: changes, flags: operation + "auto-approve suppress-forget-errors"},
		{name: "fmt", does: passes, args: many, flags: "list write diff check recursive"},
		{name: "force-unlock", does: writes, args: 1, flags: view + "force"},
		{name: "get", does: passes, flags: view + "update test-directory="},
		{name: "graph", does: reads, flags: view + "draw-cycles type= module-depth= verbose plan="},
		{name: "import", does: changes, args: 2, flags: operation},
		{
			name: "init", does: writes,
			flags: locks + "backend cloud get upgrade lockfile= plugin-dir= target= test-directory= create-default-workspace",
		},
		{name: "login", does: passes, args: 1, flags: view},
		{name: "logout", does: passes, args: 1, flags: view},
		{name: "metadata functions", does: passes, flags: view},
		{name: "modules", does: passes, flags: view},
		{name: "output", does: reads, args: 1, flags: view + "raw"},
		{name: "plan", does: reads, flags: operation + "out= generate-config-out= detailed-exitcode"},
		{name: "providers", does: reads, flags: view + "test-directory="},
		{name: "providers lock", does: passes, args: many, flags: view + "platform= fs-mirror= net-mirror= enable-plugin-cache test-directory="},
		{name: "providers mirror", does: passes, args: 1, flags: view + "platform= lock-file"},
		{name: "providers schema", does: reads, flags: view},
		{name: "refresh", does: changes, flags: operation},
		{name: "show", does: reads, args: 1, flags: view + "state plan= config module="},
		{name: "state identities", does: reads, args: many, flags: view + "id="},
		{name: "state list", does: reads, args: many, flags: view + "id="},
		{name: "state ls", does: reads, args: many, flags: view + "id="},
		{name: "state move", does: writes, args: 2, flags: locks + "dry-run"},
		{name: "state mv", does: writes, args: 2, flags: locks + "dry-run"},
		{name: "state pull", does: reads, flags: view},
		{name: "state push", does: writes, args: 1, flags: locks + "force"},
		{name: "state remove", does: writes, args: many, flags: locks + "dry-run"},
		{name: "state replace-provider", does: writes, args: 2, flags: locks + "auto-approve"},
		{name: "state rm", does: writes, args: many, flags: locks + "dry-run"},
		{name: "state show", does: reads, args: 1, flags: view},
		{name: "taint", does: writes, args: 1, flags: locks + "allow-missing"},
		{name: "untaint", does: writes, args: 1, flags: locks + "allow-missing"},
		{name: "validate", does: passes, flags: view + "test-directory= no-tests query"},
		{name: "version", does: passes, flags: view},
		{name: "workspace show", does: reads, flags: view},
	}
}

const many = 1 << 30

// flag reports whether the command has a flag, and whether that takes a value.
func (c command) flag(name string) (takes, known bool) {
	flags := strings.Fields(everyone + c.flags)
	takes = slices.Contains(flags, name+"=")
	return takes, takes || slices.Contains(flags, name)
}

// subcommands are those of two words that begin with name.
func subcommands(name string) (names []string) {
	for _, c := range commands() {
		if strings.HasPrefix(c.name, name+" ") {
			names = append(names, c.name)
		}
	}
	return names
}

// commandsWith are those with a flag that few have.
func commandsWith(flag string) (names []string) {
	const few = 2
	for _, c := range commands() {
		if _, known := c.flag(flag); known {
			names = append(names, c.name)
		}
	}
	if len(names) > few {
		return nil
	}
	return names
}

// IsCommand reports whether Terraform or OpenTofu has a command of this name.
func IsCommand(name string) bool {
	return slices.ContainsFunc(commands(), func(c command) bool { return strings.Fields(c.name)[0] == name })
}

// IsFlag reports whether one of the commands has a flag.
func IsFlag(name string) bool {
	return slices.ContainsFunc(commands(), func(c command) bool {
		_, known := c.flag(name)
		return known
	})
}

// Shown is a flag as errors show it: one that neither Terraform and OpenTofu have, nor is
// among the names, may begin like one, and be a secret.
func Shown(flag string, names []string) string {
	flag, _, _ = strings.Cut(flag, "=")
	name := strings.TrimLeft(flag, "-")
	dashes := strings.TrimSuffix(flag, name)
	if len(name) < 2 || IsFlag(name) || whyNot(name) != "" || slices.Contains(names, name) || isMisspelt(name, names) {
		return dashes + outside.Line(name, 100)
	}
	return "that begins with " + dashes + outside.Line(name[:1], 100)
}

// isMisspelt reports whether a name is nearly one of these, or one of Terraform's.
func isMisspelt(name string, names []string) bool {
	for _, c := range commands() {
		names = append(names, strings.Fields(strings.ReplaceAll(everyone+c.flags, "=", ""))...)
	}
	return len(name) > 3 && syntax.Nearest(name, names) != ""
}

// whyNot says why a flag is refused, "" if nobody knows the flag.
func whyNot(flag string) string {
	switch flag {
	case "backend-config":
		return `it could send the state past the encryption; a block backend "http" in the file of -config, or the ` +
			"STATECRYPT_HTTP_* variables, say where it is"
	case "state", "state-out", "backup", "backup-out":
		return "it names a state that is not encrypted; leave it out: the state is where the backend has it"
	case "migrate-state", "force-copy", "reconfigure":
		return "wrap -encrypt-existing moves a state in, and wrap -leave moves one out"
	case "from-module":
		return "it brings a module that wrap has not read"
	case "chdir":
		return "it belongs before the subcommand"
	case "config", "encrypt-existing", "leave":
		return "that of wrap belongs before the program"
	}
	return ""
}
