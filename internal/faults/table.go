package faults

import "net/http"

// Service has the answers of a key service, in its own form. One that the
// service does not have is nil, and its rows are in Cannot.
type Service struct {
	Throttled, Unavailable, Denied, Disabled, NotFound, AnotherKey http.HandlerFunc
}

// row is a fault that every client meets.
type row struct {
	name  string
	fault Fault

	refusal   bool // the service says that it has no such key for this caller
	large     bool // much more is sent than may be kept
	cancelled bool // the caller gives up, and that is what it is told
	closed    bool // the server does not come back
}

const year = "31536000" // in seconds

// table is what goes wrong. Rows may be added; each client then has to say what
// its users see. The rows of a service are left out without one.
func table(service *Service) []row {
	rows := []row{
		{name: "nobody listens", fault: Refused(), closed: true},
		{name: "reset at once", fault: Reset()},
		{name: "reset in the body", fault: ResetMidBody()},
		{name: "reset in the body, once", fault: ResetMidBody().Once()},
		{name: "closed without an answer", fault: Closed()},
		{name: "short body", fault: Short()},
		{name: "Content-Length too large", fault: TooLargeLength()},
		{name: "Content-Length too small", fault: TooSmallLength()},
		{name: "endless body", fault: Endless(), large: true},
		{name: "gzip bomb", fault: Bomb(), large: true},
		{name: "not HTTP", fault: NotHTTP()},
		{name: "malformed status line", fault: BadStatusLine()},
		{name: "malformed header", fault: BadHeader()},
		{name: "another service", fault: Garbage()},

		{name: "stall", fault: Stall()},
		{name: "stall in the body", fault: StallMidBody()},
		{name: "slow drip", fault: Drip()},
		{name: "stall, cancelled", fault: Stall(), cancelled: true},
		{name: "stall in the body, cancelled", fault: StallMidBody(), cancelled: true},
		{name: "slow drip, cancelled", fault: Drip(), cancelled: true},
		{name: "stall in the handshake, cancelled", fault: Mute(), cancelled: true},

		{name: "403", fault: Status(403)},
		{name: "500, once", fault: Status(500).Once()},
		{name: "500", fault: Status(500)},
		{name: "503, once", fault: Status(503).Once()},
		{name: "503 with Retry-After, once", fault: Status(503, "Retry-After", "0").Once()},
		{name: "429 with Retry-After, once", fault: Status(429, "Retry-After", "0").Once()},
		{name: "429 with Retry-After", fault: Status(429, "Retry-After", "0")},
		{name: "429 with Retry-After of a year", fault: Status(429, "Retry-After", year)},
		{name: "429 with Retry-After of a year, cancelled", fault: Status(429, "Retry-After", year), cancelled: true},

		{name: "redirect loop", fault: RedirectLoop()},
		{name: "redirect to another origin", fault: RedirectAway()},
		{name: "redirect to plain http", fault: Downgrade()},

		{name: "certificate expired", fault: Expired()},
		{name: "certificate of another host", fault: OfAnotherHost()},
		{name: "certificate of an unknown authority", fault: OfAnotherAuthority()},
		{name: "TLS 1.0", fault: OldTLS()},
		{name: "no TLS", fault: NotTLS()},
		{name: "handshake breaks off", fault: BrokenHandshake()},
	}
	if service == nil {
		return rows
	}
	return append(rows,
		row{name: "throttled", fault: Answer(service.Throttled)},
		row{name: "throttled, once", fault: Answer(service.Throttled).Once()},
		row{name: "throttled for a year", fault: Answer(later(service.Throttled))},
		row{name: "throttled for a year, cancelled", fault: Answer(later(service.Throttled)), cancelled: true},
		row{name: "unavailable", fault: Answer(service.Unavailable)},
		row{name: "unavailable, once", fault: Answer(service.Unavailable).Once()},
		row{name: "denied", fault: Answer(service.Denied), refusal: true},
		row{name: "disabled", fault: Answer(service.Disabled), refusal: true},
		row{name: "not found", fault: Answer(service.NotFound), refusal: true},
		row{name: "another key", fault: Answer(service.AnotherKey), refusal: true},
	)
}

// later asks for a wait of a year.
func later(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", year)
		h(w, r)
	}
}
