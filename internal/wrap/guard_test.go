package wrap_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// Each way around the encryption is refused before the child is run.
func TestRefused(t *testing.T) {
	t.Parallel()
	const (
		backendConfig = "-backend-config is refused"
		noRecord      = "there is no record of a backend"
		setting       = "the backend has a setting of its own, "
	)
	record := func(text string) map[string]string { return map[string]string{".terraform/terraform.tfstate": text} }
	for name, c := range map[string]struct {
		args    []string
		environ []string
		program string
		files   map[string]string // "" removes one
		err     string
	}{
		"no command":                 {program: "-", err: "only terraform and tofu can be run"},
		"another program":            {program: "terragrunt", args: []string{"plan"}, err: "only terraform and tofu can be run"},
		"a shell":                    {program: "sh", args: []string{"-c", "terraform plan"}, err: "only terraform and tofu can be run"},
		"backend-config":             {args: []string{"init", "-backend-config=address=x"}, err: backendConfig},
		"backend-config, two words":  {args: []string{"init", "-backend-config", "address=x"}, err: backendConfig},
		"backend-config, two dashes": {args: []string{"init", "--backend-config=address=x"}, err: backendConfig},
		"backend-config, a file":     {args: []string{"init", "-backend-config=x.tfbackend"}, err: backendConfig},
		"backend-config, another":    {args: []string{"init", "-backend-config=lock_address=x"}, err: backendConfig},
		"backend-config, migrating":  {args: []string{"init", "-migrate-state", "-backend-config=address=x"}, err: backendConfig},
		"TF_CLI_ARGS": {
			args: []string{"init"}, environ: []string{"TF_CLI_ARGS=-no-color -backend-config=address=x"}, err: backendConfig,
		},
		"TF_CLI_ARGS_init": {
			args: []string{"init"}, environ: []string{`TF_CLI_ARGS_init='-back\end'-con"fig" address=x`}, err: backendConfig,
		},
		"state":            {args: []string{"apply", "-state=x"}, err: "-state is refused"},
		"state, two words": {args: []string{"state", "list", "-state", "x"}, err: "-state is refused"},
		"state-out":        {args: []string{"state", "mv", "--state-out=x", "a", "b"}, err: "-state-out is refused"},
		"TF_CLI_ARGS_apply": {
			args: []string{"apply"}, environ: []string{`TF_CLI_ARGS_apply="-state-out=x"`}, err: "-state-out is refused",
		},
		"TF_CLI_ARGS_state_mv": {
			args: []string{"state", "mv", "a", "b"}, environ: []string{"TF_CLI_ARGS_state_mv=-state-out=x"}, err: "-state-out is refused",
		},

		"no address":      {args: []string{"plan"}, environ: []string{"TF_HTTP_ADDRESS="}, err: "TF_HTTP_ADDRESS is not set"},
		"a wrong address": {args: []string{"plan"}, environ: []string{"TF_HTTP_ADDRESS=ftp://" + canary}, err: "TF_HTTP_ADDRESS is not an http"},
		"a password in an address": {
			args: []string{"plan"}, environ: []string{"TF_HTTP_ADDRESS=https://u:" + canary + "@h/"}, err: "TF_HTTP_ADDRESS has credentials in it",
		},
		"a wrong lock address": {
			args: []string{"plan"}, environ: []string{"TF_HTTP_LOCK_ADDRESS=http://[" + canary}, err: "TF_HTTP_LOCK_ADDRESS is not an http",
		},
		"a wrong switch": {
			args: []string{"plan"}, environ: []string{"TF_HTTP_SKIP_CERT_VERIFICATION=" + canary},
			err: "TF_HTTP_SKIP_CERT_VERIFICATION must be true or false",
		},
		"a wrong authority": {
			args: []string{"plan"}, environ: []string{"TF_HTTP_CLIENT_CA_CERTIFICATE_PEM=" + canary}, err: "holds no certificate",
		},
		"a certificate alone": {
			args: []string{"plan"}, environ: []string{"TF_HTTP_CLIENT_CERTIFICATE_PEM=" + canary}, err: "are needed together",
		},

		"no init":       {args: []string{"apply"}, files: record(""), err: noRecord},
		"no init, help": {args: []string{"-help"}, files: record(""), err: noRecord},
		"local state": {
			args: []string{"apply"}, files: record(`{"version":3,"backend":{"type":"local","config":{"path":null}}}`),
			err: `the backend is "local"`,
		},
		"s3": {
			args: []string{"apply"}, files: record(`{"backend":{"type":"s3","config":{"bucket":null}}}`), err: `the backend is "s3"`,
		},
		"cloud": {
			args: []string{"apply"}, files: record(`{"backend":{"type":"cloud","config":{"organization":"x"}}}`), err: setting + `"organization"`,
		},
		"a store": {args: []string{"apply"}, files: record(`{"state_store":{"type":"x"}}`), err: "the backend is another kind"},
		"both": {
			args: []string{"apply"}, files: record(`{"backend":{"type":"http"},"state_store":{"type":"x"}}`), err: "the backend is another kind",
		},
		"a module alone": {args: []string{"apply"}, files: record(`{"version":3}`), err: "the backend is another kind"},
		"not JSON":       {args: []string{"apply"}, files: record(canary), err: "is not a record of a backend"},
		"address": {
			args: []string{"apply"}, files: record(`{"backend":{"type":"http","config":{"address":"http://` + canary + `"}}}`),
			err: setting + `"address"`,
		},
		"lock address": {
			args: []string{"plan"}, files: record(`{"backend":{"type":"http","config":{"lock_address":"x"}}}`), err: setting + `"lock_address"`,
		},
		"password": {
			args: []string{"plan"}, files: record(`{"backend":{"type":"http","config":{"password":"` + canary + `"}}}`),
			err: setting + `"password"`,
		},
		"number": {
			args: []string{"plan"}, files: record(`{"backend":{"type":"http","config":{"retry_max":0}}}`), err: setting + `"retry_max"`,
		},
		"TF_DATA_DIR": {args: []string{"plan"}, environ: []string{"TF_DATA_DIR=other"}, err: noRecord},
		"TF_DATA_DIR, in": {
			args: []string{"plan"}, environ: []string{"TF_DATA_DIR=other"}, files: map[string]string{"other/terraform.tfstate": `{"backend":{"type":"s3"}}`},
			err: `"s3"`,
		},
		"chdir twice": {args: []string{"-chdir=elsewhere", "plan"}, err: noRecord},

		"a plan for elsewhere": {
			args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": plan(t, "http", "address")},
			err: `the plan "tfplan": ` + setting + `"address"`,
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
		"a plan, called like a flag": {
			args: []string{"apply", "--", "-plan"}, files: map[string]string{"-plan": plan(t, "local", "")}, err: "the backend is not http",
		},
		"a plan, called like the command": {
			args: []string{"apply", "apply"}, files: map[string]string{"apply": plan(t, "local", "")}, err: "the backend is not http",
		},
		"a plan, after a space": {
			args: []string{"apply ", "tfplan"}, files: map[string]string{"tfplan": plan(t, "local", "")}, err: "the backend is not http",
		},
		"a plan, all in a variable": {
			environ: []string{"TF_CLI_ARGS=apply tfplan"}, files: map[string]string{"tfplan": plan(t, "local", "")},
			err: "the backend is not http",
		},
		"a plan, in quotes": {
			args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply='my plan'"}, files: map[string]string{"my plan": plan(t, "local", "")},
			err: "TF_CLI_ARGS_apply has quotes or backslashes",
		},
		"a plan, twice in its archive": {
			args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": archive(t, "", "")}, err: "the backend is not http",
		},
		"a plan, damaged": {
			args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": archive(t, "\xff")}, err: "it cannot be read",
		},
		"a plan, encrypted": {
			args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": string(seal(t, sealing, state))},
			err: "it is encrypted; decrypt it first",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "ready", c.args...)
			o.Environ = append(o.Environ, c.environ...)
			for path, text := range c.files {
				write(t, filepath.Join(dir, path), text)
				if text == "" {
					_ = os.Remove(filepath.Join(dir, path))
				}
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
		})
	}
}

