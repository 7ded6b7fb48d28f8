package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/vectors"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/world"
)

// bucket is an "aws s3" whose buckets are folders.
const bucket = `#!/bin/sh
case $2 in
ls) find states -type f | sed 's/^/2026-01-01 00:00:00 1 /; s/states\///' ;;
cp)
  from=${3#s3://} to=${4#s3://}
  if [ "$to" = - ]; then cat "$from"; else cp "$from" "$to"; fi
  ;;
esac
`

// The commands of the guides run as they are printed.
func TestGuides(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the guides derive many keys")
	}
	bin := filepath.Dir(built(t))
	const shared = "../../examples/guides/"
	environ := append(world.World{}.Environ().Pairs(), "TF_VAR_plan_passphrase=a passphrase for plans",
		"TF_VAR_passphrase_2025=a passphrase of 2025",
		"TF_VAR_passphrase_2026=a passphrase of 2026", "TF_VAR_readers_passphrase=a passphrase for readers",
		"TF_VAR_old_passphrase="+vectors.Get(t, "tbg_aes").BackendEnv["TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"])

	t.Run("rotating-and-converting", func(t *testing.T) {
		t.Parallel()
		dir := guideFolder(t, "rotating-and-converting")
		in := func(name string) string { return filepath.Join(dir, name) }
		for _, folder := range []string{"bin", "states/a", ".config/sops/age"} {
			if err := os.MkdirAll(in(folder), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(in("bin/aws"), []byte(bucket), 0o700); err != nil {
			t.Fatal(err)
		}
		state := strings.Replace(plain, `"n":`, `"vpc_id":{"value":"vpc-1","type":"string"},"n":`, 1)
		var out strings.Builder
		if code := run(t.Context(), []string{"encrypt", "-config", in("old.hcl")}, strings.NewReader(state), &out, &out, environ); code != 0 {
			t.Fatal(out.String())
		}
		for _, name := range []string{"network.tfstate", "states/a/one.tfstate", "states/two.tfstate"} {
			write(t, in(name), out.String())
		}
		write(t, in("sops.tfstate"), read(t, "../../internal/vectors/sops/tbg_sops_age/state.raw"))
		write(t, in(".config/sops/age/keys.txt"), read(t, "../../internal/vectors/sops/tbg_sops_age/age_identity.txt"))
		write(t, in("tbg.tfstate"), string(vectors.Get(t, "tbg_aes").State(t)))

		follow(t, "rotating-and-converting", dir, append(environ, "HOME="+dir, "PATH="+in("bin")+":"+bin+":"+os.Getenv("PATH")))
		for _, name := range []string{"network.tfstate", "states/a/one.tfstate", "states/two.tfstate", "opentofu.tfstate"} {
			opens(t, environ, in("new.hcl"), in(name), `"version":`)
		}
		if got := opens(t, environ, in("readers.hcl"), in("network-outputs.tfstate"), `"vpc-1"`); strings.Contains(got, canary) {
			t.Errorf("readers get %s", got)
		}
	})
	t.Run("encrypted-plans", func(t *testing.T) {
		t.Parallel()
		c := terraform(t, configuration)
		write(t, c.file("plans.hcl"), read(t, shared+"encrypted-plans/plans.hcl"))
		follow(t, "encrypted-plans", c.dir, append(environ, "HOME="+c.dir, "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1",
			"PATH="+bin+":"+os.Getenv("PATH")))
		if got := read(t, c.file("terraform.tfstate")); !strings.Contains(got, canary) {
			t.Errorf("the plan was not applied: %s", got)
		}
		if strings.HasPrefix(read(t, c.file("tfplan")), "PK") {
			t.Error("the plan is not encrypted")
		}
	})
}

// guideFolder is a folder with a copy of a guide's examples.
func guideFolder(t *testing.T, guide string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/guides/"+guide)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// follow runs all blocks of a guide that are marked as sh.
func follow(t *testing.T, guide, dir string, environ []string) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no bash, or another one than the guides are for")
	}
	script := "set -euo pipefail\n"
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(read(t, "../../templates/guides/"+guide+".md.tmpl"), -1) {
		script += block[1]
	}
	cmd := exec.CommandContext(t.Context(), bash, "-c", script)
	cmd.Dir, cmd.Env = dir, environ
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(script, "statecrypt ") < 2 {
		t.Fatalf("%v\n%s", err, out)
	}
}

func opens(t *testing.T, environ []string, config, file, want string) string {
	t.Helper()
	var out, problems strings.Builder
	code := run(t.Context(), []string{"decrypt", "-config", config, file}, strings.NewReader(""), &out, &problems, environ)
	if code != 0 || !strings.Contains(out.String(), want) {
		t.Errorf("%s: %d, %s%s", file, code, out.String(), problems.String())
	}
	return out.String()
}
