package gcpkms

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/netfail"
)

// explain says what an error of the service means, and whether another key
// provider may be tried. The text of the service is not shown: it may repeat
// what was sent.
func (p *provider) explain(ctx context.Context, verb string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for Cloud KMS: %w", ctx.Err())
	}
	message := status.Convert(err).Message()
	// gRPC makes a code of the status of an answer that is no gRPC, such as a
	// proxy's, which knows nothing of keys.
	if strings.HasPrefix(message, "unexpected HTTP status code received from server: 403") {
		return errors.New("an answer that is not of Cloud KMS came back (HTTP status 403); check any proxy")
	}
	switch code := status.Code(err); code {
	case codes.NotFound:
		return fmt.Errorf("%w: Cloud KMS does not know the key %s; check kms_encryption_key", encryption.ErrNoKey, p.name)
	case codes.PermissionDenied:
		return fmt.Errorf("%w: Cloud KMS denies to %s with the key %s, or the key does not exist; grant the "+
			"permission cloudkms.cryptoKeyVersions.useTo%s on it", encryption.ErrNoKey, verb, p.name, strings.ToUpper(verb[:1])+verb[1:])
	case codes.FailedPrecondition:
		return fmt.Errorf("%w: Cloud KMS cannot use the key %s: it, or the version that is needed, is disabled "+
			"or destroyed", encryption.ErrNoKey, p.name)
	case codes.InvalidArgument:
		// Sent as well when a request was damaged on its way. The name of the
		// checksum field is all that tells the two apart.
		if strings.Contains(message, "crc32c") {
			return errors.New("the request to Cloud KMS was damaged on its way: its checksum does not match; try again")
		}
		return fmt.Errorf("%w: Cloud KMS cannot %s this with the key %s: it was encrypted with another key or other "+
			"additional_authenticated_data, or it is damaged", encryption.ErrNoKey, verb, p.name)
	case codes.Unauthenticated:
		return errors.New("no access: Cloud KMS does not accept the credentials; they may have expired")
	case codes.ResourceExhausted:
		return errors.New("too many calls: Cloud KMS refuses further calls for now: a quota of the project is used up; try again later")
	case codes.Unavailable, codes.DeadlineExceeded:
		if reason := netfail.KnownReason(err, ""); reason != "" {
			return errors.New("no answer from Cloud KMS: " + reason)
		}
		return errors.New("no answer from Cloud KMS: it could not be reached, or did not answer in time; check the network and proxies")
	default:
		if errors.Is(err, context.DeadlineExceeded) {
			return errors.New("no answer from Cloud KMS: " + netfail.NotInTime)
		}
		return fmt.Errorf("unexpected answer: Cloud KMS failed to %s with the key %s (%s)", verb, p.name, code)
	}
}
