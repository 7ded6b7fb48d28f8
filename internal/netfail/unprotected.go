package netfail

import (
	"net"
	"strings"
)

// Unverified is the warning of a key service whose connection works.
func Unverified(whose, because string) string {
	return "The certificate of " + whose + " was not verified, because " + because + ". " +
		"Anybody on the way can read the credentials and the keys."
}

// Unencrypted is the warning of a key service that is reached without TLS.
func Unencrypted(because string) string {
	return "The credentials and the keys were sent without encryption, because " + because + ". Anybody on the way can read them."
}

// IsLoopback reports whether host is this machine, so that nobody is on the way.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
