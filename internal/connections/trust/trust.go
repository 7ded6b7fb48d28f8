// Package trust restricts which certificate authorities are trusted.
package trust

import (
	"crypto/tls"
	"runtime"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Error means that a connection was refused because an environment variable adds certificate authorities
// although the environment is off.
type Error struct{ error }

// NonRetriable tells the Azure SDK not to retry.
func (*Error) NonRetriable() {}

// RetryableError tells the AWS SDK not to retry.
func (*Error) RetryableError() bool { return false }

// Check returns an error if the environment is off, but environment variables add certificate authorities to
// the system's. Go itself reads these variables, once for all connections of the process, except on systems
// that verify certificates themselves.
func Check(w world.World) error {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return nil
	}
	if err := w.Refuse(world.Authorities); err != nil {
		return &Error{err}
	}
	return nil
}

// Config returns c, or a new configuration if c is nil. If [Check] returns an error, connections fail with
// this error before anything is sent, unless c sets its own certificate authorities or disables verification.
func Config(w world.World, c *tls.Config) *tls.Config {
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if err := Check(w); err != nil && c.RootCAs == nil && !c.InsecureSkipVerify {
		c.VerifyConnection = func(tls.ConnectionState) error { return err }
	}
	return c
}
