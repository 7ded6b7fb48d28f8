package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/plugin"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/logs"
)

// name is what the command is called. The tests run it as a process of its own
// without compiling it: under this name, the program of the tests is the command.
const name = "statecrypt"

func TestMain(m *testing.M) {
	switch strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") {
	case name:
		logs.Silence()
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	case "age-plugin-yubikey":
		os.Exit(yubikey())
	case "terraform":
		os.Exit(asTerraform())
	}
	m.Run()
}

// run runs a command that does not say how far long work is, because that depends on the time it takes.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	return newCall(stdin, stdout, stderr, environ).run(ctx, args)
}

// yubikey is a plugin of age with the arguments of the one for YubiKeys, whose keys are
// in the identities: the data is a key of age as text.
func yubikey() int {
	if slices.Contains(os.Args, "--generate") {
		key, err := age.GenerateX25519Identity()
		if err != nil {
			return 1
		}
		fmt.Printf("#    Recipient: %s\n%s\n", plugin.EncodeRecipient("yubikey", []byte(key.Recipient().String())),
			plugin.EncodeIdentity("yubikey", []byte(key.String())))
		return 0
	}
	p, err := plugin.New("yubikey")
	if err != nil {
		return 1
	}
	p.HandleRecipient(func(data []byte) (age.Recipient, error) { return age.ParseX25519Recipient(string(data)) })
	p.HandleIdentity(func(data []byte) (age.Identity, error) {
		key, err := age.ParseX25519Identity(string(data))
		return touched{p, key}, err
	})
	return p.Main()
}

// touched is an identity that wants to be touched.
type touched struct {
	plugin *plugin.Plugin
	age.Identity
}

func (i touched) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	if err := i.plugin.DisplayMessage("please touch\x1b[31m it"); err != nil {
		return nil, err
	}
	return i.Identity.Unwrap(stanzas)
}

// withPlugins links the plugin into a folder, beside the command.
func withPlugins(t *testing.T) (folder string) {
	t.Helper()
	folder = filepath.Dir(built(t))
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(folder, "age-plugin-yubikey"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// built returns the path of the command.
func built(t *testing.T) (path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if err := os.Symlink(self, path); err != nil {
		t.Skipf("there are no links here: %v", err)
	}
	return path
}

// TestProcess is about the command as a process of its own.
func TestProcess(t *testing.T) {
	t.Parallel()
	path, text := built(t), plain
	for _, verb := range []string{"encrypt", "decrypt"} { // by a pipe
		cmd := exec.Command(path, verb)
		cmd.Env = append(os.Environ(), "TF_ENCRYPTION="+onlyOld)
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		text = string(out)
	}
	if text != plain {
		t.Errorf("got %s", text)
	}
	if runtime.GOOS != "windows" {
		interrupted(t, path)
	}
}

// interrupted sends the signal of Ctrl-C while the program waits for its input.
func interrupted(t *testing.T, path string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), path, "decrypt", "-o", filepath.Join(dir, "x"))
	cmd.Env = append(os.Environ(), "TF_ENCRYPTION="+onlyOld)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds, so it is reading.
	_, _ = in.Write(make([]byte, 1<<20))
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err == nil || err.Error() != "signal: interrupt" {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("these were left: %v, %v", left, err)
	}
}
