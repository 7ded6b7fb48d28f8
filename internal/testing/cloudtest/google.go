package cloudtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
)

// ServiceAccount is a Google Cloud service account that signs tokens itself.
type ServiceAccount struct {
	JSON string // the credentials of the account
	key  *rsa.PrivateKey
}

// NewServiceAccount creates an account.
func NewServiceAccount(tb testing.TB) *ServiceAccount {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	der, _ := x509.MarshalPKCS8PrivateKey(key) // never fails for RSA
	document, _ := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "1", "client_id": "1",
		"client_email": "reader@p.iam.gserviceaccount.com", "token_uri": "https://oauth2.googleapis.com/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}) // never fails for strings
	return &ServiceAccount{string(document), key}
}

// Signed reports whether token is a JSON Web Token signed by the account.
func (a *ServiceAccount) Signed(token string) bool {
	end := strings.LastIndex(token, ".")
	if end < 0 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(token[end+1:])
	digest := sha256.Sum256([]byte(token[:end]))
	return err == nil && rsa.VerifyPKCS1v15(&a.key.PublicKey, crypto.SHA256, digest[:], signature) == nil
}
