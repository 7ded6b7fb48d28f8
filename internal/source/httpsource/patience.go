package httpsource

import (
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// newPatience reads the settings. What is absent comes from the variables that a
// grant has, then from the defaults of the http backend.
func newPatience(req source.Request, g source.Grant) (web.Patience, error) {
	timeout, err := parseTimeout(req)
	if err != nil {
		return web.Patience{}, err
	}
	number := func(attr, variable string, most, n int64) int64 {
		switch {
		case err != nil:
		case req.Has(attr):
			n, err = req.Int(attr, 0, most)
		case g.Has(variable):
			n, err = g.Int(variable, 0, most)
		}
		return n
	}
	tries := number("retry_max", triesVar, 100, 2)
	waitMin := number("retry_wait_min", waitMinVar, 3600, 1)
	waitMax := number("retry_wait_max", waitMaxVar, 3600, 30)
	if err == nil && waitMin > waitMax {
		err = req.Errorf("retry_wait_max", "this is less than retry_wait_min; raise it")
	}
	return web.Patience{
		Timeout: timeout,
		Tries:   int(tries),
		WaitMin: time.Duration(waitMin) * time.Second,
		WaitMax: time.Duration(waitMax) * time.Second,
		Attr:    "timeout",
	}, err
}

func parseTimeout(req source.Request) (time.Duration, error) {
	text := req.String("timeout")
	if text == "" {
		return time.Minute, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d <= 0 {
		return 0, req.Errorf("timeout", "a positive number of seconds, or a duration such as \"2m30s\", is required")
	}
	return d, nil
}
