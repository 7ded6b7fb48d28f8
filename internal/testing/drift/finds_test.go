package drift

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/cli"
)

// opentofu returns the source of the OpenTofu that tests compile, if it is on this machine.
func opentofu(t *testing.T) *source {
	t.Helper()
	module := version{name: "tofu"}.module()
	c := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	c.Dir = root + "tools/tofu"
	c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
	out, err := c.Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skipf("the module cache has no source of OpenTofu: %v", err)
	}
	return &source{dir: dir, module: module}
}

// besides returns the findings of a version that are not among those before.
func (o *tables) besides(before findings, has *theirs) []string {
	all := findings{}
	o.compare(all, "a", has)
	maps.DeleteFunc(all, func(key string, _ []string) bool { return before[key] != nil })
	return slices.Collect(maps.Keys(all))
}

// TestFinds takes names out of our tables, and expects them to be found.
func TestFinds(t *testing.T) {
	has, err := read(opentofu(t))
	if err != nil {
		t.Fatal(err)
	}
	before := findings{}
	ours(t).compare(before, "a", has)
	lose := func(from map[string][]string, table, name string) {
		from[table] = slices.DeleteFunc(from[table], func(n string) bool { return n == name })
	}
	for want, change := range map[string]func(o *tables){
		"wrap plan: -out": func(o *tables) { o.commands["plan"] = strings.Replace(o.commands["plan"], " out=", "", 1) },
		"wrap init: -from-module": func(o *tables) {
			o.refusedFlags = slices.DeleteFunc(o.refusedFlags, func(m cli.Mistake) bool { return m.Flags == "from-module" })
		},
		"wrap plan, whose value is not as in the table: -out": func(o *tables) {
			o.commands["plan"] = strings.Replace(o.commands["plan"], " out=", " out", 1)
		},
		"wrap: state pull":                func(o *tables) { delete(o.commands, "state pull") },
		"source s3: assume_role.role_arn": func(o *tables) { lose(o.sources, "s3", "assume_role.role_arn") },
		"store s3: assume_role.role_arn":  func(o *tables) { lose(o.stores, "s3", "assume_role.role_arn") },
		"source http: retry_max":          func(o *tables) { lose(o.sources, "http", "retry_max") },
		"store http: retry_max":           func(o *tables) { lose(o.stores, "http", "retry_max") },
		"backend http: lock_address":      func(o *tables) { lose(o.stores, "http", "lock_address") },
		"source gcs: prefix":              func(o *tables) { lose(o.sources, "gcs", "prefix") },
		"store gcs: prefix":               func(o *tables) { lose(o.stores, "gcs", "prefix") },
		"backend consul: path":            func(o *tables) { lose(o.sources, "consul", "path") },
		"backend: consul":                 func(o *tables) { delete(o.sources, "consul") },
		"store: file":                     func(o *tables) { delete(o.stores, "file") },
		"key provider pbkdf2: chain":      func(o *tables) { lose(o.keyProviders, "pbkdf2", "chain") },
		"key provider aws_kms: tags":      func(o *tables) { lose(o.keyProviders, "aws_kms", "tags") },
		"method aes_gcm: aad":             func(o *tables) { lose(o.methods, "aes_gcm", "aad") },
		"stateV4: check_results":          func(o *tables) { lose(o.members, "stateV4", "check_results") },
		"resourceStateV4: type":           func(o *tables) { lose(o.members, "resourceStateV4", "type") },
		"outputStateV4: type":             func(o *tables) { lose(o.members, "outputStateV4", "type") },
		"protocol: ReadDataSource": func(o *tables) {
			o.calls = slices.DeleteFunc(o.calls, func(n string) bool { return n == "ReadDataSource" })
		},
		"ServerCapabilities: plan_destroy": func(o *tables) { lose(o.capabilities, "ServerCapabilities", "plan_destroy") },
	} {
		o := ours(t)
		change(o)
		if more := o.besides(before, has); !slices.Equal(more, []string{want}) {
			t.Errorf("got %q, want %q", more, want)
		}
	}
}

