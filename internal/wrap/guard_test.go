package wrap_test

import (
	"archive/zip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// Each way around the encryption that wrap can see is refused before the child is
// run.
func TestRefused(t *testing.T) {
	t.Parallel()
	const (
		elsewhere = "keeps the state elsewhere; the module requires an empty block"
		arguments = "the backend has arguments, which take precedence over wrap"
		setting   = "the backend has a setting of its own, "
		plain     = " is refused: it may hold letters, digits"
	)
	module := func(name, text string) map[string]string { return map[string]string{name: text} }
	for name, c := range map[string]struct {
		args    []string
		environ []string
		program string
		files   map[string]string // "" removes one
		here    bool              // in this folder, without -chdir
		leave   bool
		moveIn  bool
		err     string
	}{
		"no command":            {program: "-", err: "only terraform and tofu can be run"},
		"another program":       {program: "terragrunt", args: []string{"plan"}, err: "only terraform and tofu can be run"},
		"a shell":               {program: "sh", args: []string{"-c", "terraform plan"}, err: "only terraform and tofu can be run"},
		"a name that begins so": {program: "terraform-wrapper", args: []string{"plan"}, err: "only terraform and tofu can be run"},
		"no such program":       {program: "/nowhere/terraform", args: []string{"plan"}, err: "cannot be run"},

		"no subcommand":          {args: nil, err: "a subcommand is required"},
		"nothing but the name":   {here: true, err: "a subcommand is required"},
		"without chdir":          {args: []string{"plan"}, here: true, err: "there is no file of a configuration in"},
		"an empty subcommand":    {args: []string{"", "apply", "l.tfplan"}, err: "a subcommand is required"},
		"a flag before it":       {args: []string{"-no-color", "apply"}, err: "a subcommand is required"},
		"another chdir":          {args: []string{"-chdir=elsewhere", "plan"}, err: "a subcommand is required"},
		"chdir after it":         {args: []string{"plan", "-chdir=elsewhere"}, err: `plan: the flag -chdir is refused: it belongs before`},
		"a space after it":       {args: []string{"apply ", "l.tfplan"}, err: `the subcommand "apply  l.tfplan" is refused`},
		"two in one":             {args: []string{"state mv", "a", "b"}, err: `the subcommand "state mv a" is refused`},
		"an unknown one":         {args: []string{"state", "migrate"}, err: `the subcommand "state migrate" is refused`},
		"tests":                  {args: []string{"test"}, err: `the subcommand "test" is refused`},
		"an old name":            {args: []string{"env", "new", "x"}, err: `the subcommand "env new" is refused`},
		"all in a variable":      {environ: []string{"TF_CLI_ARGS=apply l.tfplan"}, err: "a subcommand is required"},
		"a variable for none":    {environ: []string{"TF_CLI_ARGS_=apply l.tfplan"}, err: "a subcommand is required"},
		"an unknown flag":        {args: []string{"plan", "-frobnicate=x"}, err: `plan: the flag that begins with -f is refused: wrap does not know`},
		"a secret":               {args: []string{"plan", "-phunter2"}, err: `plan: the flag that begins with -p is refused`},
		"the end of flags":       {args: []string{"apply", "--", "-plan"}, err: `apply: the flag -- is refused`},
		"three dashes":           {args: []string{"apply", "---state=x"}, err: `apply: the flag ---state is refused`},
		"no value":               {args: []string{"plan", "-out"}, err: "the flag -out requires a value"},
		"an empty argument":      {args: []string{"apply", ""}, err: "an argument is not empty"},
		"a flag after a plan":    {args: []string{"apply", "l.tfplan", "-auto-approve"}, err: "flags come before all arguments"},
		"two plans":              {args: []string{"apply", "a.tfplan", "b.tfplan"}, err: "apply has 2 arguments, and wrap knows of 1"},
		"a folder for destroy":   {args: []string{"destroy", "x"}, err: "destroy has 1 argument, and wrap knows of 0"},
		"a plan to save":         {args: []string{"plan", "x"}, err: "flags come before all arguments; to save the plan, use -out=FILE"},
		"a plan to destroy":      {args: []string{"destroy", "x"}, err: "apply applies a saved plan"},
		"more than it takes":     {args: []string{"validate", "x"}, err: "flags come before all arguments; leave it out"},
		"half a subcommand":      {args: []string{"state"}, err: "state requires a subcommand: state identities, state list"},
		"half, and another":      {args: []string{"providers", "lok"}, err: "there are: providers lock, providers mirror, providers schema"},
		"a flag of another":      {args: []string{"apply", "-out=x"}, err: "wrap does not know what it does; it is a flag of plan"},
		"a misspelt subcommand":  {args: []string{"aply", "-no-color"}, err: `what it does with a state. Did you mean "apply"?`},
		"a misspelt second word": {args: []string{"state", "lst"}, err: `Did you mean "state list"?`},
		"a misspelt flag":        {args: []string{"apply", "-autoapprove"}, err: `wrap does not know what it does. Did you mean "auto-approve"?`},

		"backend-config":             {args: []string{"init", "-backend-config=address=x"}, err: "-backend-config is refused"},
		"backend-config, two words":  {args: []string{"init", "-backend-config", "address=x"}, err: "-backend-config is refused"},
		"backend-config, two dashes": {args: []string{"init", "--backend-config=address=x"}, err: "--backend-config is refused"},
		"backend-config, false":      {args: []string{"init", "-backend-config=false"}, err: "-backend-config is refused"},
		"migrate-state":              {args: []string{"init", "-migrate-state"}, err: "wrap -encrypt-existing moves a state in"},
		"migrate-state, false":       {args: []string{"init", "-migrate-state=false"}, err: "wrap -encrypt-existing moves a state in"},
		"force-copy":                 {args: []string{"init", "-force-copy"}, err: "wrap -encrypt-existing moves a state in"},
		"reconfigure":                {args: []string{"init", "-reconfigure"}, err: "wrap -encrypt-existing moves a state in"},
		"from-module":                {args: []string{"init", "-from-module=x"}, err: "a module that wrap has not read"},
		"state":                      {args: []string{"apply", "-state=x"}, err: "it names a state that is not encrypted"},
		"state, false":               {args: []string{"apply", "-state=false"}, err: "it names a state that is not encrypted"},
		"state, two words":           {args: []string{"state", "list", "-state", "x"}, err: "it names a state that is not encrypted"},
		"state-out":                  {args: []string{"state", "mv", "--state-out=x", "a", "b"}, err: "it names a state that is not encrypted"},
		"state-out, false": {
			args: []string{"state", "mv", "-state-out=false", "a", "b"}, err: "it names a state that is not encrypted",
		},
		"backup":     {args: []string{"state", "rm", "-backup=x", "a"}, err: "it names a state that is not encrypted"},
		"backup-out": {args: []string{"state", "mv", "-backup-out=x", "a", "b"}, err: "it names a state that is not encrypted"},
		"a workspace": {args: []string{"plan"}, environ: []string{"TF_WORKSPACE=w"}, err: "selected in TF_WORKSPACE: the HTTP " +
			"backend has none"},
		"a new workspace":  {args: []string{"workspace", "new", "-state=x", "w"}, err: "workspaces are refused: the HTTP backend has none; each"},
		"a flag of wrap":   {args: []string{"plan", "-config=x"}, err: `plan: the flag -config is refused: that of wrap belongs before the program`},
		"config of import": {args: []string{"import", "-config=x", "a", "b"}, err: `import: the flag -config is refused`},

		"TF_CLI_ARGS": {
			args: []string{"init"}, environ: []string{"TF_CLI_ARGS=-no-color -backend-config=address=x"},
			err: "-backend-config is refused",
		},
		"TF_CLI_ARGS_init": {
			args: []string{"init"}, environ: []string{"TF_CLI_ARGS_init=-migrate-state -force-copy"}, err: "wrap -encrypt-existing moves a state in",
		},
		"TF_CLI_ARGS_state_mv": {
			args: []string{"state", "mv", "a", "b"}, environ: []string{"TF_CLI_ARGS_state_mv=-state-out=x"},
			err: "it names a state that is not encrypted",
		},
		"TF_CLI_ARGS, quotes":    {args: []string{"init"}, environ: []string{`TF_CLI_ARGS='-no-color'`}, err: "TF_CLI_ARGS" + plain},
		"TF_CLI_ARGS, backslash": {args: []string{"init"}, environ: []string{`TF_CLI_ARGS_init=\-no-color`}, err: "TF_CLI_ARGS_init" + plain},
		"TF_CLI_ARGS, semicolon": {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=l.tfplan;"}, err: "TF_CLI_ARGS_apply" + plain},
		"TF_CLI_ARGS, ampersand": {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=l.tfplan&"}, err: "TF_CLI_ARGS_apply" + plain},
		"TF_CLI_ARGS, greater": {
			args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=l.tfplan >x"}, err: "TF_CLI_ARGS_apply" + plain,
		},
		"TF_CLI_ARGS, pipe": {
			args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=l.tfplan |x"}, err: "TF_CLI_ARGS_apply" + plain,
		},
		"TF_CLI_ARGS, backticks": {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=`l.tfplan`"}, err: "TF_CLI_ARGS_apply" + plain},
		"TF_CLI_ARGS, dollar": {
			args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=$(l.tfplan)"}, err: "TF_CLI_ARGS_apply" + plain,
		},
		"TF_CLI_ARGS, no-break": {
			args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=-no-color\u00a0l.tfplan"}, err: "TF_CLI_ARGS_apply" + plain,
		},
		"TF_CLI_ARGS, tabulator": {
			args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=-no-color\vl.tfplan"}, err: "TF_CLI_ARGS_apply" + plain,
		},
		"TF_CLI_ARGS, a canary": {
			args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=-var=x='" + canary + "'"}, err: "TF_CLI_ARGS_apply" + plain,
		},
		"TF_CLI_ARGS, two plans": {args: []string{"apply", "x"}, environ: []string{"TF_CLI_ARGS_apply=l.tfplan"}, err: "apply has 2 arguments"},
		"TF_CLI_ARGS, then flags": {
			args: []string{"apply", "-no-color"}, environ: []string{"TF_CLI_ARGS=l.tfplan"}, err: "flags come before all arguments",
		},

		"a state that was not written": {
			args: []string{"apply"}, files: module("errored.tfstate", string(seal(t, sealing, state))), err: "errored.tfstate holds a state that",
		},
		"no place for a state": {
			args: []string{"apply"}, files: module("errored.tfstate/x", ""), err: "errored.tfstate is in the way of a state",
		},
		"a plan called -":        {args: []string{"apply", "-"}, files: module("-", plan(t, "local", "")), err: "the backend is not http"},
		"a plan that is no file": {args: []string{"apply", "folder"}, files: module("folder/x", ""), err: "it is not a regular file"},

		"no address": {
			args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_ADDRESS="},
			err: "required (or the environment variable STATECRYPT_HTTP_ADDRESS)",
		},
		"Terraform's address": {
			args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_ADDRESS=", "TF_HTTP_ADDRESS=https://example.com"},
			err: `the file of the settings has no block backend "http": add backend "http" { address = "https://HOST/PATH" }; TF_HTTP_ADDRESS is not used`,
		},
		"a wrong address": {
			args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_ADDRESS=ftp://" + canary},
			err: "STATECRYPT_HTTP_ADDRESS: an http or https URL is required",
		},
		"a password in an address": {
			args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_ADDRESS=https://u:" + canary + "@h/"},
			err: "STATECRYPT_HTTP_ADDRESS: it has credentials in it",
		},
		"a wrong lock address": {
			args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_LOCK_ADDRESS=http://[" + canary},
			err: "STATECRYPT_HTTP_LOCK_ADDRESS: an http",
		},
		"a wrong switch": {
			args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_SKIP_CERT_VERIFICATION=" + canary},
			err: "STATECRYPT_HTTP_SKIP_CERT_VERIFICATION must be true or false",
		},
		"a wrong number": {
			args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_RETRY_MAX=" + canary}, err: "STATECRYPT_HTTP_RETRY_MAX: a number is required",
		},
		"a wrong authority": {
			args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_CLIENT_CA_CERTIFICATE_PEM=" + canary}, err: "holds no certificate",
		},
		"a certificate alone": {
			args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_CLIENT_CERTIFICATE_PEM=" + canary}, err: "are needed together",
		},

		"no module":          {args: []string{"init"}, files: module("main.tf", ""), err: "run terraform -chdir=FOLDER"},
		"no backend":         {args: []string{"init"}, files: module("main.tf", "terraform {}\n"), err: "there is no backend block"},
		"a local backend":    {args: []string{"init"}, files: module("main.tf", inside(`backend "local" {}`)), err: `"backend local" ` + elsewhere},
		"s3":                 {args: []string{"apply"}, files: module("main.tf", inside(`backend "s3" {}`)), err: `"backend s3" ` + elsewhere},
		"cloud":              {args: []string{"plan"}, files: module("more.tf", inside("cloud {}")), err: `"cloud" ` + elsewhere},
		"a state store":      {args: []string{"plan"}, files: module("more.tf", inside(`state_store "a" {}`)), err: `"state_store a" ` + elsewhere},
		"another file":       {args: []string{"init"}, files: module("z.tf", inside(`backend "local" {}`)), err: `"backend local" ` + elsewhere},
		"an override":        {args: []string{"init"}, files: module("override.tf", inside(`backend "local" {}`)), err: `"override.tf": the block`},
		"an override of one": {args: []string{"init"}, files: module("x_override.tf", inside(`backend "http" { address = "x" }`)), err: arguments},
		"OpenTofu's file":    {args: []string{"init"}, files: module("main.tofu", inside(`backend "local" {}`)), err: `"backend local" ` + elsewhere},
		"JSON":               {args: []string{"init"}, files: module("x.tf.json", `{"terraform":{"backend":{"local":{}}}}`), err: `"backend local" ` + elsewhere},
		"JSON, an argument":  {args: []string{"init"}, files: module("x.tf.json", `{"terraform":[{"backend":{"http":{"address":"x"}}}]}`), err: arguments},
		"an address":         {args: []string{"init"}, files: module("main.tf", inside(`backend "http" { address = "`+canary+`" }`)), err: arguments},
		"a lock address":     {args: []string{"plan"}, files: module("main.tf", inside(`backend "http" { lock_address = "x" }`)), err: arguments},
		"a null":             {args: []string{"plan"}, files: module("main.tf", inside(`backend "http" { address = null }`)), err: arguments},
		"a block inside":     {args: []string{"plan"}, files: module("main.tf", inside("backend \"http\" {\nx {}\n}")), err: arguments},
		"not HCL":            {args: []string{"plan"}, files: module("more.tf", "x = "+canary+" {"), err: `"more.tf": it cannot be parsed, see line 1`},
		"an encryption block": {
			args: []string{"apply"}, files: module("more.tf", inside("encryption {}")), err: "would encrypt the state a second time",
		},

		"help, false": {args: []string{"apply", "-help=false", "l.tfplan"}, err: `apply: the flag -help is refused`},
		"leave, nowhere to go": {args: []string{"init", "-migrate-state"}, leave: true,
			err: "there is nowhere to go: the module still keeps its state here; write its new backend block first"},
		"leave, another command": {args: []string{"apply"}, leave: true, err: "are for init only"},
		"leave, no migration":    {args: []string{"init"}, leave: true, err: "-leave is for init -migrate-state only"},
		"leave, and move in": {
			args: []string{"init", "-migrate-state"}, leave: true, moveIn: true, err: "-leave is for init -migrate-state only",
		},
		"move in, by a plan":  {args: []string{"plan"}, moveIn: true, err: "are for init only"},
		"move in, with flags": {args: []string{"init", "-migrate-state"}, moveIn: true, err: "wrap -encrypt-existing moves a state in"},

		"no such plan":            {args: []string{"apply", "tfplan"}, err: `the file "tfplan": no such file`},
		"no such plan, in a flag": {args: []string{"graph", "-type=plan", "-plan=x"}, err: `the file "x": no such file`},
		"a folder, not the record": {
			args: []string{"plan"}, files: map[string]string{".terraform/statecrypt/terraform.tfstate/x": "y"},
			err: "cannot be written",
		},
		"not a plan":     {args: []string{"apply", "x"}, files: map[string]string{"x": "no"}, err: "it is not a plan"},
		"an empty zip":   {args: []string{"apply", "x"}, files: map[string]string{"x": archive(t)}, err: "it is a zip archive, and no plan"},
		"a cloud plan":   {args: []string{"apply", "x"}, files: map[string]string{"x": `{"remote_plan_format":1,"run_id":"x","hostname":"y"}`}, err: "it is not a plan"},
		"a state":        {args: []string{"apply", "x"}, files: map[string]string{"x": state}, err: "it is not a plan"},
		"a folder":       {args: []string{"apply", "."}, err: "it is not a regular file"},
		"a sealed state": {args: []string{"apply", "x"}, files: map[string]string{"x": string(seal(t, sealing, state))}, err: "it is not a plan"},
		"a plan for elsewhere": {
			args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": plan(t, "http", "address")},
			err: `the file "tfplan": it was made without wrap: ` + setting + `"address"`,
		},
		"a plan, the password": {
			args: []string{"apply", "-auto-approve", "tfplan"}, files: map[string]string{"tfplan": plan(t, "http", "password")},
			err: setting + `"password"`,
		},
		"a plan, another kind": {
			args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": plan(t, "local", "")}, err: "the backend is not http",
		},
		"a plan, in a variable": {
			args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=tfplan"}, files: map[string]string{"tfplan": plan(t, "local", "")},
			err: "the backend is not http",
		},
		"a plan, called like the command": {
			args: []string{"apply", "apply"}, files: map[string]string{"apply": plan(t, "local", "")}, err: "the backend is not http",
		},
		"a plan, twice in its archive": {
			args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": archive(t, "", "")}, err: "it holds more than one plan",
		},
		"a plan, damaged": {
			args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": archive(t, "\xff")}, err: "it cannot be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "ready", c.args...)
			o.Environ, o.Leave, o.EncryptExisting = append(o.Environ, c.environ...), c.leave, c.moveIn
			for path, text := range c.files {
				write(t, filepath.Join(dir, path), text)
				if text == "" {
					_ = os.Remove(filepath.Join(dir, path))
				}
			}
			if c.here {
				o.Command = append(o.Command[:1:1], c.args...)
			}
			switch c.program {
			case "":
			case "-":
				o.Command = nil
			default:
				o.Command[0] = c.program
			}
			code, err := wrap.Run(t.Context(), o)
			if code == 0 || err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), canary) {
				t.Errorf("got %d, %v; want %q", code, err, c.err)
			}
			if out.String() != "" {
				t.Errorf("the child was run: %s", out)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".terraform", "statecrypt", ".*")); left != nil {
				t.Errorf("%s is left behind", left)
			}
		})
	}
}

