package age_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/plugin"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/ageplugin"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// programsOf are programs of age's module, compiled into one folder.
func programsOf(t *testing.T, packages ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range packages {
		cmd := exec.Command("go", "build", "-trimpath", "-o", dir+string(filepath.Separator), "filippo.io/age/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as other tests build, so that it was compiled already
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	return dir
}

// output is what a program prints that finds others in one folder alone.
func output(t *testing.T, programs, program string, stdin []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"PATH=" + programs, "HOME=" + programs, "AGE_PASSPHRASE=" + filePassphrase, "AGE_PASSPHRASE_WORK_FACTOR=10"}
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

// What the age program seals, we open; what we seal, it opens.
func TestProgramOfAge(t *testing.T) {
	t.Parallel()
	age := testkit.Program(t, "STATECRYPT_AGE")
	// The program asks a terminal for passphrases. Its plugin takes them from the
	// environment.
	programs := programsOf(t, "cmd/age-keygen", "cmd/age-plugin-batchpass")
	run := func(t *testing.T, program string, stdin []byte, args ...string) []byte {
		t.Helper()
		return output(t, programs, program, stdin, args...)
	}
	key := func(args ...string) (identity, recipient string) {
		text := run(t, filepath.Join(programs, "age-keygen"), nil, args...)
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path, public(t, text)
	}
	x25519, toX25519 := key()
	hybrid, toHybrid := key("-pq")
	for name, c := range map[string]struct {
		attrs         []any
		encrypt, open []string // arguments of the program
	}{
		"x25519": {[]any{"identity_files", []string{x25519}, "recipients", []string{toX25519}}, []string{"-r", toX25519},
			[]string{"-i", x25519}},
		"armored": {[]any{"identity_files", []string{x25519}, "recipients", []string{toX25519}}, []string{"-a", "-r", toX25519},
			[]string{"-i", x25519}},
		"hybrid": {[]any{"identity_files", []string{hybrid}, "recipients", []string{toHybrid}}, []string{"-r", toHybrid},
			[]string{"-i", hybrid}},
		"ssh-ed25519": {[]any{"identity_files", []string{"testdata/ssh_ed25519"}, "recipients",
			[]string{string(testdata(t, "ssh_ed25519.pub"))}}, []string{"-R", "testdata/ssh_ed25519.pub"}, []string{"-i", "testdata/ssh_ed25519"}},
		"ssh-rsa": {[]any{"identity_files", []string{"testdata/ssh_rsa"}, "recipients", []string{string(testdata(t, "ssh_rsa.pub"))}},
			[]string{"-R", "testdata/ssh_rsa.pub"}, []string{"-i", "testdata/ssh_rsa"}},
		"two recipients": {[]any{"identity_files", []string{x25519}, "recipients", []string{string(testdata(t, "ssh_rsa.pub")), toX25519}},
			[]string{"-R", "testdata/ssh_rsa.pub", "-r", toX25519}, []string{"-i", "testdata/ssh_rsa"}},
		"passphrase": {[]any{"passphrase", filePassphrase}, []string{"-e", "-j", "batchpass"}, []string{"-j", "batchpass"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method := newMethod(t, c.attrs...)
			for size, plain := range map[string][]byte{
				"a state": testdata(t, "state.json"),
				"large":   bytes.Repeat([]byte("0123456789abcdef"), 1<<14), // several of age's chunks
			} {
				plain = bytes.Clone(plain)
				file := run(t, age, plain, c.encrypt...)
				if opened, err := method.Decrypt(t.Context(), nil, file); err != nil || !bytes.Equal(opened, plain) {
					t.Errorf("%s, sealed by age: %d bytes, %v", size, len(opened), err)
				}
				file, err := method.(driver.Encrypter).Encrypt(t.Context(), nil, plain)
				if err != nil {
					t.Fatal(err)
				}
				if opened := run(t, age, file, append([]string{"-d"}, c.open...)...); !bytes.Equal(opened, plain) {
					t.Errorf("%s, opened by age: %d bytes", size, len(opened))
				}
			}
		})
	}
}

// Plugins of age's makers, which need no hardware. Whatever age seals through one, we
// open through it, and the other way round.
func TestPluginsOfAge(t *testing.T) {
	program := testkit.Program(t, "STATECRYPT_AGE")
	programs := programsOf(t, "cmd/age-keygen", "cmd/age-plugin-batchpass", "extra/age-plugin-pq", "tag/internal/age-plugin-tagtest")
	t.Setenv("PATH", programs)
	t.Setenv("AGE_PASSPHRASE", filePassphrase)
	run := func(program string, stdin []byte, args ...string) []byte {
		t.Helper()
		return output(t, programs, program, stdin, args...)
	}
	file := func(text []byte) string {
		path := filepath.Join(t.TempDir(), "identity")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := run("age-keygen", nil, "-pq")
	hybrid, toHybrid := file(text), public(t, text)
	asPlugin := run("age-plugin-pq", nil, "-identity", hybrid)
	pq, plain := file(asPlugin), testdata(t, "state.json")
	const toTag = "age1tag1qwe0kafsjrar4txm6heqnhpfuggzr0gvznz7fvygxrlq90u5mq2pysxtw6h" // of the plugin tagtest
	tagtest := plugin.EncodeIdentity("tagtest", nil)
	for name, c := range map[string]struct {
		attrs         []any
		encrypt, open []string // arguments of the program
	}{
		"an identity": {[]any{"identity_files", []string{pq}, "recipients", []string{toHybrid}},
			[]string{"-r", toHybrid}, []string{"-i", pq}},
		"to the identity": {[]any{"identities", []string{string(asPlugin)}, "recipients", []string{string(asPlugin)}},
			[]string{"-e", "-i", pq}, []string{"-i", hybrid}},
		"opened without": {[]any{"identity_files", []string{hybrid}, "recipients", []string{string(asPlugin)}},
			[]string{"-e", "-i", pq}, []string{"-i", pq}},
		"a key in hardware": {[]any{"identities", []string{tagtest}, "recipients", []string{toTag}},
			[]string{"-r", toTag}, []string{"-j", "tagtest"}},
	} {
		method := newMethod(t, c.attrs...)
		if opened, err := method.Decrypt(t.Context(), nil, run(program, plain, c.encrypt...)); err != nil || !bytes.Equal(opened, plain) {
			t.Errorf("%s, sealed by age: %q, %v", name, opened, err)
		}
		sealed, err := method.(driver.Encrypter).Encrypt(t.Context(), nil, bytes.Clone(plain))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if opened := run(program, sealed, append([]string{"-d"}, c.open...)...); !bytes.Equal(opened, plain) {
			t.Errorf("%s, opened by age: %q", name, opened)
		}
	}

	// A recipient that age itself knows, wrapped by the plugin.
	recipient, err := ageplugin.Parse(toHybrid, world.World{})
	if err != nil {
		t.Fatal(err)
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, recipient.In(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plain); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if opened := run(program, sealed.Bytes(), "-d", "-i", hybrid); !bytes.Equal(opened, plain) {
		t.Errorf("opened by age: %q", opened)
	}

	// None of them opens what is for others, and one does not get a passphrase.
	for identity, noKey := range map[string]bool{string(asPlugin): true, tagtest: true, plugin.EncodeIdentity("batchpass", nil): false} {
		_, err := newMethod(t, "identities", []string{identity}).Decrypt(t.Context(), nil, testdata(t, "x25519.age"))
		if err == nil || errors.Is(err, driver.ErrNoKey) != noKey {
			t.Errorf("got %v", err)
		}
	}
}
