package consul

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// settings holds a server's address and the credentials for it.
type settings struct {
	source.Grant
	place
}

// place is the address of a server.
type place struct {
	base   url.URL // scheme, host, and the path before /v1/kv/
	socket string  // path of a socket to connect to instead of the host; may be empty
}

// choose returns the settings in the block called name.
func choose(credentials source.Credentials, name string) (settings, error) {
	g, err := credentials.Named("credentials_name", name)
	if err != nil {
		return settings{}, err
	}
	scheme := g.String("scheme")
	if g.Bool(sslVar) {
		scheme = "https"
	}
	s := settings{Grant: g}
	if s.place, err = parsePlace(g.String("address"), scheme); err != nil {
		return settings{}, g.Errorf("", "%w", err)
	}
	return s, nil
}

// unreached returns advice for an address at which no server responds, or an empty string if there is none.
func unreached(address string) string {
	_, host, _ := strings.Cut("//"+address, "//")
	switch {
	case address == "":
		return "No address is set, so localhost:8500 was tried; set address in {credentials}, or CONSUL_HTTP_ADDR"
	case !strings.Contains(address, "://") && !strings.Contains(host, ":"):
		return "The address has no port, so port 80 was tried; add the port, for example 8500"
	}
	return ""
}

// near returns SameServer if two addresses have the same host and port, or the same socket.
func near(home, asked string) source.Match {
	a, errA := parsePlace(home, "")
	b, errB := parsePlace(asked, "")
	return source.SameServerIf(errA == nil && errB == nil && strings.EqualFold(a.base.Host, b.base.Host) && a.socket == b.socket)
}

var errAddress = errors.New("the address is not valid; write host:port, an http or https URL without user name, password and query, or " +
	"unix:// with the path of a socket")

// parsePlace parses an address as Consul's own programs do: https is used if the address or the scheme says
// so.
func parsePlace(address, scheme string) (place, error) {
	if scheme = cmp.Or(scheme, "http"); scheme != "http" && scheme != "https" {
		return place{}, errors.New("scheme must be http or https")
	}
	address = cmp.Or(address, "localhost:8500")
	if own, rest, ok := strings.Cut(address, "://"); ok {
		switch own {
		case "http":
		case "https":
			scheme = "https"
		case "unix":
			if rest == "" {
				return place{}, errAddress
			}
			return place{base: url.URL{Scheme: scheme, Host: "localhost"}, socket: rest}, nil
		default:
			return place{}, errAddress
		}
		address = rest
	}
	u := recognize.Server(scheme + "://" + address)
	if u == nil {
		return place{}, errAddress
	}
	return place{base: url.URL{Scheme: scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}}, nil
}
