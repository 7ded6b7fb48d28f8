package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// identity is the path of an identity of age, and its recipient.
func identity(t *testing.T, name string) (path, recipient string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "encryption", "internal", "method", "age", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(name, "ssh") {
		return path, strings.TrimSpace(read(t, path+".pub"))
	}
	_, after, _ := strings.Cut(read(t, path), "# public key: ")
	recipient, _, _ = strings.Cut(after, "\n")
	return path, recipient
}

// answered is what OpenTofu reads of an answer.
func answered(t *testing.T, stdout string) (a keyProviderAnswer) {
	t.Helper()
	header, body, _ := strings.Cut(stdout, "\n")
	if header != `{"magic":"OpenTofu-External-Key-Provider","version":1}` || json.Unmarshal([]byte(body), &a) != nil ||
		len(a.Keys.EncryptionKey) != 32 {
		t.Fatalf("got %q", stdout)
	}
	return a
}

func TestKeyProvider(t *testing.T) {
	t.Parallel()
	ours, recipient := identity(t, "x25519.key")
	sshKey, sshRecipient := identity(t, "ssh_ed25519")
	stranger, _ := identity(t, "other.key")
	team := write(t, filepath.Join(t.TempDir(), "team.txt"), "# our machines\n\n"+recipient+"\r\n")
	seal := []string{"key-provider", "age", "-R", team, "-r", sshRecipient}
	made := answered(t, must(t, "", "null", seal...))
	if made.Keys.DecryptionKey != nil {
		t.Error("there is a key to decrypt with, and nothing to decrypt")
	}
	for _, path := range []string{ours, sshKey} {
		again := answered(t, must(t, "", string(made.Meta)+"\n", append(seal, "-i", stranger, "-i", path)...))
		if string(again.Keys.DecryptionKey) != string(made.Keys.EncryptionKey) ||
			string(again.Keys.EncryptionKey) == string(made.Keys.EncryptionKey) || string(again.Meta) == string(made.Meta) {
			t.Errorf("%s: got another key, or the same again", path)
		}
	}
	got := statecrypt(t, "", `{"external_data":{"key":"main"}}`, append(seal, "-i", ours)...)
	if got.code != 0 || answered(t, got.stdout).Keys.DecryptionKey != nil || !strings.Contains(got.stderr, "another program of key_provider") {
		t.Errorf("of another program: %+v", got)
	}
	for name, args := range map[string][]string{"of a stranger": {"-i", stranger}, "none": nil} {
		got := statecrypt(t, "", string(made.Meta), append(seal, args...)...)
		if a := answered(t, got.stdout); got.code != 0 || a.Keys.DecryptionKey != nil ||
			!strings.Contains(got.stderr, "note: no key for this file") {
			t.Errorf("identity %s: %d, %s", name, got.code, got.stderr)
		}
	}
	for name, c := range map[string]struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		"nothing":           {"", seal, exitFailure, "OpenTofu runs this program"},
		"no metadata":       {"hello", seal, exitFailure, "OpenTofu runs this program"},
		"of another":        {`{"external_data":{"statecrypt_age_key":1}}`, append(seal, "-i", ours), exitFailure, "not that of an age key provider"},
		"other metadata":    {`{"foo":1}`, append(seal, "-i", ours), exitFailure, "neither null, as for a new file, nor metadata"},
		"an identity as -i": {"null", append(seal, "-i", strings.TrimSpace(read(t, ours))), exitUsage, "-i requires the name of a file"},
		"a sealed identity": {"null", append(seal, "-i", write(t, team+"9", "age-encryption.org/v1\n-> scrypt x "+
			"18\n")), exitFailure, "decrypt it first"},
		"a recipient as -R": {"null", []string{"key-provider", "age", "-R", recipient}, exitUsage, "which -r requires"},
		"no recipients":     {"null", []string{"key-provider", "age", "-i", ours}, exitUsage, "-r RECIPIENT or -R FILE is required"},
		"identity": {"null", []string{"key-provider", "age", "-R", ours}, exitFailure,
			ours + ": recipients: element 1: this is an identity, which is secret, and a recipient is required"},
		"two files, one wrong":       {"null", append(seal, "-R", ours), exitFailure, ours + ": recipients: element 1: "},
		"a file as a recipient":      {"null", []string{"key-provider", "age", "-r", team}, exitUsage, "-R reads recipients from one"},
		"no such identity":           {"null", append(seal, "-i", team+"4"), exitFailure, "cannot be read: no such file"},
		"a recipient as an identity": {"null", append(seal, "-i", team), exitFailure, "this is a public key"},
		"empty file": {"null", []string{"key-provider", "age", "-R", write(t, team+"2", "#\n")}, exitFailure, "there " +
			"is no recipient in it"},
		"no such file": {"null", []string{"key-provider", "age", "-R", team + "3"}, exitFailure, "no such file"},
		"no identity":  {string(made.Meta), append(seal, "-i", team+"3"), exitFailure, "identity_files"},
		"another kind": {"null", []string{"key-provider", "pgp", "-R", team}, exitUsage, "pgp here; there is: age"},
	} {
		got := statecrypt(t, "", c.stdin, c.args...)
		if got.code != c.code || !strings.Contains(got.stderr, c.want) || got.stdout != "" || strings.Contains(got.stderr, "AGE-SECRET-KEY-1") {
			t.Errorf("%s: %d, %q, %s", name, got.code, got.stdout, got.stderr)
		}
	}
}

