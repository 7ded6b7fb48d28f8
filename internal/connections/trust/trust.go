// Package trust restricts the authorities that verified connections trust.
package trust

import (
	"crypto/tls"
	"runtime"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Error is the error for a connection that was refused because a variable adds authorities although the
// environment is off.
type Error struct{ error }

// NonRetriable tells the SDK of Azure not to try again.
func (*Error) NonRetriable() {}

// RetryableError tells the SDK of AWS not to try again.
func (*Error) RetryableError() bool { return false }

// Check returns an error if the environment is off, but variables add authorities to the
// system's. Go reads these variables itself, once for all connections of the process, except where
// the system verifies certificates.
func Check(w world.World) error {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return nil
	}
	if err := w.Refuse(world.Authorities); err != nil {
		return &Error{err}
	}
	return nil
}

// Config returns c, or a new one if it is nil, whose connections fail with the error of [Check] before
// anything is sent, unless they have authorities of their own or are not verified.
func Config(w world.World, c *tls.Config) *tls.Config {
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if err := Check(w); err != nil && c.RootCAs == nil && !c.InsecureSkipVerify {
		c.VerifyConnection = func(tls.ConnectionState) error { return err }
	}
	return c
}
