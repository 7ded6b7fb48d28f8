package ageplugin

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"iter"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/program"
)

// These are the limits of a plugin's output. The longest stanzas of age are for hybrid recipients,
// and have 1,600 bytes.
const (
	maxPrinted = 1 << 20 // bytes
	maxStanzas = 1000
)

const lineLength = 64 // characters in a line of base64; a shorter line ends a stanza

var encoding = base64.RawStdEncoding.Strict()

// encode returns a stanza in the form that it has in the header of an age file.
func encode(s age.Stanza) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "-> %s\n", strings.Join(append([]string{s.Type}, s.Args...), " "))
	body := encoding.EncodeToString(s.Body)
	for ; len(body) >= lineLength; body = body[lineLength:] {
		b.WriteString(body[:lineLength] + "\n")
	}
	b.WriteString(body + "\n")
	return b.Bytes()
}

// reader splits text that arrives in pieces into stanzas.
type reader struct {
	rest    []byte      // the beginning of an incomplete line
	stanza  *age.Stanza // an incomplete stanza, or nil
	size, n int         // bytes and stanzas so far
}

// read adds text, and returns the stanzas that are complete with it.
func (r *reader) read(text []byte) iter.Seq2[age.Stanza, error] {
	return func(yield func(age.Stanza, error) bool) {
		if r.size += len(text); r.size > maxPrinted {
			yield(age.Stanza{}, fmt.Errorf("%w: it printed more than %d bytes", program.ErrProtocol, maxPrinted))
			return
		}
		r.rest = append(r.rest, text...)
		for {
			line, rest, found := bytes.Cut(r.rest, []byte("\n"))
			if !found {
				return
			}
			r.rest = rest
			complete, err := r.add(string(line))
			switch {
			case err != nil:
				yield(age.Stanza{}, err)
				return
			case complete:
				stanza := *r.stanza
				r.stanza = nil
				if !yield(stanza, nil) {
					return
				}
			}
		}
	}
}

// add adds a line, and reports whether the line completes a stanza.
func (r *reader) add(line string) (complete bool, err error) {
	if r.stanza == nil {
		words := strings.Split(line, " ")
		if r.n++; r.n > maxStanzas {
			return false, fmt.Errorf("%w: it sent more than %d messages", program.ErrProtocol, maxStanzas)
		}
		if len(words) < 2 || words[0] != "->" || slices.ContainsFunc(words, isNoWord) {
			return false, fmt.Errorf("%w: it printed a line that does not begin a stanza", program.ErrProtocol)
		}
		r.stanza = &age.Stanza{Type: words[1], Args: words[2:]}
		return false, nil
	}
	body, err := encoding.DecodeString(line)
	if err != nil || len(line) > lineLength || strings.Contains(line, "\r") {
		return false, fmt.Errorf("%w: it printed a line that is not base64", program.ErrProtocol)
	}
	r.stanza.Body = append(r.stanza.Body, body...)
	return len(line) < lineLength, nil
}

// isNoWord reports whether an argument is empty, or contains characters other than visible ASCII.
func isNoWord(word string) bool {
	return word == "" || strings.ContainsFunc(word, func(c rune) bool { return c <= ' ' || c > '~' })
}
