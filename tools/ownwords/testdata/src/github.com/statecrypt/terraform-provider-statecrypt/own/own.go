package own

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

var errGone = errors.New("it is gone")

type step string

type failed struct {
	text string
	step step
	err  error
}

func (f *failed) Error() string { return f.text }

func decisions(err error, name string) bool {
	text := err.Error()
	lines := strings.Split(text, "\n") // want `this decides by the text of an error`
	switch text {                      // want `this decides`
	case "it is gone":
		return true
	}
	for _, line := range lines {
		if line == "x" { // want `this decides`
			return true
		}
	}
	detail := fmt.Sprintf("%s: %v", name, err)
	detail += "."
	f := failed{text: sentence(err)}
	return strings.Contains(err.Error(), "gone") || // want `this decides`
		strings.HasPrefix(detail, "gone") || // want `this decides`
		err.Error() == errGone.Error() || // want `this decides`
		slices.Contains(lines, "gone") || // want `this decides`
		regexp.MustCompile("gone").MatchString(text[1:]) || // want `this decides`
		strings.HasSuffix(f.text, "?") || // want `this decides`
		answers.Find([]answers.Row{{Text: text}}, 0, "", text).Text != "" || // want `this decides`
		strings.Contains(fault.Text(err), "gone") || // want `this decides`
		handed(err.Error())
}

func others(err error) bool {
	say := err.Error
	made := func() string { return err.Error() }
	f := failed{err.Error(), "key", err}
	switch "it is gone" {
	case err.Error(): // want `this decides`
		return true
	}
	matched, _ := regexp.MatchString("gone", err.Error())              // want `this decides`
	return matched || regexp.MustCompile("x").Match([]byte(f.text)) || // want `this decides`
		bytes.Contains([]byte(err.Error()), []byte("gone")) || // want `this decides`
		strings.Compare(err.Error(), "gone") == 0 || // want `this decides`
		err.Error() > "gone" || // want `this decides`
		map[string]bool{"gone": true}[err.Error()] || // want `this decides`
		strings.Contains(say(), "gone") || // want `this decides`
		strings.Contains(made(), "gone") // want `this decides`
}

func sentence(err error) string { return strings.ToUpper(err.Error()) }

func handed(text string) bool { return strings.HasSuffix(text, "gone") } // want `this decides`

func none(err error, name string) bool {
	var path *fs.PathError
	f := failed{step: stepOf(err)}
	return errors.Is(err, errGone) || errors.As(err, &path) && path.Path == name || err.Error() == "" || f.step == "key" ||
		strings.Contains(name, "gone") || code(err) == "NotFound"
}

func stepOf(error) step { return "key" }

func code(error) string { return "NotFound" }
