package cmdline

import (
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/cli"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Command is a subcommand that wrap knows. Unknown subcommands are refused, because their effect on the state is
// unknown.
type Command = cli.Command[Effect]

// Effect is the effect of a command on the state. Each effect includes the effects before it.
type Effect int

const (
	Passes  Effect = iota // no effect, so the command gets no backend
	Reads                 // reads the state
	Writes                // writes the state
	Changes               // changes resources, and only the state records the changes
)

// These constants list the flags that several commands accept in at least one version of Terraform or OpenTofu. A
// version without such a flag refuses it.
const (
	everyone = "no-color help h "
	inputs   = everyone + "var= var-file= "
	view     = inputs + "input json json-into= compact-warnings concise consolidate-warnings consolidate-errors deprecation= lint= " +
		"show-sensitive "
	locks     = view + "lock lock-timeout= ignore-remote-version "
	operation = locks + "parallelism= refresh refresh-only minimal-refresh destroy allow-deferral target= target-file= exclude= " +
		"exclude-file= replace= invoke= policies= "
)

func commands() cli.Table[Effect] {
	return cli.Table[Effect]{
		{Name: "apply", Does: Changes, Max: 1, Flags: operation + "auto-approve suppress-forget-errors"},
		{Name: "console", Does: Reads, Flags: view + "lock lock-timeout= plan scope= target="},
		{Name: "destroy", Does: Changes, Flags: operation + "auto-approve suppress-forget-errors"},
		{Name: "fmt", Does: Passes, Max: cli.Many, Flags: view + "list write diff check recursive"},
		{Name: "force-unlock", Does: Writes, Max: 1, Flags: view + "force"},
		{Name: "get", Does: Passes, Flags: view + "update test-directory="},
		{Name: "graph", Does: Reads, Flags: view + "draw-cycles type= format= module-depth= verbose plan="},
		{Name: "import", Does: Changes, Max: 2, Flags: operation},
		{Name: "init", Does: Writes,
			Flags: locks + "backend cloud get upgrade lockfile= plugin-dir= policies= target= test-directory= create-default-workspace"},
		{Name: "login", Does: Passes, Max: 1, Flags: view},
		{Name: "logout", Does: Passes, Max: 1, Flags: view},
		{Name: "metadata functions", Does: Passes, Flags: view},
		{Name: "modules", Does: Passes, Flags: view},
		{Name: "output", Does: Reads, Max: 1, Flags: view + "raw"},
		{Name: "plan", Does: Reads, Flags: operation + "out= generate-config-out= detailed-exitcode"},
		{Name: "providers", Does: Reads, Flags: view + "test-directory="},
		{Name: "providers lock", Does: Passes, Max: cli.Many,
			Flags: view + "platform= fs-mirror= net-mirror= oci-mirror= enable-plugin-cache test-directory="},
		{Name: "providers mirror", Does: Passes, Max: 1, Flags: view + "platform= lock-file"},
		{Name: "providers schema", Does: Reads, Flags: view},
		{Name: "query", Does: Reads, Flags: view + "generate-config-out= policies="},
		{Name: "refresh", Does: Changes, Flags: operation},
		{Name: "show", Does: Reads, Max: 1, Flags: view + "state plan= config module="},
		{Name: "state identities", Does: Reads, Max: cli.Many, Flags: view + "id="},
		{Name: "state list", Does: Reads, Max: cli.Many, Flags: view + "id="},
		{Name: "state ls", Does: Reads, Max: cli.Many, Flags: view + "id="},
		{Name: "state move", Does: Writes, Max: 2, Flags: locks + "dry-run"},
		{Name: "state mv", Does: Writes, Max: 2, Flags: locks + "dry-run"},
		{Name: "state pull", Does: Reads, Flags: view},
		{Name: "state push", Does: Writes, Max: 1, Flags: locks + "force"},
		{Name: "state remove", Does: Writes, Max: cli.Many, Flags: locks + "dry-run"},
		{Name: "state replace-provider", Does: Writes, Max: 2, Flags: locks + "auto-approve"},
		{Name: "state rm", Does: Writes, Max: cli.Many, Flags: locks + "dry-run"},
		{Name: "state show", Does: Reads, Max: 1, Flags: view},
		{Name: "taint", Does: Writes, Max: 1, Flags: locks + "allow-missing"},
		{Name: "untaint", Does: Writes, Max: 1, Flags: locks + "allow-missing"},
		{Name: "validate", Does: Passes, Flags: view + "test-directory= no-tests query"},
		{Name: "version", Does: Passes, Flags: view + "v version"},
		{Name: "workspace show", Does: Reads, Flags: view},
	}
}

// moving names the flags of wrap that move a state.
const moving = "to encrypt an existing state, use wrap -encrypt-existing. To move a state to a backend without wrap, use wrap -leave"

// refusedCommands maps Terraform and OpenTofu commands to the reasons why wrap refuses them. A one-word name covers all
// commands that begin with it.
func refusedCommands() map[string]string {
	const elsewhere = "it uses states in HCP Terraform, not the state of this module; run it without wrap"
	return map[string]string{
		"cloud":         elsewhere,
		"completion":    "it sets up shell completion; run it without wrap",
		"env":           NoWorkspaces,
		"push":          "Terraform and OpenTofu no longer have it; to write a state, use state push",
		"rpcapi":        "it serves other programs, and they could write a state elsewhere; run it without wrap",
		"stacks":        elsewhere,
		"state migrate": "it would bypass the encryption; " + moving,
		"test": "it writes states of its own in plaintext if it cannot destroy a resource; " +
			"run it without wrap, in a copy of the module without the state",
		"workspace": NoWorkspaces,
	}
}

// Known returns the flags of each command that wrap runs, keyed by command name and written as in the command table. It
// also returns the flags and commands that wrap refuses by name, with the reasons.
func Known() (map[string]string, []cli.Mistake, map[string]string) {
	flags := map[string]string{}
	for _, c := range commands() {
		flags[c.Name] = c.Flags
	}
	return flags, refused(), refusedCommands()
}

// subcommands returns the names of the two-word commands that begin with name, such as "state list".
func subcommands(name string) []string {
	return slices.DeleteFunc(commands().Names(), func(c string) bool { return !strings.HasPrefix(c, name+" ") })
}

// IsCommand reports whether name is the first word of a Terraform or OpenTofu command.
func IsCommand(name string) bool {
	return slices.ContainsFunc(commands().Names(), func(c string) bool { return strings.Fields(c)[0] == name })
}

// IsFlag reports whether at least one command has the flag.
func IsFlag(name string) bool { return slices.Contains(commands().FlagNames(), name) }

// Shown returns a flag in the form that error messages use. An unknown flag may contain a secret, so only its first
// letter is shown, unless the flag is similar to a known flag or to one of the names.
func Shown(flag string, names []string) string {
	flag, _, _ = strings.Cut(flag, "=")
	name := strings.TrimLeft(flag, "-")
	dashes := strings.TrimSuffix(flag, name)
	known := append(commands().FlagNames(), names...)
	isMisspelt := len(name) > 3 && syntax.Nearest(name, known) != ""
	if len(name) < 2 || isMisspelt || slices.Contains(known, name) || (Command{}).Meant(name, refused()) != "" {
		return dashes + outside.Line(name, 100)
	}
	return "that begins with " + dashes + outside.Line(name[:1], 100)
}

// refused returns the flags of Terraform and of wrap that wrap refuses, with the reasons.
func refused() []cli.Mistake {
	return []cli.Mistake{
		{Flags: "backend-config", Meant: "it could bypass the encryption; say where the state is in a backend block of the -config file"},
		{Flags: "state state-out backup backup-out",
			Meant: "it names a file for a plaintext state; remove the flag, because the state stays in the backend"},
		{Flags: "migrate-state force-copy reconfigure", Meant: "it could bypass the encryption; " + moving},
		{Flags: "enable-pluggable-state-storage-experiment state-provider-lock-file",
			Meant: "a provider would store the state, and wrap could not encrypt it; remove the flag"},
		{Flags: "from-module", Meant: "it would fetch a module that wrap has not checked; fetch the module without wrap first"},
		{Flags: "chdir", Meant: "it must come before the subcommand"},
		{Flags: "config encrypt-existing leave", Meant: "a flag of wrap must come before the program"},
	}
}
