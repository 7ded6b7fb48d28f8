package gcpkms

import (
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// SetPatience shortens how long a provider retries.
func SetPatience(p encryption.KeyProvider, d time.Duration) { p.(*provider).patience = d }
