package httpsource

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/sidebyside"
)

// flaky fails with code a few times before it answers.
func flaky(t *testing.T, failures, code int, header ...string) *recorder {
	var s *recorder
	s = serve(t, func(w http.ResponseWriter, req *http.Request) {
		if len(s.seen()) > failures {
			ok(w, req)
			return
		}
		if len(header) > 0 {
			w.Header().Set("Retry-After", header[0])
		}
		w.WriteHeader(code)
	})
	return s
}

func TestRetries(t *testing.T) {
	golden := sourcetest.OpenMistakes(t, "http, tries")
	for _, tt := range []struct {
		failures, code, max int
		requests            int
		fails               bool
	}{
		{2, 500, 2, 3, false},
		{2, 502, 2, 3, false},
		{2, 503, 2, 3, false},
		{2, 429, 2, 3, false},
		{2, 408, 2, 3, false},
		{3, 429, 2, 3, true},
		{1, 503, 0, 1, true},
		{4, 503, 5, 5, false},
		{1, 501, 2, 1, true},
		{1, 400, 2, 1, true},
		{1, 401, 2, 1, true},
		{1, 404, 2, 1, true},
	} {
		s := flaky(t, tt.failures, tt.code)
		r := at(s.URL).with("retry_max", cty.NumberIntVal(int64(tt.max)))
		if tt.fails {
			r.says(t, golden, strconv.Itoa(tt.code))
		} else {
			r.want(t, "state")
		}
		s.wantRequests(t, tt.requests)
	}
}

// A server may ask for a wait, but not for more than retry_wait_max.
func TestRetryAfter(t *testing.T) {
	text := func(s string) func() string { return func() string { return s } }
	date := func(d time.Duration) func() string {
		return func() string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	}
	tests := map[string]func(*testing.T){}
	for name, tt := range map[string]struct {
		header func() string
		max    int64
		least  time.Duration
	}{
		"seconds":            {header: text("1"), max: 300, least: time.Second},
		"too many seconds":   {header: text("3600"), max: 1, least: time.Second},
		"a far date":         {header: date(24 * time.Hour), max: 1, least: time.Second},
		"a past date":        {header: date(-time.Hour), max: 300},
		"more than there is": {header: text("9223372036854775807"), max: 0},
		"nonsense":           {header: text("soon"), max: 0},
	} {
		tests[name] = func(t *testing.T) {
			s := flaky(t, 1, 429, tt.header())
			begin := time.Now()
			at(s.URL).with("retry_wait_max", cty.NumberIntVal(tt.max)).want(t, "state")
			if took := time.Since(begin); took < tt.least || took > 2*time.Minute {
				t.Errorf("it took %s", took)
			}
		}
	}
	sidebyside.Run(t, tests)
}

// Ctrl-C does not wait for the next try.
func TestCancelledWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		time.AfterFunc(100*time.Millisecond, cancel)
	})
	src, err := at(s.URL).with("retry_wait_min", cty.NumberIntVal(300)).with("retry_wait_max", cty.NumberIntVal(300)).open()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err = src.Fetch(ctx); !errors.Is(err, context.Canceled) || time.Since(begin) > 2*time.Minute {
		t.Errorf("got %v after %s", err, time.Since(begin))
	}
}

// The timeout is of one try, whether the head or the body is late.
func TestTimeout(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter){
		"head": func(http.ResponseWriter) {},
		"body": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte("sta"))
			_ = http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, req *http.Request) {
				begin(w)
				<-req.Context().Done()
			})
			at(s.URL+"/state?x="+canary).with("timeout", cty.StringVal("100ms")).
				wantError(t, netfail.NoAnswer)
		})
	}
}

func TestPatience(t *testing.T) {
	number, text := cty.NumberIntVal, cty.StringVal
	patience := func(timeout time.Duration, tries int, waitMin, waitMax time.Duration) web.Patience {
		return web.Patience{Timeout: timeout, Tries: tries, WaitMin: waitMin, WaitMax: waitMax, Attr: "timeout"}
	}
	standard := patience(time.Minute, 2, time.Second, 30*time.Second)
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"TF_HTTP_RETRY_MAX": "7", "TF_HTTP_RETRY_WAIT_MIN": "3", "TF_HTTP_RETRY_WAIT_MAX": "9"}[name]
		return v, ok
	}
	golden := sourcetest.OpenMistakes(t, "http, patience")
	for name, tt := range map[string]struct {
		attrs   attrs
		covered bool
		want    web.Patience
		fails   bool
	}{
		"defaults":    {attrs{}, false, standard, false},
		"environment": {attrs{}, true, patience(time.Minute, 7, 3*time.Second, 9*time.Second), false},
		"arguments come first": {attrs{"retry_max": number(0), "retry_wait_min": number(1), "retry_wait_max": number(30)}, true,
			patience(time.Minute, 0, time.Second, 30*time.Second), false},
		"seconds":                 {attrs{"timeout": text("90")}, false, patience(90*time.Second, 2, time.Second, 30*time.Second), false},
		"a number of seconds":     {attrs{"timeout": number(90)}, false, patience(90*time.Second, 2, time.Second, 30*time.Second), false},
		"a duration":              {attrs{"timeout": text("1m30s")}, false, patience(90*time.Second, 2, time.Second, 30*time.Second), false},
		"no time":                 {attrs{"timeout": text("0")}, false, web.Patience{}, true},
		"not a time":              {attrs{"timeout": text("soon")}, false, web.Patience{}, true},
		"negative":                {attrs{"retry_max": number(-1)}, false, web.Patience{}, true},
		"a fraction":              {attrs{"retry_wait_min": cty.NumberFloatVal(0.5)}, false, web.Patience{}, true},
		"longer than the longest": {attrs{"retry_wait_min": number(31)}, false, web.Patience{}, true},
	} {
		tt.attrs["address"] = text("https://example.com")
		values, errDecode := unstable.NewEntry("x", table(), tt.attrs).Decode(table(), nil)
		c := source.Settings{}.For(Kind()).Credentials
		if tt.covered {
			c.Env = env
			c.Entries = []*unstable.Entry{unstable.NewEntry("block", credentials(), attrs{"url": text("https://example.com")})}
		}
		g, err := c.For(&url.URL{Scheme: "https", Host: "example.com", Path: "/"})
		if err != nil {
			t.Fatal(err)
		}
		var got web.Patience
		if err = errDecode; err == nil {
			got, err = newPatience(source.Request{Values: values}, g)
		}
		if tt.fails {
			golden.Error(t, name, err)
		} else if err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// TestPatienceOutOfRange: a variable with too large a number is an error, unless the data source
// says the number itself.
func TestPatienceOutOfRange(t *testing.T) {
	c := source.Settings{}.For(Kind()).Credentials
	c.Env = func(name string) (string, bool) { return "101", name == triesVar }
	c.Entries = []*unstable.Entry{unstable.NewEntry("block", credentials(), attrs{"url": cty.StringVal("https://example.com")})}
	g, err := c.For(&url.URL{Scheme: "https", Host: "example.com", Path: "/"})
	if err != nil {
		t.Fatal(err)
	}
	for fails, set := range map[bool]attrs{true: {}, false: {"retry_max": cty.NumberIntVal(1)}} {
		set["address"] = cty.StringVal("https://example.com")
		values, err := unstable.NewEntry("x", table(), set).Decode(table(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = newPatience(source.Request{Values: values}, g)
		if fails {
			sourcetest.OpenMistakes(t, "http, TF_HTTP_RETRY_MAX").Error(t, "101", err)
		} else if err != nil {
			t.Error(err)
		}
	}
}
