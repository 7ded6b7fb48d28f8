package overview

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// digest identifies a JSON value: equal values have the same one, however they are written.
type digest [sha256.Size]byte

// equal reports whether two JSON values are equal. White space, the order of members, escapes in strings and the
// spelling of numbers do not matter. An absent value equals null. A value that is not JSON only equals the same bytes.
// The cost is linear.
func equal(a, b []byte) bool {
	switch {
	case bytes.Equal(a, b):
		return true
	case len(a) == 0 || len(b) == 0:
		return string(a)+string(b) == "null"
	}
	return digestOf(a) == digestOf(b)
}

func digestOf(raw []byte) digest {
	r := jsonwalk.NewReader(raw)
	d, err := digestNext(r)
	if err != nil || r.End() != nil {
		return sha256.Sum256(append([]byte("bytes "), raw...))
	}
	return d
}

// digestNext reads a value. It calls itself for each level, of which the reader of the state allows 10,000.
func digestNext(r *jsonwalk.Reader) (digest, error) {
	switch kind := r.Kind(); kind {
	case '{':
		members := map[string]digest{} // the last of two members with the same name counts, as for Terraform
		if err := r.Object(func(name string) (err error) {
			members[name], err = digestNext(r)
			return err
		}); err != nil {
			return digest{}, err
		}
		parts := make([][]byte, 0, len(members))
		for name, d := range members {
			parts = append(parts, append(d[:], name...))
		}
		slices.SortFunc(parts, bytes.Compare)
		return digestOfParts(kind, parts), nil
	case '[':
		sum := sha256.New()
		_, _ = sum.Write([]byte{kind})
		err := r.Array(func() error {
			d, err := digestNext(r)
			_, _ = sum.Write(d[:]) // never fails
			return err
		})
		return digest(sum.Sum(nil)), err
	case '"':
		text, err := r.String()
		return digestOfParts(kind, [][]byte{[]byte(text)}), err
	case '0':
		number, err := r.Literal()
		return digestOfParts(kind, [][]byte{[]byte(decimal(string(number)))}), err
	default:
		literal, err := r.Literal()
		return digestOfParts(kind, [][]byte{literal}), err
	}
}

// digestOfParts returns the digest of a kind of value and its parts, each with its length.
func digestOfParts(kind byte, parts [][]byte) digest {
	text := []byte{kind}
	for _, part := range parts {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	return sha256.Sum256(text)
}

// decimal returns a number in one spelling: digits without zeros at the ends, and the power of ten.
func decimal(number string) string {
	digits, sign := strings.CutPrefix(number, "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(digits), "e")
	exponent := 0
	if power != "" {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil { // such as 1e99999999999999999999
			return number
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0"
	}
	exponent += len(digits) - len(trimmed)
	if sign {
		trimmed = "-" + trimmed
	}
	return trimmed + "e" + strconv.Itoa(exponent)
}
