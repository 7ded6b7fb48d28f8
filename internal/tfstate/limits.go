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

	// maxTypeWork bounds the length of a type times its nesting, which is the
	// memory, in bytes, that cty needs to read it: it copies the rest of the type at
	// each level. The type of a hundred thousand attributes, ten levels deep, is a tenth of it.
	maxTypeWork = 256 << 20

	// maxWrappers is how many values of dynamic type may be wrapped in each other;
	// each is scanned once more. What writes states nests none.
	maxWrappers = 16

	// maxVacant bounds the work on the types of nulls, empty collections and absent
	// attributes in one output. Elsewhere the value is as large as its type, and the
	// size of the file is bound enough; but a megabyte of type for the elements of a list,
	// with another megabyte of "{}" in it, would make 10^10 nulls. What the limit
	// allows takes about a second; a list of 100,000 objects, each with a null object of fifty
	// attributes in it, takes a third of it.
	maxVacant = 50_000_000

	// absentCost is what an absent attribute adds to the weight of its type: it takes
	// memory and time like fifty comparisons. Terraform writes all attributes.
	absentCost = 50

	// maxAlike bounds how often elements of sets in one output are compared because
	// they have the same hash. cty hashes ten digits of a number, so that a hundred
	// thousand longer ones would take half an hour; this many take two seconds.
	maxAlike = 5_000_000

	// maxImpliedWork bounds the values in the attributes of a resource times their
	// nesting. Terraform wants the type of each value next to it, and that of an
	// object is made again at each level around it. A million values, twenty levels
	// deep, are allowed.
	maxImpliedWork = 20_000_000

	// maxInstances is how many instances a resource may have. In the file one takes
	// fifteen bytes, in memory twenty times that.
	maxInstances = 100_000

	// maxGaps is how many instances may be missing below the last one.
	maxGaps = 10_000

	// maxNumberText is the longest text of a number, in bytes, and maxExponent its
	// largest power of ten. Written out, 10^600000000 takes gigabytes and minutes,
	// in whoever prints the value; the longest number a configuration has needed so
	// far, 1.5e300, has 301 digits.
	maxNumberText = 10_000
	maxExponent   = 10_000
)

var errNumber = errors.New("a number is required")

// parseNumber reads decimal text. cty keeps 512 bits of it, as Terraform does.
func parseNumber(text string) (cty.Value, error) {
	if len(text) > maxNumberText {
		return cty.NilVal, fmt.Errorf("a number has more than %d digits", maxNumberText)
	}
	// What is left out are infinity and binary exponents, which cty would take.
	if strings.Trim(text, "+-.eE0123456789") != "" {
		return cty.NilVal, errNumber
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(text[i+1:])
		if errors.Is(err, strconv.ErrRange) || exponent > maxExponent || exponent < -maxExponent {
			return cty.NilVal, fmt.Errorf("a number has an exponent beyond %d", maxExponent)
		}
	}
	v, err := cty.ParseNumberVal(text)
	if err != nil {
		return cty.NilVal, errNumber
	}
	return v, nil
}

// parseIndex reads the key of an instance of a resource with count.
func parseIndex(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, errNumber
	}
	return int(n), nil
}

// charge accounts for a value that the file has nothing to say about. Each
// collection around it compares its type with others again.
func (d *decoder) charge(weight int) error {
	if d.vacant += weight * d.depth; d.vacant > maxVacant {
		return errors.New("its type is too large for all the nulls and empty collections in it")
	}
	return nil
}

// set makes a set that isn't empty.
func (d *decoder) set(values []cty.Value) (cty.Value, error) {
	sameHash := make(map[int]int, len(values))
	for _, v := range values {
		hash := v.Hash()
		if d.alike += sameHash[hash]; d.alike > maxAlike {
			return cty.NilVal, errors.New("too many elements of its sets are alike")
		}
		sameHash[hash]++
	}
	return cty.SetVal(values), nil
}

// weight is the number of types that make up ty.
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
		for _, attribute := range ty.AttributeTypes() {
			n += weight(attribute)
		}
	}
	return n
}

// elementsIn is about how many values a JSON text has. As for nesting, it must
// be valid for the result to mean anything.
func elementsIn(text []byte) int {
	n, inString := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString:
			if c == '\\' {
				i++
			}
		case c == '[' || c == '{' || c == ',':
			n++
		}
	}
	return n
}

// nesting is how deep the brackets of a JSON text go. In a text that isn't
// valid JSON the result means little, but is there.
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
