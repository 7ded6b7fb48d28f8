// Package gcpkmstest is a Google Cloud KMS for tests: the real wire protocol
// (gRPC over TLS), with keys that are constants.
package gcpkmstest

import (
	"cmp"
	"context"
	"hash/crc32"
	"testing"

	"cloud.google.com/go/kms/apiv1/kmspb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Token is the access token that the service accepts.
const Token = "gcpkmstest-access-token"

// Service is the service. Without AllowEncrypt it refuses every call but
// Decrypt. It is safe for concurrent use; set the fields before.
type Service struct {
	kmspb.UnimplementedKeyManagementServiceServer

	Keys         map[string][]byte // :: resource name of a key → AES key
	AllowEncrypt bool
	Before       func(ctx context.Context, call string) error // runs before each call, and may fail it; may be nil
	After        func(*kmspb.DecryptResponse)                 // may spoil an answer; may be nil
	AfterEncrypt func(*kmspb.EncryptResponse)                 // the same
	Token        string                                       // what is accepted; Token of this package when empty

	Unauthenticated func(context.Context) error // answers to another token; may be nil

	calls nettest.Log[string]
}

// Calls returns the names of the calls that were made, refused ones included.
func (s *Service) Calls() []string { return s.calls.All() }

// Server returns a server of the service, which counts and checks every call.
func (s *Service) Server() *grpc.Server {
	server := grpc.NewServer(grpc.UnaryInterceptor(s.intercept))
	kmspb.RegisterKeyManagementServiceServer(server, s)
	return server
}

func (s *Service) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	call := info.FullMethod[len("/google.cloud.kms.v1.KeyManagementService/"):]
	s.calls.Note(call)
	want := cmp.Or(s.Token, Token)
	if got := metadata.ValueFromIncomingContext(ctx, "authorization"); len(got) != 1 || got[0] != "Bearer "+want {
		if s.Unauthenticated != nil {
			return nil, s.Unauthenticated(ctx)
		}
		return nil, status.Error(codes.Unauthenticated, "Request had invalid authentication credentials.")
	}
	if call != "Decrypt" && (call != "Encrypt" || !s.AllowEncrypt) {
		return nil, status.Errorf(codes.PermissionDenied, "Permission denied for %s.", call)
	}
	if s.Before != nil {
		if err := s.Before(ctx, call); err != nil {
			return nil, err
		}
	}
	return handler(ctx, request)
}

// Decrypt opens what Encrypt sealed.
func (s *Service) Decrypt(_ context.Context, r *kmspb.DecryptRequest) (*kmspb.DecryptResponse, error) {
	box, err := s.box(r, r.GetCiphertext(), r.GetCiphertextCrc32C())
	if err != nil {
		return nil, err
	}
	plain, ok := box.Open(r.GetCiphertext(), bind(r.GetName(), r.GetAdditionalAuthenticatedData()))
	if !ok {
		return nil, status.Error(codes.InvalidArgument, "Decryption failed: verify that 'name' refers to the correct CryptoKey.")
	}
	response := &kmspb.DecryptResponse{Plaintext: plain, PlaintextCrc32C: checksum(plain), UsedPrimary: true}
	if s.After != nil {
		s.After(response)
	}
	return response, nil
}

// Encrypt seals: mark, nonce, AES-GCM.
func (s *Service) Encrypt(_ context.Context, r *kmspb.EncryptRequest) (*kmspb.EncryptResponse, error) {
	box, err := s.box(r, r.GetPlaintext(), r.GetPlaintextCrc32C())
	if err != nil {
		return nil, err
	}
	sealed := box.Seal(r.GetPlaintext(), bind(r.GetName(), r.GetAdditionalAuthenticatedData()))
	response := &kmspb.EncryptResponse{
		Name: r.GetName() + "/cryptoKeyVersions/1", Ciphertext: sealed, CiphertextCrc32C: checksum(sealed),
		VerifiedPlaintextCrc32C:                   r.GetPlaintextCrc32C() != nil,
		VerifiedAdditionalAuthenticatedDataCrc32C: r.GetAdditionalAuthenticatedDataCrc32C() != nil,
	}
	if s.AfterEncrypt != nil {
		s.AfterEncrypt(response)
	}
	return response, nil
}

// box is what seals with the key of a request, if its checksums are right.
func (s *Service) box(r interface {
	GetName() string
	GetAdditionalAuthenticatedData() []byte
	GetAdditionalAuthenticatedDataCrc32C() *wrapperspb.Int64Value
}, data []byte, sum *wrapperspb.Int64Value) (nettest.Box, error) {
	key, ok := s.Keys[r.GetName()]
	if !ok {
		return nettest.Box{}, status.Errorf(codes.NotFound, "CryptoKey %s not found.", r.GetName())
	}
	if !matches(data, sum) || !matches(r.GetAdditionalAuthenticatedData(), r.GetAdditionalAuthenticatedDataCrc32C()) {
		return nettest.Box{}, status.Error(codes.InvalidArgument, "The checksum did not match the data.")
	}
	return nettest.Box{Mark: "FAKEGCP1", Key: key}, nil
}

// bind ties a ciphertext to its key and to the caller's data. Without data it
// is the name alone, as in the files that are kept as test vectors.
func bind(name string, additional []byte) []byte {
	if len(additional) == 0 {
		return []byte(name)
	}
	return append([]byte(name+"\x00"), additional...)
}

func checksum(data []byte) *wrapperspb.Int64Value {
	return wrapperspb.Int64(int64(crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))))
}

func matches(data []byte, sum *wrapperspb.Int64Value) bool {
	return sum == nil || sum.GetValue() == checksum(data).GetValue()
}

// Start serves the service on the loopback interface until the test ends. It
// returns the options with which a client finds and trusts it.
func (s *Service) Start(tb testing.TB) []option.ClientOption {
	tb.Helper()
	server := s.Server()
	tb.Cleanup(server.Stop)
	site := nettest.Start(tb, server)
	return []option.ClientOption{
		option.WithEndpoint(site.Listener.Addr().String()),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(credentials.NewTLS(nettest.Anyhow(site)))),
		option.WithGRPCConnectionPool(1),
	}
}
