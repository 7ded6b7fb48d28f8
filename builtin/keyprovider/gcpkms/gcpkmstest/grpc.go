package gcpkmstest

import (
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
)

// CloudKMS returns a handler for a fake Cloud KMS that runs until the test ends. It accepts JSON, which we
// use, and gRPC, which OpenTofu uses. If account is not nil, it also accepts tokens that account has signed.
func CloudKMS(tb testing.TB, service *Service, account *cloudtest.ServiceAccount) http.Handler {
	tb.Helper()
	inJSON := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if account != nil && account.Signed(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
			r.Header.Set("Authorization", "Bearer "+Token)
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

// overGRPC translates gRPC calls to JSON requests. Messages and errors have a standard mapping between the
// two protocols.
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
