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
	mistakes := openMistakes(t, "key-provider")
	for name, c := range map[string]struct {
		metadata string
		args     []string
	}{
		"another program":           {`{"external_data":{"key":"main"}}`, []string{"-i", ours}},
		"identity of a stranger":    {string(made.Meta), []string{"-i", stranger}},
		"no identity to decrypt by": {metadata: string(made.Meta)},
	} {
		got := statecrypt(t, "", c.metadata, append(seal, c.args...)...)
		if answered(t, got.stdout).Keys.DecryptionKey != nil {
			t.Errorf("%s: there is a key to decrypt with", name)
		}
		mistakes.check(t, name, got)
	}
	for name, c := range map[string]struct {
		stdin string
		args  []string
	}{
		"nothing":                    {"", seal},
		"no metadata":                {"hello", seal},
		"of another":                 {`{"external_data":{"statecrypt_age_key":1}}`, append(seal, "-i", ours)},
		"other metadata":             {`{"foo":1}`, append(seal, "-i", ours)},
		"an identity as -i":          {"null", append(seal, "-i", strings.TrimSpace(read(t, ours)))},
		"a sealed identity":          {"null", append(seal, "-i", write(t, team+"9", "age-encryption.org/v1\n-> scrypt x 18\n"))},
		"a recipient as -R":          {"null", []string{"key-provider", "age", "-R", recipient}},
		"no recipients":              {"null", []string{"key-provider", "age", "-i", ours}},
		"identity":                   {"null", []string{"key-provider", "age", "-R", ours}},
		"two files, one wrong":       {"null", append(seal, "-R", ours)},
		"a file as a recipient":      {"null", []string{"key-provider", "age", "-r", team}},
		"no such identity":           {"null", append(seal, "-i", team+"4")},
		"a recipient as an identity": {"null", append(seal, "-i", team)},
		"empty file":                 {"null", []string{"key-provider", "age", "-R", write(t, team+"2", "#\n")}},
		"no such file":               {"null", []string{"key-provider", "age", "-R", team + "3"}},
		"no identity":                {string(made.Meta), append(seal, "-i", team+"3")},
		"another kind":               {"null", []string{"key-provider", "pgp", "-R", team}},
	} {
		got := statecrypt(t, "", c.stdin, c.args...)
		if got.code == 0 || got.stdout != "" {
			t.Errorf("%s: %d, %q", name, got.code, got.stdout)
		}
		mistakes.check(t, name, got)
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
	if got := statecrypt(t, native(third), "", "decrypt", path); got.code != exitFailure || got.stdout != "" {
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
