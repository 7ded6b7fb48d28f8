package netfail

import (
	"net"
	"strings"
)

// Titles of warnings about connections that work.
const (
	NotVerified  = "Unverified connection"
	NotEncrypted = "Unencrypted connection"
)

// Warning is converted to that of the package that passes it on.
type Warning struct{ Title, Text string }

// Unverified is the warning of a connection whose other end is not known. Others
// on the way can do the harm.
func Unverified(whose, because, harm string) Warning {
	return Warning{NotVerified, "The certificate of " + whose + " was not verified, because " + because +
		". Anybody on the way can " + harm + "."}
}

// Unencrypted is the warning of a connection without TLS over which what was sent.
func Unencrypted(what, because, harm string) Warning {
	return Warning{NotEncrypted, what + " sent without encryption, because " + because + ". Anybody on the way can " + harm + "."}
}

// IsLoopback reports whether what is sent to host stays on this machine.
func IsLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}
