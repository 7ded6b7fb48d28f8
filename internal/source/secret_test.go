package source

import (
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// A secret from a file has a line break at its end. The remedy is said, and not the
// secret.
func TestCheckWord(t *testing.T) {
	lineBreak, control := recognize.Text("x\n", recognize.Word).Said(""), recognize.Text("x\x00", recognize.Word).Said("")
	if lineBreak == "" || control == "" || lineBreak == control {
		t.Fatalf("%q is %q", lineBreak, control)
	}
	for secret, want := range map[string]string{
		"":               "",
		"hunter2 ü":      "",
		"hunter2\n":      lineBreak,
		"hunter2\r\n":    lineBreak,
		"hunter2\nmore":  control,
		"hunter2\x00":    control,
		"\thunter2\x7f ": control,
	} {
		got := ""
		if err := CheckWord("token", secret); err != nil {
			got = err.Error()
		}
		if want != "" {
			want = "token " + want
		}
		if got != want || strings.Contains(got, "hunter2") {
			t.Errorf("%q: got %q, want %q", secret, got, want)
		}
	}
}
