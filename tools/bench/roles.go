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
	"io"
	"os"

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
