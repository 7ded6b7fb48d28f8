package explain_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/explain"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
)

const lineBreak = "ends with a line break"

var odd = fact.Suspect{Address: "key_provider.x", Attr: "passphrase", What: lineBreak}

// What is known of an error is said behind its reason, wherever that stands, and once.
func TestText(t *testing.T) {
	t.Parallel()
	noKey := func(method string, facts ...fact.Fact) encryption.Attempt {
		return encryption.Attempt{Method: method, Err: fact.With(encryption.ErrNoKey, facts...)}
	}
	failed := func(attempts ...encryption.Attempt) error {
		return &encryption.Error{Step: encryption.StepKey, Attempts: attempts, Err: errors.New("none fits:")}
	}
	reason := errors.New("the key is wrong")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a reason": {reason, "the key is wrong"},
		"a fact":   {fact.With(reason, odd), "the key is wrong" + said(odd)},
		"in the middle": {fmt.Errorf("a: %w (b)", fact.With(reason, odd)),
			"a: the key is wrong" + said(odd) + " (b)"},
		"said already": {fact.With(fmt.Errorf("it %w", fact.Odd(lineBreak)), odd), "it " + lineBreak},
		"said twice": {fact.With(fact.With(reason, odd), fact.Suspect{Attr: "key", What: lineBreak}),
			"the key is wrong" + said(odd)},
		"two that look the same": {fact.List{reason, fact.With(reason, fact.Repeated)},
			"the key is wrong\nthe key is wrong" + said(fact.Repeated)},
		"attempts": {failed(noKey("a"), noKey("b", fact.Untried{Address: "c"})),
			"none fits:\n  - a: no key for this file\n  - b: no key for this file" + said(fact.Untried{Address: "c"})},
		"two reasons of an attempt": {failed(encryption.Attempt{Method: "a", Err: fact.List{reason, fact.With(reason, odd)}}),
			"none fits:\n  - a: the key is wrong\n    the key is wrong" + said(odd)},
		"a text that is left out": {errors.Join(errors.New("x"), hidden{fact.With(reason, odd)}), "x\nhidden"},
	} {
		if got := explain.Text(c.err, explain.Wrap{}); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if reasons := c.err.Error(); strings.Count(reasons, "\n    ") != strings.Count(c.want, "\n    ") {
			t.Errorf("%s: got %q without facts", name, reasons)
		}
	}
}

// said is what is said of a fact, behind the reason.
func said(f fact.Fact) string {
	text, ok := strings.CutPrefix(explain.Text(fact.With(encryption.ErrNoKey, f), explain.Wrap{}), encryption.ErrNoKey.Error())
	if !ok || text == "" {
		panic("nothing is said of it")
	}
	return text
}

// The settings of wrap are the same text as those of the command.
func TestWrapIsToldAsMuch(t *testing.T) {
	t.Parallel()
	for _, f := range []fact.Fact{
		fact.NoMethod{Format: "age", Selected: []string{"method.aes_gcm.main"}, In: "state"},
		fact.NotConfigured{Address: "method.aes_gcm.main", Alone: true},
	} {
		err := fact.With(errors.New("x"), f)
		if got, want := explain.Text(err, explain.Wrap{}), explain.Text(err, explain.Command{}); got != want || got == "x" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// hidden says nothing of what it wraps.
type hidden struct{ error }

func (hidden) Error() string   { return "hidden" }
func (h hidden) Unwrap() error { return h.error }

// Facts that are only about words are found when somebody explains an error, and not before.
func TestNobodyAsks(t *testing.T) {
	t.Parallel()
	asked := 0
	err := fact.Later(encryption.ErrNoKey, func() []fact.Fact { asked++; return nil })
	if _ = err.Error(); !errors.Is(err, encryption.ErrNoKey) || asked > 0 {
		t.Errorf("it was asked for %d times", asked)
	}
	if explain.Text(err, explain.Command{}); asked == 0 {
		t.Error("it was not asked for")
	}
	if fact.With(nil, odd) != nil {
		t.Error("no error has facts")
	}
}

// Each audience reads its own words.
func TestAudiences(t *testing.T) {
	t.Parallel()
	err := fact.With(errors.New("var.x has no value"), fact.NoValue{Name: "x"})
	texts := map[string]bool{}
	for _, to := range []explain.Audience{explain.Provider{}, explain.Command{}} {
		texts[explain.Text(err, to)] = true
	}
	if len(texts) != 2 {
		t.Errorf("got %v", texts)
	}
	const asks = "unknown flag. Did you mean -o?"
	if got := explain.Usage(errors.New(asks), "decrypt"); got != asks+" See statecrypt decrypt -h" {
		t.Errorf("got %q", got)
	}
}
