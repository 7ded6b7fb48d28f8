package source

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Whatever a lock's description is, what is shown of it is short and plain.
func FuzzParseLock(f *testing.F) {
	for _, s := range []string{
		"", `{"ID":"1","Who":"a@b","Operation":"OperationTypeApply","Created":"2024-05-06T07:08:09Z"}`,
		"{\"Who\":\"::\\u001b##[::::\"}", `{"ID":"` + strings.Repeat("é", 300) + `"}`, `{"ID":"\\\"\\"}`, `{"ID":1}`,
		strings.Repeat(" ", MaxLock+1),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lock, err := ParseLock(data)
		if lock == nil || err != nil && *lock != (Lock{}) || len(data) > MaxLock && err == nil {
			t.Fatalf("%v, %v", lock, err)
		}
		for _, s := range []string{lock.ID, lock.Who, lock.Operation, lock.Created} {
			if !utf8.ValidString(s) || len(s) > 8*maxEscaped || strings.Contains(s, "::") || strings.Contains(s, "##") ||
				strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q", s)
			}
		}
	})
}
