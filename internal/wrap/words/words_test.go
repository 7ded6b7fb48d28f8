package words_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// Each attempt has its advice on its own line, and a command says how to set a variable.
func TestText(t *testing.T) {
	t.Parallel()
	two := fault.List{errors.New("the key is wrong"), fault.With(errors.New("the key is wrong"), "check it")}
	attempts := &encryption.Error{Step: encryption.StepKey, Err: errors.New("none fits:"), Attempts: []encryption.Attempt{
		{Method: "a", Err: encryption.ErrNoKey},
		{Method: "b", Err: fault.With(encryption.ErrNoKey, "c is configured as well, and no selected method uses it")},
		{Method: "d", Err: two},
	}}
	const want = "none fits:\n  - a: no key for this file\n" +
		"  - b: no key for this file; c is configured as well, and no selected method uses it\n" +
		"  - d: the key is wrong\n    the key is wrong; check it"
	if got := words.State(attempts); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	const plain = "none fits:\n  - a: no key for this file\n  - b: no key for this file\n  - d: the key is wrong\n    the key is wrong"
	if got := attempts.Error(); got != plain {
		t.Errorf("got %q, want %q", got, plain)
	}
	value := fault.Known(errors.New("var.x has no value"), fault.NoValue{Name: "x"})
	for _, got := range []string{words.Command{}.Text(value), words.State(value), words.Seal(value)} {
		if !strings.HasPrefix(got, "var.x has no value\n") || !strings.Contains(got, "TF_VAR_x") {
			t.Errorf("got %q", got)
		}
	}
	for reason, want := range map[string]string{
		"unknown flag. Did you mean -o?": "unknown flag. Did you mean -o? See statecrypt decrypt -h",
		"unknown flag":                   "unknown flag; see statecrypt decrypt -h",
		"unknown flag; remove it":        "unknown flag; remove it\nSee statecrypt decrypt -h",
	} {
		if got := words.Usage(errors.New(reason), "decrypt"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
