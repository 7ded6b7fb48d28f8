package http

import (
	"context"
	nethttp "net/http"
	"strconv"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// patience says how long a source waits and how often it asks again.
type patience struct {
	timeout          time.Duration // of one try
	tries            int           // beyond the first
	waitMin, waitMax time.Duration
}

// newPatience reads the settings. What is absent comes from the environment
// where that covers the address, then from the defaults of the http backend.
func newPatience(req source.Request, env environment, covered bool) (patience, error) {
	timeout, err := parseTimeout(req)
	if err != nil {
		return patience{}, err
	}
	number := func(attr, variable string, most, otherwise int64) int64 {
		var n int64
		if err == nil {
			n, err = wholeNumber(req, env, covered, attr, variable, most, otherwise)
		}
		return n
	}
	tries := number("retry_max", retryMaxVar, 100, 2)
	waitMin := number("retry_wait_min", waitMinVar, 3600, 1)
	waitMax := number("retry_wait_max", waitMaxVar, 3600, 30)
	if err == nil && waitMin > waitMax {
		err = req.Errorf("retry_wait_max", "this is less than retry_wait_min")
	}
	return patience{
		timeout: timeout,
		tries:   int(tries),
		waitMin: time.Duration(waitMin) * time.Second,
		waitMax: time.Duration(waitMax) * time.Second,
	}, err
}

func wholeNumber(req source.Request, env environment, covered bool, attr, variable string, most, otherwise int64) (int64, error) {
	if req.Has(attr) {
		return req.Int(attr, 0, most)
	}
	text := env.get(variable)
	if !covered || text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, req.Errorf(attr, "the environment variable %s must be a whole number from 0 to %d", variable, most)
	}
	return n, nil
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

// worthAnotherTry decides after each try.
func worthAnotherTry(ctx context.Context, resp *nethttp.Response, err error) (bool, error) {
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return !isFinal(err), nil
	default:
		return isTransient(resp.StatusCode), nil
	}
}

func isTransient(code int) bool {
	return code == nethttp.StatusTooManyRequests || code >= 500 && code != nethttp.StatusNotImplemented
}

// wait is exponential, or what the server asks for; but a server must not hold
// a run for as long as it likes.
func wait(shortest, longest time.Duration, try int, resp *nethttp.Response) time.Duration {
	return max(0, min(longest, retryablehttp.DefaultBackoff(shortest, longest, try, resp)))
}
