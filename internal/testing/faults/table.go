package faults

import (
	"net/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Service holds the responses of a key service, in its own format. A response that the service does not have is nil,
// and its rows must be in Cannot.
type Service struct {
	Throttled, Unavailable, Denied, Disabled, NotFound, AnotherKey http.HandlerFunc
}

const year = "31536000" // in seconds

// broken is the error users see when a connection ends. Which part it is depends on timing.
const broken = netfail.Ended + or + netfail.BrokeOff

// table returns the rows of faults. Without a service, the rows for services are left out. Users of each client see
// another text in a row without a usual result, so the default of such a row is [InGolden].
func table(service *Service) []fault {
	rows := []fault{
		{name: "nobody listens", usual: netfail.NotReached, refused: true, wire: true},
		{name: "reset at once", usual: broken, conn: resetAtOnce, wire: true},
		{name: "reset in the body", usual: broken, answer: resetMidBody, wire: true},
		{name: "reset in the body, once", usual: Works, answer: resetMidBody, once: true},
		{name: "closed without an answer", usual: netfail.BrokeOff, answer: closed, wire: true},
		{name: "short body", usual: netfail.BrokeOff, answer: short},
		{name: "Content-Length too large", usual: netfail.BrokeOff, answer: wrongLength(func(n int) int { return n + 10 }), wire: true},
		{name: "Content-Length too small", answer: wrongLength(func(n int) int { return n / 2 })},
		{name: "endless body", answer: endless, large: true},
		{name: "endless header", usual: netfail.Invalid, answer: endlessHeader, large: true, wire: true},
		{name: "gzip bomb", answer: bomb(), large: true},
		{name: "endless gzip of nothing", answer: emptyPacks(), large: true},
		{name: "nested a million deep", answer: nested, large: true},
		malformed("not HTTP", ""),
		malformed("malformed status line", "HTTP/1.1 "),
		malformed("malformed header", "HTTP/1.1 200 OK\r\n"),
		{name: "another service", answer: garbage},

		{name: "stall", usual: netfail.NoAnswer, answer: stall, late: true},
		{name: "stall in the body", usual: netfail.NoAnswer, answer: stallMidBody, late: true, wire: true},
		{name: "slow drip", usual: netfail.NoAnswer, answer: drip, late: true, wire: true},
		{name: "stall, cancelled", answer: stall, cancelled: true},
		{name: "stall in the body, cancelled", answer: stallMidBody, cancelled: true, wire: true},
		{name: "slow drip, cancelled", answer: drip, cancelled: true, wire: true},
		{name: "stall in the handshake, cancelled", conn: mute, cancelled: true, wire: true},

		{name: "403", answer: status(403)},
		{name: "500, once", usual: Works, answer: status(500), once: true, wire: true},
		{name: "500", answer: status(500)},
		{name: "503, once", usual: Works, answer: status(503), once: true, wire: true},
		{name: "503 with Retry-After, once", usual: Works, answer: status(503, "Retry-After", "0"), once: true, wire: true},
		{name: "429 with Retry-After, once", usual: Works, answer: status(429, "Retry-After", "0"), once: true, wire: true},
		{name: "429 with Retry-After", answer: status(429, "Retry-After", "0")},
		{name: "429 with Retry-After of a year", answer: status(429, "Retry-After", year)},
		{name: "429 with Retry-After of a year, cancelled", answer: status(429, "Retry-After", year), cancelled: true},

		{name: "redirect loop", answer: redirectLoop},
		{name: "redirect to another origin", answer: redirectAway},
		{name: "redirect to plain http", answer: downgrade},
		{name: "301 that names another host", answer: elsewhere(301), stays: true},
		{name: "401 that names another host", answer: elsewhere(401), stays: true},

		{name: "certificate expired", usual: netfail.NotTrusted, flaw: nettest.Expired, wire: true},
		{name: "certificate of another host", usual: netfail.NotTrusted, flaw: nettest.OfAnotherHost, wire: true},
		{name: "certificate of an unknown authority", usual: netfail.NotTrusted, unknown: true},
		{name: "TLS 1.0", usual: netfail.NoHandshake, oldTLS: true, wire: true},
		{name: "no TLS", usual: netfail.NotTLS, conn: notTLS, wire: true},
		{name: "handshake breaks off", usual: broken, conn: brokenHandshake, wire: true},
	}
	if service != nil {
		rows = append(rows, serviceRows(service)...)
	}
	for i, row := range rows {
		if row.usual == "" && !row.cancelled {
			rows[i].usual = InGolden
		}
	}
	return rows
}

func serviceRows(service *Service) []fault {
	return []fault{
		{name: "throttled", answer: answer(service.Throttled)},
		{name: "throttled, once", usual: Works, answer: answer(service.Throttled), once: true},
		{name: "throttled for a year", answer: answer(later(service.Throttled))},
		{name: "throttled for a year, cancelled", answer: answer(later(service.Throttled)), cancelled: true},
		{name: "unavailable", answer: answer(service.Unavailable)},
		{name: "unavailable, once", usual: Works, answer: answer(service.Unavailable), once: true},
		{name: "denied", answer: answer(service.Denied), refusal: true},
		{name: "disabled", answer: answer(service.Disabled), refusal: true},
		{name: "not found", answer: answer(service.NotFound), refusal: true},
		{name: "another key", answer: answer(service.AnotherKey), refusal: true},
	}
}

// later adds a header that asks the client to wait for a year.
func later(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", year)
		h(w, r)
	}
}
