package program

import (
	"bytes"
	"encoding/base64"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
)

const (
	maxKept  = 64 << 10 // bytes of stderr that are kept
	maxShown = 1000     // bytes of it that an error shows
	maxName  = 100      // bytes of a program's name that an error shows
)

// tail keeps the end of what is written: there a program says why it stopped.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-maxKept):]...)
	if extra := len(t.kept) - maxKept; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

// excerpt is the end of an error: the last of what the program said, without
// secrets, escaped.
func (t *tail) excerpt(secrets [][]byte) string {
	text := t.kept
	for _, s := range secrets {
		if len(s) > 0 {
			text = bytes.ReplaceAll(text, s, []byte("(secret)"))
			text = bytes.ReplaceAll(text, []byte(base64.StdEncoding.EncodeToString(s)), []byte("(secret)"))
		}
	}
	if said := outside.End(string(text), maxShown); said != "" {
		return "; it said: " + said
	}
	return ""
}
