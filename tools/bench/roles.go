package main

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
)

// roles maps role names to functions, because a bench process may also play the role of a measured program.
var roles = map[string]func(args []string) error{
	"nothing":    func([]string) error { return nil },
	"primitives": func(args []string) error { return primitives(args[0]) },
	"library":    func(args []string) error { return library(args[0], args[1]) },
	"seal":       func(args []string) error { return sealFile(args[0], args[1]) },
	"noted":      func(args []string) error { return exitStatus(noted(args, nil)) },
	"clone":      func(args []string) error { return clone(args[0], args[1]) },
}

// library opens a file and decodes its outputs, as the provider does.
func library(settings, path string) error {
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	enc, err := newEncryption(settings)
	if err != nil {
		return err
	}
	opened, err := enc.State().DecryptInPlace(context.Background(), file)
	if err != nil {
		return err
	}
	state, err := tfstate.Parse(opened.Data)
	if err != nil {
		return err
	}
	for _, output := range state.Outputs {
		if _, err := output.Value(); err != nil {
			return err
		}
	}
	if len(state.Outputs) == 0 {
		return errors.New("no outputs")
	}
	return nil
}

// sealFile encrypts a file, as a program with the library would.
func sealFile(settings, path string) error {
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	enc, err := newEncryption(settings)
	if err != nil {
		return err
	}
	_, err = enc.State().Encrypt(context.Background(), file)
	return err
}

// primitives does only the steps that cannot be avoided: reading the file, base64 and AES-GCM in place, deriving one
// key, and looking for the end of the outputs.
func primitives(path string) error {
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	const member = `"encrypted_data":"`
	start := bytes.Index(file, []byte(member))
	var header struct {
		Meta map[string][]byte `json:"meta"`
	}
	if err := json.Unmarshal(append(bytes.Clone(file[:start]), `"x":0}`...), &header); err != nil {
		return err
	}
	var kdf struct {
		Salt       []byte `json:"salt"`
		Iterations int    `json:"iterations"`
		KeyLength  int    `json:"key_length"`
	}
	if err := json.Unmarshal(header.Meta["key_provider.pbkdf2.p"], &kdf); err != nil {
		return err
	}
	key, err := pbkdf2.Key(sha512.New, passphrase, kdf.Salt, kdf.Iterations, kdf.KeyLength)
	if err != nil {
		return err
	}
	text := file[start+len(member):]
	text = text[:bytes.IndexByte(text, '"')]
	n, err := base64.StdEncoding.Decode(text, text)
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return err
	}
	plain, err := gcm.Open(text[12:12], text[:12], text[12:n], nil)
	if err != nil {
		return err
	}
	if !bytes.Contains(plain, []byte(`"resources"`)) {
		return errors.New("no outputs")
	}
	return nil
}

// clone reads a file as terraform-backend-git does: from a clone of depth 1 in memory.
func clone(url, path string) error {
	tree := memfs.New()
	if _, err := git.Clone(memory.NewStorage(), tree, &git.CloneOptions{URL: url, Depth: 1, SingleBranch: true}); err != nil {
		return err
	}
	f, err := tree.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err == nil && len(content) == 0 {
		err = errors.New("the file is empty")
	}
	return err
}

// notesVariable names the variable for the notes file, in which providers and the noted role record their costs. A
// process started by this one directly would count this process's memory as its own.
const notesVariable = "STATECRYPT_BENCH_NOTES"

// wrapped is the suffix of the real provider's executable when this program takes its place.
const wrapped = ".measured"

// wrap runs the real provider, if this executable has taken its place, and notes its cost.
func wrap() (code int, ok bool) {
	self, err := os.Executable()
	if err != nil {
		return 0, false
	}
	provider := filepath.Join(filepath.Dir(self), filepath.Base(self)+wrapped)
	if _, err := os.Stat(provider); err != nil {
		return 0, false
	}
	return noted(append([]string{provider}, os.Args[1:]...), os.Stdout), true
}

// noted runs a program and notes its cost. A nil stdout discards the output.
func noted(args []string, stdout io.Writer) (code int) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	_ = cmd.Wait()
	note(cmd.ProcessState)
	return cmd.ProcessState.ExitCode()
}

func exitStatus(code int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("exit status %d", code)
}

// note adds a cost to the notes, because Terraform and OpenTofu start a provider several times.
func note(state *os.ProcessState) {
	path := os.Getenv(notesVariable)
	rusage, ok := state.SysUsage().(*syscall.Rusage)
	if path == "" || !ok {
		return
	}
	peak, cpu := readNotes(path)
	peak = max(peak, rusage.Maxrss*1024) // Linux counts in kilobytes
	cpu += state.UserTime() + state.SystemTime()
	_ = os.WriteFile(path, fmt.Appendf(nil, "%d %d", peak, cpu), 0o600)
}

func readNotes(path string) (peak int64, cpu time.Duration) {
	if text, err := os.ReadFile(path); err == nil {
		_, _ = fmt.Sscan(string(text), &peak, &cpu)
	}
	return peak, cpu
}
