package tfstate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

const (
	// maxNesting is how deep the JSON of a value or a type may go. Configurations
	// stay below 50; a thousand calls deep still costs less than a megabyte of stack.
	maxNesting = 1000

	// jsonNesting is where encoding/json gives up, anywhere in the file.
	jsonNesting = 10000

	// maxInstances is how many instances a resource may have. In the file one takes
	// fifteen bytes, in memory twenty times that.
	maxInstances = 100_000

	// maxGaps is how many instances may be missing below the last one.
	maxGaps = 10_000

	// maxDigits is how many digits a number may have once it is written out, as
	// 1e400 has 401. The longest number that a configuration has needed so far,
	// 1.5e300, has 301. Terraform writes all of them wherever it shows or stores a
	// number, which for 1e600000000 takes gigabytes and minutes.
	maxDigits = 1_024

	// maxShort is how many digits a number may have to be sent as it is written.
	maxShort = 17
)

var errNesting = fmt.Errorf("is nested more than %d deep", maxNesting)

var errNumber = errors.New("a number is required")

// ErrDigits means that a number has more than 1,024 digits when it is written
// out, as 1e2000 has: too many to be shown and stored.
var ErrDigits = fmt.Errorf("a number has more than %d digits when it is written out", maxDigits)

// number reads decimal text. cty keeps 512 bits of it, as Terraform does.
func (d *decoder) number(text string) (cty.Value, error) {
	// Cty would also accept infinity and binary exponents.
	if strings.Trim(text, "+-.eE0123456789") != "" {
		return cty.NilVal, errNumber
	}
	digits, fraction, err := digitsOf(text)
	if err == nil && digits > maxShort {
		err = d.budget.number(digits, fraction)
	}
	if err != nil {
		return cty.NilVal, err
	}
	v, err := cty.ParseNumberVal(text)
	if err != nil {
		return cty.NilVal, errNumber
	}
	return v, nil
}

// digitsOf is about how many digits a number has once it is written out, and
// whether some of them may follow the point.
func digitsOf(text string) (digits int, fraction bool, err error) {
	mantissa, power := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa = text[:i]
		power, err = strconv.Atoi(text[i+1:])
		if errors.Is(err, strconv.ErrRange) {
			return 0, false, ErrDigits
		}
	}
	digits = len(mantissa) + max(power, -power)
	if digits > maxDigits || digits < 0 {
		return 0, false, ErrDigits
	}
	return digits, power < 0 || strings.Contains(mantissa, "."), nil
}

// weight returns the approximate cost of comparing ty with another type: the number of types in
// it, and the names of attributes, which are hashed.
func weight(ty cty.Type) int {
	n := 1
	switch {
	case ty.IsCollectionType():
		n += weight(ty.ElementType())
	case ty.IsTupleType():
		for _, element := range ty.TupleElementTypes() {
			n += weight(element)
		}
	case ty.IsObjectType():
		for name, attribute := range ty.AttributeTypes() {
			n += len(name)/64 + weight(attribute)
		}
	}
	return n
}

// nesting is how deep the brackets of a JSON text go. For text that
// isn't valid JSON, the result means nothing.
func nesting(text []byte) int {
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString:
			if c == '\\' {
				i++
			}
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}
