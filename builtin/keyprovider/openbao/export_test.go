package openbao

import (
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// SetRetryWait shortens the waits between tries.
func SetRetryWait(p driver.KeyProvider, d time.Duration) { p.(*provider).server.retryWait = d }
