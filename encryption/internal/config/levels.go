package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// mostLevels is the maximum nesting of a text, far more than users need. The parser, and the code
// that reads its result, recurse at each level.
const mostLevels = 1000

var errDeep = fmt.Errorf("it is nested more than %d levels deep", mostLevels)

// ExpectConfig returns an error if a file in native syntax is nested more than 1,000 levels deep.
func ExpectConfig(text []byte) error {
	tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)    // the parser reports syntax errors
	return expect(tokens, bracket{closes: hclsyntax.TokenCBrace}) // a file looks like the content of a block
}

// ExpectExpression returns an error if an expression in native syntax is nested more than 1,000
// levels deep.
func ExpectExpression(text []byte) error {
	tokens, _ := hclsyntax.LexExpression(text, "", hcl.InitialPos)
	return expect(tokens, bracket{closes: hclsyntax.TokenEOF})
}

// ExpectTemplate returns an error if a template is nested more than 1,000 levels deep.
func ExpectTemplate(text []byte) error {
	tokens, _ := hclsyntax.LexTemplate(text, "", hcl.InitialPos)
	return expect(tokens, bracket{closes: hclsyntax.TokenEOF})
}

// ExpectJSON returns an error if a JSON file, or a template in one of its strings, is nested more
// than 1,000 levels deep.
func ExpectJSON(text []byte) error {
	var open []byte
	for at := 0; at < len(text); at++ {
		switch c := text[at]; c {
		case '{', '[':
			open = append(open, c+2) // the bracket that closes c
		case '}', ']':
			if n := len(open) - 1; n >= 0 && open[n] == c {
				open = open[:n]
			}
		case '"':
			length := stringLength(text[at:])
			if err := expectString(text[at : at+length]); err != nil {
				return err
			}
			at += length - 1
		}
		if len(open) > mostLevels {
			return errDeep
		}
	}
	return nil
}

// stringLength returns the length of the string at the beginning of a JSON text, including its
// quotation marks. It finds the same end of the string as the HCL parser.
func stringLength(text []byte) int {
	escaped := false
	for i, c := range text[1:] {
		switch {
		case c < ' ':
			return i + 1
		case c == '"' && !escaped:
			return i + 2
		}
		escaped = c == '\\' && !escaped
	}
	return len(text)
}

func expectString(quoted []byte) error {
	var text string
	if json.Unmarshal(quoted, &text) != nil || !strings.Contains(text, "${") && !strings.Contains(text, "%{") {
		return nil
	}
	return ExpectTemplate([]byte(text))
}

// bracket is an open bracket.
type bracket struct {
	closes hclsyntax.TokenType
	chain  int // number of links in the current expression; each link is a level
}

var closing = map[hclsyntax.TokenType]hclsyntax.TokenType{
	hclsyntax.TokenOBrace: hclsyntax.TokenCBrace, hclsyntax.TokenOBrack: hclsyntax.TokenCBrack, hclsyntax.TokenOParen: hclsyntax.TokenCParen,
	hclsyntax.TokenOQuote: hclsyntax.TokenCQuote, hclsyntax.TokenOHeredoc: hclsyntax.TokenCHeredoc,
	hclsyntax.TokenTemplateInterp: hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenTemplateControl: hclsyntax.TokenTemplateSeqEnd,
}

// links lists the tokens that add a level without a bracket, such as the plus signs in a sum.
var links = []hclsyntax.TokenType{
	hclsyntax.TokenPlus, hclsyntax.TokenMinus, hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPercent, hclsyntax.TokenAnd,
	hclsyntax.TokenOr, hclsyntax.TokenBang, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan,
	hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq, hclsyntax.TokenQuestion, hclsyntax.TokenDot,
	hclsyntax.TokenOBrack, // an index
}

// expect returns an error if the tokens are nested more than 1,000 levels deep. Each open bracket
// is a level, and so is each link of an expression in it. Around is the outermost level.
func expect(tokens hclsyntax.Tokens, around bracket) error {
	open, deep := []bracket{around}, 0
	add := func(n int) {
		last := &open[len(open)-1]
		n = max(n, -last.chain)
		last.chain += n
		deep += n
	}
	for i, token := range tokens {
		last := open[len(open)-1]
		switch {
		case token.Type == last.closes && len(open) > 1:
			deep -= last.chain + 1
			open = open[:len(open)-1]
		case token.Type == hclsyntax.TokenComma, token.Type == hclsyntax.TokenNewline && last.closes == hclsyntax.TokenCBrace:
			add(-last.chain) // the current expression ends
		case slices.Contains(links, token.Type):
			add(1)
		case token.Type == hclsyntax.TokenTemplateControl && i+1 < len(tokens):
			add(directives[string(tokens[i+1].Bytes)])
		}
		if closes, opens := closing[token.Type]; opens {
			open = append(open, bracket{closes: closes})
			deep++
		}
		if deep > mostLevels {
			return errDeep
		}
	}
	return nil
}

// directives maps each template directive to the number of levels that it adds to the text behind
// it.
var directives = map[string]int{"if": 1, "for": 1, "endif": -1, "endfor": -1}
