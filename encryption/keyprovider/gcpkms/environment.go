package gcpkms

import (
	"crypto/tls"

	"cloud.google.com/go/auth"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth"
)

// endpoint is the address of Cloud KMS.
// https://cloud.google.com/kms/docs/reference/rpc
const endpoint = "cloudkms.googleapis.com:443"

// withoutEnvironment adds what keeps the client from the environment, which it
// reads by itself: proxies, the endpoint and the universe, client certificates,
// and the project that is billed. Credentials are put on each call here,
// because the client would look for that project again.
func withoutEnvironment(options []option.ClientOption, creds *auth.Credentials) ([]option.ClientOption, error) {
	if err := (googleauth.Access{}).RefuseVariables("GOOGLE_API_CERTIFICATE_CONFIG"); err != nil {
		return nil, err
	}
	return append(options,
		option.WithoutAuthentication(),
		option.WithEndpoint(endpoint),
		option.WithGRPCDialOption(grpc.WithNoProxy()),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}))),
		option.WithGRPCDialOption(grpc.WithPerRPCCredentials(googleauth.Bearer{Creds: creds})),
	), nil
}
