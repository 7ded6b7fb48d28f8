package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

var (
	errReason = errors.New("there is no state")

	odd   = fault.Suspect{Setting: "the passphrase", What: "ends with a line break"}
	blind = fault.NoKeyProvider{}
)

// Each advice stands behind its reason, wherever that stands, and once.
func TestText(t *testing.T) {
	t.Parallel()
	advised := fault.With(errReason, "make one")
	later := func(reason error, facts ...fault.Fact) error {
		return fault.Later(reason, func() []fault.Fact { return facts })
	}
	const said = "there is no state; make one"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a reason":       {errReason, "there is no state"},
		"an advice":      {advised, said},
		"no advice":      {fault.With(errReason, ""), "there is no state"},
		"behind a colon": {fault.With(errReason, ": make one"), "there is no state: make one"},
		"a wrapper":      {fmt.Errorf("a: %w", advised), "a: " + said},
		"a wrapper that repeats its reason": {fmt.Errorf("there is no state of the name x: %w", advised),
			"there is no state of the name x: " + said},
		"two reasons":   {fmt.Errorf("%w: %w", fault.With(errors.New("a"), "b"), advised), "a: " + said + "; b"},
		"in the middle": {fmt.Errorf("a: %w (1)", advised), "a: there is no state (1); make one"},
		"a list":        {fault.List{errReason, advised}, "there is no state\n" + said},
		"a list in a wrapper": {fmt.Errorf("a: %w", fault.List{advised, errReason}),
			"a: " + said + "\nthere is no state"},
		"a hidden reason": {hidden{advised}, "hidden"},
		"the first of several": {later(errReason, odd, blind),
			"there is no state. The passphrase ends with a line break"},
		"said by the reason": {later(fmt.Errorf("it %w", fault.Odd(odd.What)), odd), "it " + odd.What},
		"said before":        {later(fault.Known(errReason, odd), odd), "there is no state. The passphrase ends with a line break"},
		"the next":           {later(fmt.Errorf("it %w", fault.Odd(odd.What)), odd, fault.Advice("make one")), "it " + odd.What + "; make one"},
		"a placeholder":      {fault.With(errReason, "see {settings}"), "there is no state; see the settings"},
	} {
		if got := (fault.Voice{}).Text(c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if fault.With(nil, "make one") != nil || fault.Known(nil, odd) != nil || later(nil, odd) != nil {
		t.Error("no error has advice")
	}
}

// hidden does not show the reason that it wraps.
type hidden struct{ error }

func (hidden) Error() string                  { return "hidden" }
func (hidden) Tell(func(error) string) string { return "hidden" }
func (h hidden) Unwrap() error                { return h.error }

// A program has its own words for facts and placeholders.
func TestVoice(t *testing.T) {
	t.Parallel()
	voice := fault.Voice{
		Words: map[string]string{"settings": "the file of -config"},
		Say: func(f fault.Fact) string {
			if value, ok := f.(fault.NoValue); ok {
				return "set " + value.Name + " in {settings}"
			}
			return ""
		},
	}
	for err, want := range map[error]string{
		fault.Known(errReason, fault.NoValue{Name: "x"}):                       "there is no state; set x in the file of -config",
		fault.Known(errReason, fault.NotConfigured{Address: "a", Alone: true}): "there is no state; add its block, or correct the name",
		fault.Known(errReason, fault.NoIdentity{}):                             "there is no state",
	} {
		if got := voice.Text(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := voice.Fill("{credentials} {other}"); got != "the credentials block {other}" {
		t.Errorf("got %q", got)
	}
}

// A placeholder in the text of someone else stays as it is.
func TestPlaceholdersOfOthers(t *testing.T) {
	t.Parallel()
	const foreign = "see {credentials} and {settings}"
	for name, shown := range map[string]string{"line": outside.Line(foreign, 100), "value": outside.Value(foreign, 100),
		"quoted": outside.Quoted(foreign, 100), "end": outside.End(foreign, 100), "text": outside.Text(foreign)} {
		err := fault.With(fmt.Errorf("check {credentials}, not {credentials}; the server said: %s", shown), "see {settings}, and "+shown)
		const want = "check the git block, not the git block; the server said: "
		spoken := fault.Voice{Words: map[string]string{"credentials": "the git block"}}.Speak(err)
		if got := spoken.Error(); got != want+shown {
			t.Errorf("%s: got %q", name, got)
		}
		if got := (fault.Voice{}).Text(spoken); got != want+shown+"; see the settings, and "+shown {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// Facts that are only words are found for a text, and not before.
func TestNobodyAsks(t *testing.T) {
	t.Parallel()
	asked := 0
	err := fault.Later(errReason, func() []fault.Fact { asked++; return nil })
	if _ = err.Error(); !errors.Is(err, errReason) || asked > 0 {
		t.Errorf("the facts were found %d times", asked)
	}
	for range 2 {
		if got := (fault.Voice{}).Text(err); got != errReason.Error() || asked != 1 {
			t.Errorf("got %q, and the facts were found %d times", got, asked)
		}
	}
}

// Facts are found through wrappers, lists and other facts.
func TestFind(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("a: %w", fault.List{errReason, fmt.Errorf("%w: b", fault.Known(fault.With(errReason, "make one"), blind))})
	if got, ok := fault.Find[fault.NoKeyProvider](err); !ok || got != blind {
		t.Errorf("got %v", got)
	}
	if fault.Has[fault.NoIdentity](err) || !fault.Has[fault.Advice](err) || len(fault.In(err)) != 2 || !errors.Is(err, errReason) {
		t.Errorf("got %v", fault.In(err))
	}
	if got := fault.All(err); len(got) != 2 || (fault.List{}).Err() != nil || !errors.Is(got[:1].Err(), errReason) {
		t.Errorf("got %v", got)
	}
}

// The part of a program that knows more has the first word: what it has no words for is left to the rest.
func TestSpeak(t *testing.T) {
	t.Parallel()
	source := fault.Voice{Words: map[string]string{"credentials": "the git block"}}
	program := fault.Voice{Words: map[string]string{"credentials": "a block", "settings": "the provider block"},
		Say: func(f fault.Fact) string {
			if f == fault.Fact(blind) {
				return "look at {credentials}"
			}
			return ""
		}}
	known := fault.Known(errReason, blind)
	reason := fault.With(fmt.Errorf("beside {settings}, nothing is in {credentials}: %w", known), "set it in {credentials}")
	err := fmt.Errorf("step: %w", source.Speak(reason))
	for want, got := range map[string]string{
		"step: beside the settings, nothing is in the git block: there is no state": err.Error(),
		"step: beside the provider block, nothing is in the git block: there is no state; look at the git block; " +
			"set it in the git block": program.Text(err),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !errors.Is(err, errReason) || !fault.Has[fault.NoKeyProvider](err) || source.Speak(nil) != nil {
		t.Error("the error that was spoken is lost")
	}
}
