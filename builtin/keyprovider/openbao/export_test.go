package openbao

import (
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// SetRetryWait shortens the waits between tries.
func SetRetryWait(p encryption.KeyProvider, d time.Duration) { p.(*provider).server.retryWait = d }