// Plugins of age have the key of some of the team, and say when they want to be touched.
func TestKeyProviderPlugins(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the plugin is a link")
	}
	folder, dir := withPlugins(t), t.TempDir()
	key, recipient := identity(t, "x25519.key")
	statecrypt := func(stdin string, args ...string) (stdout, stderr string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(folder, name), args...)
		cmd.Env = []string{"PATH=" + folder}
		var out, problems strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &problems
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, problems.String())
		}
		return out.String(), problems.String()
	}
	generated, err := exec.CommandContext(t.Context(), filepath.Join(folder, "age-plugin-yubikey"), "--generate").Output()
	if err != nil {
		t.Fatal(err)
	}
	yubikey := write(t, filepath.Join(dir, "yubikey.txt"), string(generated))
	_, after, _ := strings.Cut(string(generated), "Recipient: ")
	toYubikey, _, _ := strings.Cut(after, "\n")
	seal := []string{"key-provider", "age", "-r", recipient, "-r", toYubikey}
	stdout, stderr := statecrypt("null", append(seal, "-i", yubikey)...)
	made := answered(t, stdout)
	if stderr != "" {
		t.Errorf("to encrypt, it says %s", stderr)
	}
	for path, want := range map[string]string{key: "", yubikey: `note: "age-plugin-yubikey" says "please touch\u001b[31m it"` + "\n"} {
		stdout, stderr := statecrypt(string(made.Meta), append(seal, "-i", path)...)
		if again := answered(t, stdout); string(again.Keys.DecryptionKey) != string(made.Keys.EncryptionKey) || stderr != want {
			t.Errorf("%s: got another key, or %s", path, stderr)
		}
	}
	settings := write(t, filepath.Join(dir, "keys.hcl"), fmt.Sprintf(`method "age" "team" {
  identity_files = [%q]
  recipients     = [%q]
}
state { method = method.age.team }
`, yubikey, toYubikey))
	sealed, _ := statecrypt(plain, "encrypt", "-config", settings)
	if opened, _ := statecrypt(sealed, "decrypt", "-config", settings); opened != plain {
		t.Errorf("got %s", opened)
	}
}

