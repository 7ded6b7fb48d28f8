// Program method is an external encryption method for OpenTofu and for statecrypt. It encrypts with AES-256-GCM, and
// derives a new key for each file.
//
//	method "external" "derived" {
//	  keys            = key_provider.external.keys
//	  encrypt_command = ["tofu-method", "encrypt"]
//	  decrypt_command = ["tofu-method", "decrypt"]
//	}
//
// The protocol: https://opentofu.org/docs/language/state/encryption/#external-experimental-1
package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

const (
	header   = `{"magic":"OpenTofu-External-Encryption-Method","version":1}`
	saltSize = 32
	info     = "tofu-method example v1"
)

// input and output are the messages of the protocol. []byte is base64 in JSON.
type input struct {
	Key     []byte `json:"key"`
	Payload []byte `json:"payload"`
}

type output struct {
	Payload []byte `json:"payload"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		// Users see only stderr, and only when the exit status is not 0.
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	fmt.Println(header)
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return errors.New("the input is not that of the protocol")
	}
	if len(in.Key) < 16 {
		return errors.New("a key of at least 16 bytes is required: set keys")
	}
	var out output
	var err error
	switch {
	case len(args) == 1 && args[0] == "encrypt":
		out.Payload, err = encrypt(in.Key, in.Payload)
	case len(args) == 1 && args[0] == "decrypt":
		out.Payload, err = decrypt(in.Key, in.Payload)
	default:
		err = errors.New("usage: tofu-method encrypt|decrypt")
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// encrypt returns a random salt, followed by the nonce and the encrypted data.
func encrypt(key, plain []byte) ([]byte, error) {
	salt := make([]byte, saltSize)
	if _, err := rand.Read(salt); err != nil {
		return nil, err
	}
	gcm, err := derive(key, salt)
	if err != nil {
		return nil, err
	}
	return gcm.Seal(salt, nil, plain, nil), nil //nolint:gosec // the cipher creates the nonce itself
}

func decrypt(key, data []byte) ([]byte, error) {
	if len(data) < saltSize {
		return nil, errors.New("the data is too short")
	}
	gcm, err := derive(key, data[:saltSize])
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, nil, data[saltSize:], nil)
	if err != nil {
		return nil, errors.New("the key is another one, or the file was changed")
	}
	return plain, nil
}

func derive(key, salt []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, key, salt, info, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
