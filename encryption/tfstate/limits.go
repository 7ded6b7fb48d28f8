package tfstate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

const (
	// maxNesting is the greatest nesting of the JSON of a value or a type. Configurations stay
	// below 50; a thousand nested calls still take less than a megabyte of stack.
	maxNesting = 1000

	// jsonNesting is the greatest nesting that encoding/json accepts, anywhere in the file.
	jsonNesting = 10000

	// maxInstances is the greatest number of instances of a resource. An instance takes at least
	// fifteen bytes in the file, and twenty times as much in memory.
	maxInstances = 100_000

	// maxGaps is the greatest number of instances that may be missing below the last one.
	maxGaps = 10_000

	// maxDigits is the greatest number of digits of a number when it is written out, as 1e400 has
	// 401. The longest number known in a configuration, 1.5e300, has 301. Terraform writes all
	// digits wherever it shows or stores a number, which takes gigabytes and minutes for
	// 1e600000000.
	maxDigits = 1_024

	// maxShort is the greatest number of digits for which sending a number costs nothing extra.
	maxShort = 17
)

var errNesting = fmt.Errorf("is nested more than %d deep", maxNesting)

var errNumber = errors.New("a number is required")

// ErrDigits means that a number has more than 1,024 digits when it is written
// out, as 1e2000 has: too many to be shown and stored.
var ErrDigits = fmt.Errorf("a number has more than %d digits when it is written out", maxDigits)

// number returns the number in a decimal text. cty keeps 512 bits of it, like Terraform.
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
// some digits may follow the point. It returns [ErrDigits] for too many digits.
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

// nesting returns the number of levels of brackets in a JSON text. For a text that is not valid
// JSON, the result means nothing.
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
