package cloudtest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cloud.google.com/go/kms/apiv1/kmspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
)

// CloudKMS is a Cloud KMS, until the test ends, for those who speak JSON, as we do, and
// gRPC, as OpenTofu does. Beside its token, it takes those that account signs, if it is not
// nil.
func CloudKMS(tb testing.TB, service *gcpkmstest.Service, account *ServiceAccount) http.Handler {
	tb.Helper()
	inJSON := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if account != nil && account.signed(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
			r.Header.Set("Authorization", "Bearer "+gcpkmstest.Token)
		}
		service.ServeHTTP(w, r)
	})
	server := grpc.NewServer()
	tb.Cleanup(server.Stop)
	kmspb.RegisterKeyManagementServiceServer(server, overGRPC{service: inJSON})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") == "application/grpc" {
			server.ServeHTTP(w, r)
			return
		}
		inJSON.ServeHTTP(w, r)
	})
}

// overGRPC asks a service in JSON. Google has one rule for what a message and an error
// are in the other protocol.
type overGRPC struct {
	kmspb.UnimplementedKeyManagementServiceServer
	service http.Handler
}

func (g overGRPC) Encrypt(ctx context.Context, r *kmspb.EncryptRequest) (*kmspb.EncryptResponse, error) {
	path, answer := r.GetName()+":encrypt", &kmspb.EncryptResponse{}
	r.Name = ""
	return answer, g.ask(ctx, path, r, answer)
}

func (g overGRPC) Decrypt(ctx context.Context, r *kmspb.DecryptRequest) (*kmspb.DecryptResponse, error) {
	path, answer := r.GetName()+":decrypt", &kmspb.DecryptResponse{}
	r.Name = ""
	return answer, g.ask(ctx, path, r, answer)
}

func (g overGRPC) ask(ctx context.Context, path string, question, answer proto.Message) error {
	body, err := protojson.Marshal(question)
	if err != nil {
		return err
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/"+path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header["Authorization"] = metadata.ValueFromIncomingContext(ctx, "authorization")
	recorder := httptest.NewRecorder()
	g.service.ServeHTTP(recorder, r)
	if recorder.Code == http.StatusOK {
		return protojson.Unmarshal(recorder.Body.Bytes(), answer)
	}
	var refusal struct {
		Error struct {
			Status  codes.Code
			Message string
		}
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &refusal); err != nil {
		return err
	}
	return status.Error(refusal.Error.Status, refusal.Error.Message)
}

// ServiceAccount is an account of Google's cloud that signs tokens itself.
type ServiceAccount struct {
	JSON string // its credentials
	key  *rsa.PrivateKey
}

// NewServiceAccount makes an account.
func NewServiceAccount(tb testing.TB) *ServiceAccount {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	der, _ := x509.MarshalPKCS8PrivateKey(key) // of RSA: never fails
	document, _ := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "1", "client_id": "1",
		"client_email": "reader@p.iam.gserviceaccount.com", "token_uri": "https://oauth2.googleapis.com/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}) // of strings: never fails
	return &ServiceAccount{string(document), key}
}

// signed reports whether token is a JSON Web Token with the account's
// signature.
func (a *ServiceAccount) signed(token string) bool {
	end := strings.LastIndex(token, ".")
	if end < 0 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(token[end+1:])
	digest := sha256.Sum256([]byte(token[:end]))
	return err == nil && rsa.VerifyPKCS1v15(&a.key.PublicKey, crypto.SHA256, digest[:], signature) == nil
}