// The child gets what was read, in one spelling.
func TestArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		environ []string
		want    []string // after -chdir
	}{
		"flags": {
			args: []string{"plan", "--lock=false", "-var", "a=-b", "-var-file=x y", "-no-color", "--refresh"},
			want: []string{"plan", "-lock=false", "-var=a=-b", "-var-file=x y", "-no-color", "-refresh"},
		},
		"a value like a flag": {args: []string{"plan", "-var", "-state=x"}, want: []string{"plan", "-var=-state=x"}},
		"two words":           {args: []string{"state", "mv", "-dry-run", "a b", "c"}, want: []string{"state", "mv", "-dry-run", "a b", "c"}},
		"standard input":      {args: []string{"state", "push", "-"}, want: []string{"state", "push", "-"}},
		"variables": {
			args: []string{"state", "rm", "-lock=true", "x"},
			environ: []string{"TF_CLI_ARGS=-lock=false -no-color", "TF_CLI_ARGS_state_rm=\t-dry-run\n", "TF_CLI_ARGS_state=-no",
				"TF_CLI_ARGS_plan='"},
			want: []string{"state", "rm", "-dry-run", "-lock=false", "-no-color", "-lock=true", "x"},
		},
		"an argument of a variable": {
			args: []string{"output"}, environ: []string{"TF_CLI_ARGS_output=-raw text"}, want: []string{"output", "-raw", "text"},
		},
		"help":            {args: []string{"apply", "-help"}, want: []string{"apply", "-help"}},
		"help about all":  {args: []string{"--help"}, want: []string{"-help"}},
		"version":         {args: []string{"-v"}, environ: []string{"TF_CLI_ARGS='"}, want: []string{"-v"}},
		"version, a word": {args: []string{"version", "-json"}, want: []string{"version", "-json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "arguments environ", c.args...)
			o.Environ = append(o.Environ, c.environ...)
			code, err := wrap.Run(t.Context(), o)
			dir, _ = filepath.EvalSymlinks(dir)
			want := fmt.Sprintf("%q\n", append([]string{"-chdir=" + dir}, c.want...))
			if code != 0 || err != nil || !strings.HasPrefix(out.String(), want) {
				t.Errorf("got %d, %v: %s\nwant %s", code, err, out, want)
			}
			if strings.Contains(out.String(), "TF_CLI_ARGS") {
				t.Errorf("the child can read the variables: %s", out)
			}
		})
	}
}

