package httpsource

import (
	"errors"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// newPatience returns the limits for requests. Settings that are missing in the request come from the grant's
// variables, or else from the defaults of the http backend.
func newPatience(req source.Request, g source.Grant) (web.Patience, error) {
	timeout := time.Minute
	if text := req.String("timeout"); text != "" {
		timeout, _ = parseTimeout(text)
	}
	var err error
	number := func(argument, variable string, most, usual int64) int64 {
		switch {
		case req.Has(argument):
			return req.Int(argument)
		case g.Has(variable):
			usual = g.Int(variable)
			if wrong := attr.Between(0, most).Wrong(cty.NumberIntVal(usual)); wrong != nil {
				err = g.Errorf(variable, "%w", wrong)
			}
		}
		return usual
	}
	tries := number("retry_max", triesVar, mostTries, 2)
	waitMin := number("retry_wait_min", waitMinVar, mostWait, 1)
	waitMax := number("retry_wait_max", waitMaxVar, mostWait, 30)
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

func parseTimeout(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d <= 0 {
		return 0, errors.New(`a positive number of seconds, or a duration such as "2m30s", is required`)
	}
	return d, nil
}
