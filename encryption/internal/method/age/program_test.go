package age_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// What the age program seals, we open; what we seal, it opens.
func TestRealProgram(t *testing.T) {
	t.Parallel()
	age, programs := testkit.Program(t, "STATECRYPT_AGE"), t.TempDir()
	// The program asks a terminal for passphrases. Its plugin takes them from the
	// environment.
	for _, name := range []string{"age-keygen", "age-plugin-batchpass"} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", programs+string(filepath.Separator), "filippo.io/age/cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as other tests build, so that it was compiled already
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	run := func(t *testing.T, program string, stdin []byte, args ...string) []byte {
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
				file, err := method.(encryption.Encrypter).Encrypt(t.Context(), nil, plain)
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