// TestAddedFlag adds a flag to a copy of a CLI's source, and expects it to be found, in one command.
func TestAddedFlag(t *testing.T) {
	s, dir := opentofu(t), t.TempDir()
	for _, folder := range []string{"cmd/tofu", "internal/command", "internal/command/arguments", "internal/command/flags"} {
		names, _ := filepath.Glob(filepath.Join(s.dir, folder, "*.go"))
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "arguments/plan.go") {
				flag := `cmdFlags.StringVar(&plan.OutPath, "out", "", "out")`
				data = []byte(strings.Replace(string(data), flag, flag+"\n\tcmdFlags.BoolVar(new(bool), \"un\"+\"heard\", false, \"\")", 1))
			}
			copied := filepath.Join(dir, folder, filepath.Base(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(copied), 0o700), os.WriteFile(copied, data, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	before, o := findings{}, ours(t)
	for _, where := range []string{s.dir, dir} {
		read, err := newSource(where, s.module)
		if err != nil {
			t.Fatal(err)
		}
		commands, err := read.commands()
		if err != nil {
			t.Fatal(err)
		}
		has := &theirs{commands: commands}
		if where == s.dir {
			o.compare(before, "a", has)
		} else if more := o.besides(before, has); !slices.Equal(more, []string{"wrap plan: -unheard"}) {
			t.Errorf("got %q", more)
		}
	}
}

func TestExceptions(t *testing.T) {
	t.Parallel()
	f := findings{}
	f.add("a-1", "wrap plan", []string{"-new", "-old"}, []string{"-old"})
	f.add("a-2", "wrap plan", []string{"-new", "-newer"}, nil)
	for name, c := range map[string]struct {
		text, left, err string
	}{
		"none":          {"# a comment", "wrap plan: -new (a-1, a-2)|wrap plan: -newer (a-2)", ""},
		"all":           {"wrap plan: -new\ta-1\tso\nwrap plan: -newer\ta-2\tso", "", ""},
		"together":      {"wrap plan: -new -newer\ta-2\tso\n", "", ""},
		"no reason":     {"wrap plan: -new\ta-1\t\nwrap plan: -newer\ta-2\tso", "wrap plan: -new (a-1, a-2)", ":1 is not"},
		"no version":    {"wrap plan: -new -newer\tso", "wrap plan: -new (a-1, a-2)|wrap plan: -newer (a-2)", ":1 is not"},
		"other version": {"wrap plan: -new -newer\ta-1\tso", "", `a-1 has no "wrap plan: -newer"`},
		"nothing":       {"wrap plan: -new -newer -old\ta-2\tso", "", `a-2 has no "wrap plan: -old"`},
	} {
		left, err := f.without(c.text)
		if strings.Join(left, "|") != c.left || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %v", name, left, err)
		}
	}
}

func TestNewer(t *testing.T) {
	t.Parallel()
	ours := []string{"v1.8.5", "v1.16.4", "v1.17.0-beta1"}
	for v, want := range map[string]bool{
		"v1.15.10": false, "v1.16.4": false, "v1.17.0-alpha20260101": false, "v1.18.0-alpha20260101": false,
		"v1.16.5": true, "v1.17.0-beta2": true, "v1.17.0-rc1": true, "v1.17.0": true, "v1.18.0-beta1": true, "v2.0.0": true,
	} {
		if isNews(v, ours) != want {
			t.Errorf("%s is news: %t", v, !want)
		}
	}
	for _, c := range []struct{ ours, want string }{
		{"v1.16.4 v1.17.0-beta1", "v1.16.5 v1.18.0 v1.18.0-beta1 v1.18.0-rc1 v1.17.0 v1.17.0-rc1 v1.17.0-beta2"},
		{"v1.16.4", "v1.16.5 v1.17.0 v1.17.0-beta1 v1.17.0-rc1"},
	} {
		if got := strings.Join(following(strings.Fields(c.ours)), " "); got != c.want {
			t.Errorf("%s: got %s", c.ours, got)
		}
	}
}
