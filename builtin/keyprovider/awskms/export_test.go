package awskms

import (
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// SetPatience shortens how long a provider waits for one answer, and between
// attempts.
func SetPatience(p driver.KeyProvider, timeout, maxWait time.Duration) {
	s := &p.(*provider).settings
	s.Timeout, s.MaxWait = timeout, maxWait
}
