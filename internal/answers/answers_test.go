package answers

import (
	"errors"
	"testing"
)

// The first row that fits counts, and only if all of it fits.
func TestFind(t *testing.T) {
	t.Parallel()
	rows := []Row{
		{Unless: true, Text: "not for this request"},
		{Status: "401 403", Code: "Expired", Text: "expired"},
		{Status: "403", Said: "the key", Text: "the key is denied"},
		{Status: "401 403", Text: "denied"},
		{Code: "Busy Slow", Text: "busy"},
		{Status: "3xx", Text: "elsewhere"},
		{Status: "5xx", Text: "out of order"},
	}
	for _, test := range []struct {
		status     int
		code, said string
		want       string
	}{
		{401, "Expired", "the key", "expired"},
		{403, "Expire", "not with the key", "the key is denied"},
		{401, "", "the key", "denied"},
		{403, "Busy", "", "denied"},
		{400, "Slow", "", "busy"},
		{503, "Busy Slow", "", "out of order"}, // which is no single word
		{302, "", "", "elsewhere"},
		{699, "", "", "out of order"},
		{404, "", "the key", ""},
		{0, "403", "", ""},
		{0, "3xx", "", ""},
	} {
		if got := Find(rows, test.status, test.code, test.said).Text; got != test.want {
			t.Errorf("Find(%d, %q, %q) = %q, want %q", test.status, test.code, test.said, got, test.want)
		}
	}
}

func TestErr(t *testing.T) {
	t.Parallel()
	reason := errors.New("no key")
	if err := (Row{Wraps: reason, Text: "another one"}).Err(); !errors.Is(err, reason) || err.Error() != "no key: another one" {
		t.Errorf("a row that wraps is %q", err)
	}
	if err := (Row{Wraps: reason}).Err(); err != reason { //nolint:errorlint // it is the same
		t.Errorf("a row without a text is %q", err)
	}
	if err := (Row{Text: "busy, 100%s"}).Err(); err.Error() != "busy, 100%s" || errors.Unwrap(err) != nil {
		t.Errorf("a row that does not wrap is %q", err)
	}
}

// The code is beside the cause, before any advice.
func TestCoded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"busy":                        "busy (503)",
		"busy; wait":                  "busy (503); wait",
		"busy. Some are not; wait":    "busy (503). Some are not; wait",
		"v1.2 is busy; wait. Or stop": "v1.2 is busy (503); wait. Or stop",
	} {
		if got := Coded(text, "503"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