// The child works in the folder that wrap has looked at: as the system follows
// links, and not as the text reads.
func TestPaths(t *testing.T) {
	t.Parallel()
	o, dir, out := scripted(t, newStore(t), "ready", "plan")
	there := t.TempDir()
	write(t, filepath.Join(there, "in", "x"), "")
	write(t, filepath.Join(there, "mm", "main.tf"), inside(`backend "local" {}`))
	write(t, filepath.Join(there, "p.tfplan"), plan(t, "local", ""))
	write(t, filepath.Join(dir, "mm", "main.tf"), inside(empty))
	write(t, filepath.Join(dir, "p.tfplan"), plan(t, "http", ""))
	if err := os.Symlink(filepath.Join(there, "in"), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ chdir, plan, err string }{
		{chdir: dir + "/link/../mm", err: `"backend local" keeps the state elsewhere`},
		{chdir: dir, plan: "link/../p.tfplan", err: "the backend is not http"},
		{chdir: dir + "/nowhere", err: "no such file"},
		{chdir: "", err: "there is no name"},
		{chdir: "~", err: "no such file"},
	} {
		again := o
		again.Command = []string{o.Command[0], "-chdir=" + c.chdir, "apply"}
		if c.plan != "" {
			again.Command = append(again.Command, c.plan)
		}
		if code, err := wrap.Run(t.Context(), again); code != 1 || err == nil || !strings.Contains(err.Error(), c.err) || out.String() != "" {
			t.Errorf("%v: got %d, %v; want %s\n%s", c, code, err, c.err, out)
		}
	}
}

