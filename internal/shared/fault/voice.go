package fault

import (
	"maps"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

// Voice holds a program's wording for the places where its users write settings, such as a provider block, a
// file or a flag.
type Voice struct {
	// Words maps placeholder names to wording: "credentials" to the place for a source's credentials, such as
	// "the git credentials block of the provider", and "settings" to the place for all other
	// settings.
	Words map[string]string

	// Say returns the program's wording for a fact, or an empty string to use the default wording. It may be
	// nil.
	Say func(Fact) string
}

// Config stands for the name of the user's settings file in a command that a message proposes. A program fills it in
// with [Name] where it prints the message.
const Config = "{config}"

// Name returns text with the name of the settings file in place of [Config]. It writes FILE if the name is unknown, or
// if a shell would not take it as it is.
func Name(text, settings string) string {
	if !plain.MatchString(settings) {
		settings = "FILE"
	}
	return strings.ReplaceAll(text, Config, settings)
}

var plain = lazyregexp.New(`^[0-9A-Za-z_./][0-9A-Za-z_./+:@%-]*$`)

// everybody maps placeholder names to the wording of the zero Voice.
var everybody = map[string]string{"credentials": "the credentials block", "settings": "the settings"}

// Fill returns text with its placeholders filled in.
func (v Voice) Fill(text string) string {
	for name, word := range everybody {
		if own, ok := v.Words[name]; ok {
			word = own
		}
		text = strings.ReplaceAll(text, "{"+name+"}", word)
	}
	return text
}

// Speak returns err with its placeholders filled in, or nil if err is nil.
func (v Voice) Speak(err error) error {
	if err == nil {
		return nil
	}
	return &spoken{err, v}
}

type spoken struct {
	error
	voice Voice
}

func (e *spoken) Error() string { return e.voice.Fill(e.error.Error()) }

// Unwrap returns the error with its placeholders unfilled.
func (e *spoken) Unwrap() error { return e.error }

// Text returns the message for an error, with each piece of advice after its reason.
func (v Voice) Text(err error) string {
	switch e := err.(type) {
	case *advised:
		return v.Text(e.reason) + v.said(e.fact())
	case *spoken:
		words := map[string]string{}
		maps.Copy(words, v.Words)
		maps.Copy(words, e.voice.Words)
		v.Words = words
		return v.Fill(v.Text(e.error))
	case teller:
		return e.Tell(v.Text)
	}
	text, behind := err.Error(), ""
	for _, part := range parts(err) {
		if before, ends := strings.CutSuffix(text, part.Error()); ends {
			text = before + v.Text(part)
		} else {
			behind += v.beside(part)
		}
	}
	return text + behind
}

// teller is an error that composes its text from the texts of other errors, or hides another error.
type teller interface {
	Tell(text func(error) string) string
}

// beside returns the advice in a wrapped error whose text is not at the end of the wrapping error's text.
func (v Voice) beside(err error) (text string) {
	switch e := err.(type) {
	case *advised:
		return v.beside(e.reason) + v.said(e.fact())
	case teller:
		return ""
	}
	for _, part := range parts(err) {
		text += v.beside(part)
	}
	return text
}

// said returns the wording for a fact, preceded by the punctuation mark that separates it from the reason.
func (v Voice) said(f Fact) (text string) {
	if f == nil {
		return ""
	}
	if v.Say != nil {
		text = v.Say(f)
	}
	if text == "" {
		text = f.advice()
	}
	if text = v.Fill(text); text == "" || strings.ContainsAny(text[:1], ",:;.") {
		return text
	}
	return "; " + text
}
