package object

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"store.example.com":             "https://store.example.com",
		"store.example.com:9000":        "https://store.example.com:9000",
		"https://store.example.com/":    "https://store.example.com",
		"http://127.0.0.1:9000":         "http://127.0.0.1:9000",
		"":                              "",
		"ftp://store.example.com":       "",
		"https://u:p@store.example.com": "",
		"u@store.example.com":           "",
		"store.example.com/path":        "",
		"store.example.com?x":           "",
		"store.example.com#x":           "",
		"https://":                      "",
		"https://[::1":                  "",
		"a b":                           "",
	} {
		u, err := ParseEndpoint(text)
		if (err == nil) != (want != "") || err == nil && u.String() != want {
			t.Errorf("%q: got %v, %v", text, u, err)
		}
	}
}

// Promise: Where secrets go
func TestIsLabel(t *testing.T) {
	for text, want := range map[string]bool{
		"a": true, "eu-central-1": true, "0": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "a-": false, "A": false, "a.b": false, "a/b": false, "a:1": false, "a@b": false, "a%2e": false, "a\n": false,
		"é":                     false,
		strings.Repeat("a", 64): false,
	} {
		if syntax.IsLabel(text) != want {
			t.Errorf("%q: not %t", text, want)
		}
	}
}

// Keys are asked for once, again when they end soon, and no longer than
// someone waits for them.
func TestRenewed(t *testing.T) {
	for _, c := range []struct {
		lasts []time.Duration // of the keys, in the order in which they are given
		want  string          // each time
	}{
		{[]time.Duration{time.Hour}, "1 1 1"},
		{[]time.Duration{time.Minute, time.Hour}, "2 2 2"},
		{[]time.Duration{-time.Hour, time.Hour}, "2 2 2"},
	} {
		asked := 0
		keys := Renewed(func(context.Context) (aws.Credentials, error) {
			asked++
			return Temporary("a test", fmt.Sprint(asked), "s", "t", time.Now().Add(c.lasts[asked-1]))
		})
		var got []string
		for range 3 {
			k, err := keys.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, k.AccessKeyID)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%v: got keys %s", c.lasts, got)
		}
	}
	stopped := make(chan struct{})
	stuck := Renewed(func(ctx context.Context) (aws.Credentials, error) {
		<-ctx.Done()
		close(stopped)
		return aws.Credentials{}, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ctx2, cancel2 := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel2()
	if _, err := stuck.Retrieve(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := stuck.Retrieve(ctx2); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	<-stopped
}
