package awskms

import (
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// SetPatience shortens how long a provider waits for one answer, and between
// attempts.
func SetPatience(p encryption.KeyProvider, timeout, maxWait time.Duration) {
	s := &p.(*provider).settings
	s.Timeout, s.MaxWait = timeout, maxWait
}