// What does no harm is let through.
func TestAllowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		files map[string]string
	}{
		"a plan":           {args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": plan(t, "http", "")}},
		"init":             {args: []string{"init", "-input=false"}},
		"state":            {args: []string{"state", "pull"}},
		"errored.tfstate":  {args: []string{"plan"}, files: map[string]string{"errored.tfstate": string(seal(t, sealing, state))}},
		"JSON":             {args: []string{"plan"}, files: map[string]string{"main.tf": " ", "x.tf.json": `{"terraform":{"backend":{"http":{}}}}`}},
		"hidden":           {args: []string{"plan"}, files: map[string]string{".x.tf": inside(`backend "local" {}`)}},
		"a record":         {args: []string{"plan"}, files: map[string]string{".terraform/terraform.tfstate": `{"backend":{"type":"s3"}}`}},
		"a record of ours": {args: []string{"plan"}, files: map[string]string{".terraform/statecrypt/terraform.tfstate": `{"backend":{"type":"s3"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "ready GET", c.args...)
			for path, text := range c.files {
				write(t, filepath.Join(dir, path), text)
			}
			code, err := wrap.Run(t.Context(), o)
			// What wrap says may come before what the child printed earlier.
			lines := slices.DeleteFunc(strings.Split(out.String(), "\n"), func(l string) bool { return strings.HasPrefix(l, "statecrypt: ") })
			if code != 0 || err != nil || len(lines) < 2 || lines[0] != "ready" || lines[1] != "GET 404 " {
				t.Errorf("%d, %v\n%s", code, err, out)
			}
		})
	}
}

// Before a run that changes something, it is tried whether a state can be written.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	readOnly := keys + `method "sops" "s" {}` + "\nstate {\nmethod = method.unencrypted.u\nfallback { method = method.aes_gcm.m }\n}"
	mine, err := age.GenerateX25519Identity()
	another, errAnother := age.GenerateX25519Identity()
	if err := errors.Join(err, errAnother); err != nil {
		t.Fatal(err)
	}
	theirs := `method "age" "theirs" {
 recipients = ["` + mine.Recipient().String() + "\"]\nidentities = [\"" + another.String() + "\"]\n}\n" +
		`method "age" "mine" { identities = ["` + mine.String() + "\"] }\n" +
		"state {\nmethod = method.age.theirs\nfallback { method = method.age.mine }\n}"
	for name, c := range map[string]struct{ text, command, err string }{
		"for others":            {text: theirs, command: "apply", err: "does not open what it has encrypted, and method.age.mine does"},
		"not encrypted":         {text: readOnly, command: "apply", err: "the first method does not encrypt"},
		"not encrypted, reader": {text: readOnly, command: "plan"},
		"wrong key": {
			text: `key_provider "static" "k" { key = "` + canary + `" }` + "\n" + `method "aes_gcm" "m" { keys = key_provider.static.k }` +
				"\nstate { method = method.aes_gcm.m }", command: "apply", err: "the run was not started",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _, out := scripted(t, newStore(t), "ready", c.command)
			o.State = target(t, c.text)
			code, err := wrap.Run(t.Context(), o)
			if (err == nil) != (c.err == "") || (code == 0) != (err == nil) ||
				err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), canary)) {
				t.Errorf("got %d, %v; want %q", code, err, c.err)
			}
			if (out.String() == "") != (c.err != "") {
				t.Errorf("it printed %q", out)
			}
		})
	}
}

// inside is a module with text in its terraform block.
func inside(text string) string { return "terraform {\n" + text + "\n}\n" }

// plan is a plan, as far as it is looked at, with one setting or none.
func plan(t *testing.T, kind, setting string) string {
	t.Helper()
	config := map[string]cty.Value{}
	for _, name := range []string{"address", "password", "retry_max"} {
		config[name] = cty.NullVal(cty.String)
		if name == setting {
			config[name] = cty.StringVal(canary)
		}
	}
	object := cty.ObjectVal(config)
	packed, err := msgpack.Marshal(object, object.Type())
	if err != nil {
		t.Fatal(err)
	}
	message := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	backend := append(message(1, []byte(kind)), message(2, message(1, packed))...)
	version := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 3)
	return archive(t, string(append(version, message(13, backend)...)))
}

// archive is a zip archive with members as in a plan.
func archive(t *testing.T, tfplans ...string) string {
	t.Helper()
	var b strings.Builder
	z := zip.NewWriter(&b)
	_, _ = z.Create("tfstate")
	for _, tfplan := range tfplans {
		w, err := z.Create("tfplan")
		if err == nil {
			_, err = w.Write([]byte(tfplan))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
