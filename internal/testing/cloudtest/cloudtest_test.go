package cloudtest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
)

func TestInternet(t *testing.T) {
	t.Parallel()
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text, " ", r.Proto) })
	}
	internet := cloudtest.New(t, map[string]http.Handler{"one.example.com": says("one"), "*.example.net": says("any")})
	client := internet.Client(t)
	for address, want := range map[string]string{
		"https://one.example.com/":    "one HTTP/2.0",
		"https://two.example.net/":    "any HTTP/2.0",
		"https://example.net/":        "Bad Gateway",
		"https://two.example.com/":    "Bad Gateway",
		"https://www.a.example.net/":  "Bad Gateway",
		"http://one.example.com/":     "502",
		"https://one.example.com:80/": "one HTTP/2.0",
	} {
		got := ""
		response, err := client.Get(address)
		if err != nil {
			got = err.Error()
		} else {
			var body [64]byte
			n, _ := response.Body.Read(body[:])
			response.Body.Close()
			got = fmt.Sprint(response.StatusCode, " ", string(body[:n]))
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
	asked := internet.Asked()
	slices.Sort(asked)
	if want := []string{"example.net", "http://one.example.com", "one.example.com", "one.example.com", "two.example.com", "two.example.net",
		"www.a.example.net"}; !slices.Equal(asked, want) {
		t.Errorf("asked: got %q, want %q", asked, want)
	}
}

func TestEnviron(t *testing.T) {
	t.Parallel()
	internet := cloudtest.New(t, nil)
	env := internet.Environ([]string{"PATH=p", "AWS_PROFILE=canary", "ARM_CLIENT_SECRET=canary", "GOOGLE_CREDENTIALS=canary",
		"https_proxy=canary", "NO_PROXY=canary", "BAO_TOKEN=canary"})
	if !slices.Contains(env, "PATH=p") || !slices.Contains(env, "HTTPS_PROXY="+internet.Proxy) ||
		strings.Contains(strings.Join(env, " "), "canary") {
		t.Errorf("got %q", env)
	}
}
