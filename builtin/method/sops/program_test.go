package sops_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/pgp"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/method/sops"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// gpgHome is a keyring of its own with one key.
type gpgHome struct{ dir, fingerprint string }

func newGPG(t *testing.T, passphrase string) gpgHome {
	t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("there is no gpg: files for PGP keys are not tested")
	}
	dir, err := os.MkdirTemp("", "g") // the path of the agent's socket must be short
	if err != nil {
		t.Fatal(err)
	}
	// By default, the agent derives keys from passphrases for as long as its
	// calibration says; this is the least that it can do.
	if err := os.WriteFile(filepath.Join(dir, "gpg-agent.conf"), []byte("s2k-count 65536\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := gpgHome{dir: dir}
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", dir, "--kill", "all").Run()
		os.RemoveAll(dir)
	})
	g.run(t, "--pinentry-mode", "loopback", "--passphrase", passphrase, "--quick-gen-key", "Test <test@example.com>", "future-default",
		"default", "never")
	g.fingerprint = regexp.MustCompile(`(?m)^fpr:+([0-9A-F]{40}):`).FindStringSubmatch(g.run(t, "--with-colons", "--list-keys"))[1]
	return g
}

func (g gpgHome) run(t *testing.T, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "gpg", append([]string{"--homedir", g.dir, "--batch", "--yes"}, arguments...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("gpg %q: %v: %s", arguments, err, stderr.Bytes())
	}
	return string(out)
}

func (g gpgHome) private(t *testing.T, passphrase string) string {
	t.Helper()
	return g.run(t, "--pinentry-mode", "loopback", "--passphrase", passphrase, "--armor", "--export-secret-keys")
}

// runSops runs the real program, if make built it.
func runSops(t *testing.T, env []string, arguments ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.Program(t, "STATECRYPT_SOPS"), arguments...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	cmd.Dir = t.TempDir()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sops %q: %v: %s", arguments, err, stderr.Bytes())
	}
	return out
}

