package tfstate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

const (
	// maxNesting is the maximum nesting of the JSON of a value or a type. Configurations stay below
	// 50. A thousand nested calls still take less than a megabyte of stack.
	maxNesting = 1000

	// jsonNesting is the maximum nesting that encoding/json accepts, anywhere in the file.
	jsonNesting = 10000

	// maxInstances is the maximum number of instances of a resource. An instance takes at least 15
	// bytes in the file, and twenty times as much in memory.
	maxInstances = 100_000

	// maxGaps is the maximum number of instances that may be missing below the last one.
	maxGaps = 10_000

	// maxDigits is the maximum number of digits of a number when it is written out; 1e400 has 401.
	// The longest number known in a configuration, 1.5e300, has 301. Terraform writes all digits
	// wherever it shows or stores a number. For 1e600000000, that takes gigabytes and minutes.
	maxDigits = 1_024

	// maxShort is the maximum number of digits of a number that is sent at no extra cost.
	maxShort = 17
)

var errNesting = fmt.Errorf("is nested more than %d levels deep", maxNesting)

var errNumber = errors.New("the value is not a number")

// ErrDigits means that a number has more than 1,024 digits when it is written out, such as 1e2000.
// That is too many to show or store.
var ErrDigits = fmt.Errorf("a number has more than %d digits when it is written out", maxDigits)

// number parses a number in a decimal text. Like Terraform, cty keeps 512 bits of it.
func (d *decoder) number(text string) (cty.Value, error) {
	// cty would also accept infinity and binary exponents.
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

// digitsOf returns the approximate number of digits of a number when it is written out, and whether
// there may be digits after the decimal point. It returns [ErrDigits] if there are too many digits.
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

// weight returns the approximate cost of comparing ty with another type. It counts the types in ty,
// and the names of attributes, which are hashed.
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

// nesting returns the number of bracket levels in a JSON text. The result is meaningless if the
// text is not valid JSON.
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
