package nettest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"strings"
)

// Box encrypts in the format of the fake key services: a mark, a nonce, and AES-GCM ciphertext bound to data from the
// caller. Some test files that real tools made were sealed with these services.
type Box struct {
	Mark string
	Key  []byte // 16, 24 or 32 bytes
}

// Seal encrypts plain, and binds the result to bound.
func (b Box) Seal(plain, bound []byte) []byte {
	gcm := b.gcm()
	nonce := make([]byte, gcm.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return gcm.Seal(append([]byte(b.Mark), nonce...), nonce, plain, bound)
}

// Open decrypts data that Seal returned. It fails for any other data.
func (b Box) Open(sealed, bound []byte) (plain []byte, ok bool) {
	gcm := b.gcm()
	rest, ok := strings.CutPrefix(string(sealed), b.Mark)
	if !ok || len(rest) < gcm.NonceSize() {
		return nil, false
	}
	plain, err := gcm.Open(nil, []byte(rest[:gcm.NonceSize()]), []byte(rest[gcm.NonceSize():]), bound)
	return plain, err == nil
}

func (b Box) gcm() cipher.AEAD { return must(cipher.NewGCM(must(aes.NewCipher(b.Key)))) }