// TestSopsProgram opens what the real program encrypted, in each format, for
// several recipients.
func TestSopsProgram(t *testing.T) {
	identity, recipient := newAge(t)
	stranger, other := newAge(t)
	gpg := newGPG(t, "")
	t.Setenv("GNUPGHOME", gpg.dir)
	plain := filepath.Join(t.TempDir(), "terraform.tfstate")
	if err := os.WriteFile(plain, []byte(plainState), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"GNUPGHOME=" + gpg.dir}
	recipients := []string{"--age", other + "," + recipient, "--pgp", gpg.fingerprint}
	withAge := build(t, attrs{"age_identities": texts(identity)}, nil)
	withKey := build(t, attrs{"pgp_private_keys": texts(gpg.private(t, ""))}, nil)
	withGPG := build(t, nil, environment())
	wrong, _ := newAge(t)
	for name, arguments := range map[string][]string{
		"json":   {"--input-type", "json", "--output-type", "json"},
		"yaml":   {"--input-type", "json", "--output-type", "yaml"},
		"binary": nil,
	} {
		t.Run(name, func(t *testing.T) {
			file := runSops(t, env, append(append([]string{"encrypt"}, append(recipients, arguments...)...), plain)...)
			if bytes.Contains(file, []byte("canary")) {
				t.Fatalf("it is not encrypted: %s", file)
			}
			opens(t, withAge, file, plainState)
			opens(t, build(t, attrs{"age_identities": texts(stranger)}, nil), file, plainState)
			opens(t, withKey, file, plainState)
			opens(t, withGPG, file, plainState)
			fails(t, build(t, attrs{"age_identities": texts(wrong)}, nil), file, true)
		})
	}
	t.Run("partly", func(t *testing.T) {
		file := runSops(t, env, append(append([]string{"encrypt"}, recipients...), "--input-type", "json", "--output-type", "json",
			"--encrypted-regex", "^(outputs|resources)$", plain)...)
		opens(t, build(t, attrs{"age_identities": texts(identity), "allow_unencrypted_values": cty.True}, nil), file, plainState)
		fails(t, withAge, file, false)
	})
	t.Run("what sops itself reads", func(t *testing.T) {
		numbers := filepath.Join(t.TempDir(), "numbers.json")
		if err := os.WriteFile(numbers, []byte(`{"version":4,"n":[0,-1,1.5,1e300,9007199254740993,123456789012345678901234567890,0.1,1E-7],"s":["","<&>","\u2028","ü"],"b":[true,false,null],"o":{},"l":[[],[{}]]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		file := runSops(t, env, append(append([]string{"encrypt"}, recipients...), numbers)...)
		path := filepath.Join(t.TempDir(), "sealed.json")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		want := runSops(t, []string{"SOPS_AGE_KEY=" + identity}, "decrypt", path)
		got, err := withAge.Decrypt(t.Context(), nil, file)
		if err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, want); err != nil || compact.String() != string(got) {
			t.Errorf("got  %s\nwant %s", got, compact.String())
		}
	})
}

var fingerprint = regexp.MustCompile(`\b[0-9A-F]{40}\b`)

func checkPGP(t *testing.T, says *testkit.Golden, name string, err error) {
	t.Helper()
	says.Check(t, name, fingerprint.ReplaceAllString(testkit.WithFacts(err), "FINGERPRINT"))
}

func TestPGP(t *testing.T) {
	const passphrase = "canary-passphrase"
	gpg, other := newGPG(t, passphrase), newGPG(t, "")
	file := pgpFile(t, gpg)
	key, open := gpg.private(t, passphrase), other.private(t, "")
	opens(t, build(t, attrs{"pgp_private_keys": texts(open, key), "pgp_passphrase": cty.StringVal(passphrase)}, nil), file,
		plainState)
	says := kindtest.OpenMistakes(t, "sops, PGP")
	for name, c := range map[string]struct {
		attrs attrs
		noKey bool
	}{
		"another key":      {attrs{"pgp_private_keys": texts(open)}, true},
		"locked":           {attrs{"pgp_private_keys": texts(open, key)}, false},
		"wrong passphrase": {attrs{"pgp_private_keys": texts(key), "pgp_passphrase": cty.StringVal("canary")}, false},
		"public":           {attrs{"pgp_private_keys": texts(open, gpg.run(t, "--armor", "--export"))}, false},
		"no key":           {attrs{"pgp_private_keys": texts(open, "canary")}, false},
		"none":             {nil, true},
		"no gpg":           {attrs{"use_gpg": cty.True, "gpg_command": cty.StringVal("no-such-gpg")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			checkPGP(t, says, name, fails(t, build(t, c.attrs, nil), file, c.noKey))
		})
	}
	t.Setenv("GNUPGHOME", other.dir)
	fails(t, build(t, nil, environment()), file, true)
	both := build(t, attrs{"pgp_private_keys": texts(open)}, environment())
	checkPGP(t, says, "two places", fails(t, both, file, true))
	opens(t, build(t, attrs{"pgp_private_keys": texts(key), "pgp_passphrase": cty.StringVal(passphrase)}, environment()), pgpFile(t, other),
		plainState)
	opens(t, build(t, attrs{"pgp_private_keys": texts(key), "pgp_passphrase": cty.StringVal(passphrase)}, environment()),
		file, plainState)
	fails(t, build(t, attrs{"use_gpg": cty.False}, environment()), file, true)
}

func pgpKey(fingerprint, message string) keys.MasterKey {
	return &pgp.MasterKey{Fingerprint: fingerprint, EncryptedKey: message}
}

// forMany is a message of PGP that says n times for whom it is encrypted.
func forMany(t *testing.T, n int) string {
	t.Helper()
	var text bytes.Buffer
	w, err := armor.Encode(&text, "PGP MESSAGE", nil)
	for range n {
		err = errors.Join(err, (&packet.OpaquePacket{Tag: 1, Contents: []byte("x")}).Serialize(w))
	}
	if err = errors.Join(err, (&packet.OpaquePacket{Tag: 18, Contents: []byte("x")}).Serialize(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// encrypt has gpg encrypt part of a key.
func (g gpgHome) encrypt(t *testing.T, part []byte) keys.MasterKey {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, part, 0o600); err != nil {
		t.Fatal(err)
	}
	return pgpKey(g.fingerprint, g.run(t, "--armor", "--output", "-", "--trust-model", "always", "--recipient", g.fingerprint,
		"--compress-algo", "none", "--encrypt", path))
}

// pgpFile is a file whose data key gpg encrypted.
func pgpFile(t *testing.T, gpg gpgHome) []byte {
	t.Helper()
	dataKey := newDataKey()
	return of(t, dataKey, gpg.encrypt(t, dataKey))
}

// TestForgedPGP: a message that is not encrypted, or for a passphrase, opens
// with no key of the reader's.
func TestForgedPGP(t *testing.T) {
	gpg := newGPG(t, "")
	dataKey := newDataKey()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, dataKey, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNUPGHOME", gpg.dir)
	for name, arguments := range map[string][]string{
		"plain":  {"--armor", "--output", "-", "--store", path},
		"signed": {"--armor", "--output", "-", "--sign", path},
	} {
		t.Run(name, func(t *testing.T) {
			file := of(t, dataKey, pgpKey(gpg.fingerprint, gpg.run(t, arguments...)))
			fails(t, build(t, attrs{"pgp_private_keys": texts(gpg.private(t, ""))}, nil), file, true)
			fails(t, build(t, nil, environment()), file, true)
		})
	}
	long := of(t, dataKey, gpg.encrypt(t, make([]byte, 2<<10)))
	says := kindtest.OpenMistakes(t, "sops, a long key")
	for name, m := range map[string]driver.Method{
		"pgp_private_keys": build(t, attrs{"pgp_private_keys": texts(gpg.private(t, ""))}, nil),
		"gpg":              build(t, nil, environment()),
	} {
		checkPGP(t, says, name, fails(t, m, long, false))
	}
}

// TestGPGEnvironment: gpg is not told our secrets, and what it says is escaped.
func TestGPGEnvironment(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "gpg")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ncat >/dev/null\nenv >"+dir+"/env\nprintf 'said \\033[31m\\n' >&2\nexit 2\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), script).Run(); err == nil {
		t.Fatal("the script should fail")
	} else if _, ran := err.(*exec.ExitError); !ran {
		t.Skip("scripts cannot be run here")
	}
	t.Setenv("TF_ENCRYPTION", "canary")
	t.Setenv("TF_VAR_x", "canary")
	t.Setenv("GNUPGHOME", dir)
	file := of(t, newDataKey(), pgpKey("AAAA", "-----BEGIN PGP MESSAGE-----"))
	fails(t, build(t, attrs{"gpg_command": cty.StringVal(script)}, environment()), file, true)
	got, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(got), "canary") || !strings.Contains(string(got), "GNUPGHOME="+dir) {
		t.Errorf("gpg got %s", got)
	}
	fails(t, build(t, attrs{"gpg_command": cty.StringVal(script), "use_gpg": cty.True}, nil), file, true)
	if got, err = os.ReadFile(filepath.Join(dir, "env")); err != nil || strings.Contains(string(got), "GNUPGHOME") {
		t.Errorf("without the environment, gpg got %s, %v", got, err)
	}
	// SOPS_GPG_EXEC would choose a program; it is not read.
	t.Setenv("PATH", t.TempDir())
	fails(t, build(t, nil, environment("SOPS_GPG_EXEC", script)), file, true)
}

// TestAnswersOfGPG: what its status lines, its exit code and what it printed mean together.
func TestAnswersOfGPG(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for gpg is a shell script")
	}
	t.Parallel()
	dataKey := []byte("0123456789abcdef0123456789abcdef")
	file := of(t, dataKey, pgpKey("AAAA", "-----BEGIN PGP MESSAGE-----"))
	const okay, key = `echo "[GNUPG:] DECRYPTION_OKAY" >&2; `, "printf 0123456789abcdef0123456789abcdef; "
	says := kindtest.OpenMistakes(t, "sops, gpg")
	for name, c := range map[string]struct {
		script string
		mode   os.FileMode
		noKey  bool
		opens  bool
	}{
		"the key":         {script: okay + key, mode: 0o700, opens: true},
		"no key":          {script: okay, mode: 0o700},
		"a long key":      {script: okay + "head -c 2000 /dev/zero", mode: 0o700},
		"a key, and fail": {script: okay + key + "exit 2", mode: 0o700, noKey: true},
		"a key, no word":  {script: key, mode: 0o700, noKey: true},
		"no private key":  {script: `echo "[GNUPG:] NO_SECKEY AAAA" >&2; exit 2`, mode: 0o700, noKey: true},
		"words":           {script: `printf '[GNUPG:] X\n\none\n two\n' >&2; exit 2`, mode: 0o700, noKey: true},
		"killed":          {script: "kill -9 $$", mode: 0o700},
		"no program":      {mode: 0o600, noKey: true},
	} {
		path := filepath.Join(t.TempDir(), "gpg")
		if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >/dev/null\n"+c.script+"\n"), c.mode); err != nil {
			t.Fatal(err)
		}
		m := build(t, attrs{"use_gpg": cty.True, "gpg_command": cty.StringVal(path)}, nil)
		if c.opens {
			opens(t, m, file, plainState)
		} else {
			says.Error(t, name, fails(t, m, file, c.noKey))
		}
	}
}

// TestGPGOfALayer: no variable says what gpg starts in turn if only TF_ENCRYPTION has it run.
//
// Promise: TF_ENCRYPTION
func TestGPGOfALayer(t *testing.T) {
	gpg := newGPG(t, "")
	file := pgpFile(t, gpg)
	if err := exec.CommandContext(t.Context(), "gpgconf", "--homedir", gpg.dir, "--kill", "all").Run(); err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	agent := filepath.Join(t.TempDir(), "agent")
	for path, text := range map[string]string{
		agent: "#!/bin/sh\necho x >>" + ran + "\nexit 2\n", filepath.Join(gpg.dir, "gpg.conf"): "agent-program " + agent + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GNUPGHOME", gpg.dir)
	t.Setenv("HOME", t.TempDir())
	table, says := sops.Block().Table, kindtest.OpenMistakes(t, "sops, gpg of a layer")
	for name, c := range map[string]struct {
		layer   func(*unstable.Entry)
		allowed bool
		runs    bool
	}{
		"code":    {func(*unstable.Entry) {}, false, true},
		"a layer": {func(e *unstable.Entry) { e.FromEnvironment = true }, false, false},
		"use_gpg": {func(e *unstable.Entry) {
			e.Settings["use_gpg"] = unstable.Setting{Value: cty.True, FromEnvironment: true}
		}, false, false},
		"a layer, allowed": {func(e *unstable.Entry) { e.FromEnvironment = true }, true, true},
	} {
		_ = os.Remove(ran)
		entry := unstable.NewEntry("method.sops.x", table, nil)
		c.layer(entry)
		values, err := entry.Resolve(table, unstable.Scope{Lookup: environment(), AllowCommands: c.allowed})
		if err != nil {
			t.Fatal(err)
		}
		method, err := sops.Block().Build(values)
		if err != nil {
			t.Fatal(err)
		}
		failure := fails(t, method, file, true)
		if _, err := os.Stat(ran); (err == nil) != c.runs {
			t.Errorf("%s: the program in GNUPGHOME ran: %t", name, err == nil)
		}
		checkPGP(t, says, name, failure)
	}
}
