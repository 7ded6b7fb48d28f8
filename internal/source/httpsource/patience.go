package httpsource

import (
	"strconv"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// newPatience reads the settings. What is absent comes from the environment if
// that has a say about the address, then from the defaults of the http backend.
func newPatience(req source.Request, env attr.LookupEnv) (web.Patience, error) {
	timeout, err := parseTimeout(req)
	if err != nil {
		return web.Patience{}, err
	}
	number := func(attr, variable string, most, otherwise int64) int64 {
		var n int64
		if err == nil {
			n, err = wholeNumber(req, env, attr, variable, most, otherwise)
		}
		return n
	}
	tries := number("retry_max", "TF_HTTP_RETRY_MAX", 100, 2)
	waitMin := number("retry_wait_min", "TF_HTTP_RETRY_WAIT_MIN", 3600, 1)
	waitMax := number("retry_wait_max", "TF_HTTP_RETRY_WAIT_MAX", 3600, 30)
	if err == nil && waitMin > waitMax {
		err = req.Errorf("retry_wait_max", "this is less than retry_wait_min")
	}
	return web.Patience{
		Timeout: timeout,
		Tries:   int(tries),
		WaitMin: time.Duration(waitMin) * time.Second,
		WaitMax: time.Duration(waitMax) * time.Second,
		Attr:    "timeout",
	}, err
}

func wholeNumber(req source.Request, env attr.LookupEnv, attr, variable string, most, otherwise int64) (int64, error) {
	if req.Has(attr) {
		return req.Int(attr, 0, most)
	}
	text, set := env.Get(variable)
	if !set {
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
