package gcpkms

import (
	"testing"

	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// That the time was up says less than why the tries before failed.
func TestReason(t *testing.T) {
	t.Parallel()
	late, gone := status.Error(codes.DeadlineExceeded, "late"), status.Error(codes.Unavailable, "gone")
	var reason error
	r := retryer{gax.OnCodes(nil, gax.Backoff{}), &reason}
	for _, step := range []struct{ failure, want error }{{late, late}, {gone, gone}, {late, gone}} {
		r.Retry(step.failure)
		if reason != step.want { //nolint:errorlint // the very same
			t.Errorf("after %v: got %v, want %v", step.failure, reason, step.want)
		}
	}
}