// A folder that is called ~ is not the home directory, where another record lies.
func TestTilde(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	write(t, filepath.Join(home, "data", "terraform.tfstate"), ourRecord)
	o, dir, out := scripted(t, newStore(t), "ready", "plan")
	t.Chdir(dir)
	for _, c := range []struct{ chdir, data string }{{"-chdir=.", "~/data"}, {"-chdir=~", "data"}} {
		o.Command[1] = c.chdir
		again := o
		again.Environ = append(o.Environ, "TF_DATA_DIR="+c.data) //nolint:gocritic // for this run
		code, err := wrap.Run(t.Context(), again)
		if code != 1 || err == nil || !strings.Contains(err.Error(), "no record of a backend") || out.String() != "" {
			t.Errorf("%s, %s: %d, %v\n%s", c.chdir, c.data, code, err, out)
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
		"a plan":                {args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": plan(t, "http", "")}},
		"a plan that is absent": {args: []string{"apply", "tfplan"}},
		"something else": {
			args: []string{"apply", "-var-file", "x.zip"}, files: map[string]string{"x.zip": "PK\x03\x04"},
		},
		"init":         {args: []string{"init", "-input=false"}},
		"reconfigured": {args: []string{"init", "-reconfigure"}},
		"state":        {args: []string{"state", "pull"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "ready GET", c.args...)
			for path, text := range c.files {
				write(t, filepath.Join(dir, path), text)
			}
			if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil || !strings.HasPrefix(out.String(), "ready\nGET 404") {
				t.Errorf("%d, %v\n%s", code, err, out)
			}
		})
	}
}

// Before a run that changes something, it is tried whether a state can be written.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	readOnly := keys + `method "sops" "s" {}` + "\nstate {\nmethod = method.unencrypted.u\nfallback { method = method.aes_gcm.m }\n}"
	for name, c := range map[string]struct{ text, command, err string }{
		"not encrypted":         {text: readOnly, command: "apply", err: "the first method does not encrypt"},
		"not encrypted, reader": {text: readOnly, command: "plan"},
		"wrong key": {
			text: `key_provider "static" "k" { key = "` + canary + `" }` + "\n" + `method "aes_gcm" "m" { keys = key_provider.static.k }` +
				"\nstate { method = method.aes_gcm.m }", command: "apply", err: "no state could be written after this run",
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