// OpenTofu writes and rotates a state for a team with the program; each of the team
// opens it, here by the key provider of the same name, and what is sealed here opens in
// OpenTofu. A job with recipients alone makes a plan that it cannot open.
func TestKeyProviderOfOpenTofu(t *testing.T) {
	t.Parallel()
	program := built(t)
	first, firstRecipient := identity(t, "x25519.key")
	second, secondRecipient := identity(t, "ssh_ed25519")
	third, thirdRecipient := identity(t, "other.key")
	quoted := func(texts ...string) string {
		out, _ := json.Marshal(texts)
		return string(out)
	}
	team := func(name, identity string, recipients ...string) string {
		command := []string{program, "key-provider", "age"}
		for _, r := range recipients {
			command = append(command, "-r", r)
		}
		if identity != "" {
			command = append(command, "-i", identity)
		}
		return fmt.Sprintf("key_provider \"external\" %q {\n  command = %s\n}\nmethod \"aes_gcm\" %[1]q { keys = key_provider.external.%[1]s }\n",
			name, quoted(command...))
	}
	const state, plan = "state { method = method.aes_gcm.team }\n", "plan { method = method.aes_gcm.team }\n"
	native := func(identity string) string {
		return fmt.Sprintf("key_provider \"age\" \"team\" {\n  identity_files = %s\n  recipients = %s\n}\n", quoted(identity),
			quoted(firstRecipient)) +
			"method \"aes_gcm\" \"team\" { keys = key_provider.age.team }\n" + state + plan
	}
	c := tofu(t, configuration)
	all := []string{firstRecipient, secondRecipient, thirdRecipient}
	c.run(t, team("team", first, all...)+state, "apply", "-auto-approve")
	path := c.file("terraform.tfstate")
	for _, one := range []string{first, second, third} {
		if opened := must(t, native(one), "", "decrypt", path); !strings.Contains(opened, canary+" of a resource") {
			t.Errorf("%s: got %s", one, opened)
		}
		c.run(t, team("team", one, all...)+state, "plan", "-detailed-exitcode")
	}

	// The third leaves: the next write is for the others.
	c.run(t, team("team", second, firstRecipient, secondRecipient)+state, "apply", "-auto-approve", "-replace=terraform_data.x")
	if got := statecrypt(t, native(third), "", "decrypt", path); got.code != exitFailure ||
		!strings.Contains(got.stderr, "no identity here opens it") {
		t.Errorf("%d, %s", got.code, got.stderr)
	}

	// One who has no identity for it reads by the fallback.
	another := team("another", third, thirdRecipient)
	c.run(t, team("team", second, firstRecipient, secondRecipient)+another+
		"state {\n  method = method.aes_gcm.another\n  fallback { method = method.aes_gcm.team }\n}\n", "plan", "-detailed-exitcode")

	// Sealed here, opened there.
	must(t, native(first), must(t, native(first), "", "decrypt", path), "encrypt", "-o", path)
	c.run(t, team("team", first, firstRecipient)+state, "plan", "-detailed-exitcode")

	// A plan that its maker cannot open.
	plain := write(t, c.file("plain.tfstate"), must(t, native(first), "", "decrypt", path))
	job := team("team", "", firstRecipient) + plan
	c.run(t, job, "plan", "-state="+plain, "-destroy", "-out=tfplan")
	cmd := exec.CommandContext(t.Context(), c.path, "show", "tfplan")
	cmd.Dir, cmd.Env = c.dir, append(cmd.Environ(), "TF_ENCRYPTION="+job, "CHECKPOINT_DISABLE=1")
	if out, err := cmd.CombinedOutput(); !errors.As(err, new(*exec.ExitError)) || strings.Contains(string(out), canary) {
		t.Errorf("the job opens its plan: %v\n%s", err, out)
	}
	c.run(t, team("team", first, firstRecipient)+plan, "show", "tfplan")
	must(t, native(first), "", "decrypt", "-plan", "-o", c.file("opened.tfplan"), c.file("tfplan"))
}
