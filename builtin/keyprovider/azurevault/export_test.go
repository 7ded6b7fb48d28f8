package azurevault

import (
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// SetPatience shortens how long a provider waits.
func SetPatience(p driver.KeyProvider, d time.Duration) { p.(*provider).patience = d }

// SetRetryDelay shortens the first wait between tries, and with it the others.
func SetRetryDelay(p driver.KeyProvider, d time.Duration) {
	p.(*provider).access.RetryDelay = d
}
