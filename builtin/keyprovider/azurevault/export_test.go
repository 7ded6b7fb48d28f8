package azurevault

import (
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// SetPatience shortens how long a provider waits.
func SetPatience(p encryption.KeyProvider, d time.Duration) { p.(*provider).patience = d }

// SetRetryDelay shortens the first wait between tries, and with it the others.
func SetRetryDelay(p encryption.KeyProvider, d time.Duration) {
	p.(*provider).access.RetryDelay = d
}
