package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// mostLevels limits the nesting of a text, far above the needs of users. The parser, and the code that reads its
// result, recurse at each level.
const mostLevels = 1000

var errDeep = fmt.Errorf("it is nested more than %d levels deep", mostLevels)

// ExpectConfig refuses a file in native syntax that nests too deep.
func ExpectConfig(text []byte) error {
	tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)    // the parser reports mistakes
	return expect(tokens, bracket{closes: hclsyntax.TokenCBrace}) // a file is the content of a block
}

// ExpectExpression refuses such an expression.
func ExpectExpression(text []byte) error {
	tokens, _ := hclsyntax.LexExpression(text, "", hcl.InitialPos)
	return expect(tokens, bracket{closes: hclsyntax.TokenEOF})
}

// ExpectTemplate refuses such a template.
func ExpectTemplate(text []byte) error {
	tokens, _ := hclsyntax.LexTemplate(text, "", hcl.InitialPos)
	return expect(tokens, bracket{closes: hclsyntax.TokenEOF})
}

// ExpectJSON refuses a file in JSON that nests too deep, or that has such a template in a string.
func ExpectJSON(text []byte) error {
	var open []byte
	for at := 0; at < len(text); at++ {
		switch c := text[at]; c {
		case '{', '[':
			open = append(open, c+2) // which is the one that closes it
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

// stringLength is where the parser of HCL takes a string of JSON to end.
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

// bracket is one that is open.
type bracket struct {
	closes hclsyntax.TokenType
	chain  int // links, each of which deepens the expression inside
}

var closing = map[hclsyntax.TokenType]hclsyntax.TokenType{
	hclsyntax.TokenOBrace: hclsyntax.TokenCBrace, hclsyntax.TokenOBrack: hclsyntax.TokenCBrack, hclsyntax.TokenOParen: hclsyntax.TokenCParen,
	hclsyntax.TokenOQuote: hclsyntax.TokenCQuote, hclsyntax.TokenOHeredoc: hclsyntax.TokenCHeredoc,
	hclsyntax.TokenTemplateInterp: hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenTemplateControl: hclsyntax.TokenTemplateSeqEnd,
}

// links are the tokens of a chain, such as a sum, of which each adds a level without a bracket.
var links = []hclsyntax.TokenType{
	hclsyntax.TokenPlus, hclsyntax.TokenMinus, hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPercent, hclsyntax.TokenAnd,
	hclsyntax.TokenOr, hclsyntax.TokenBang, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan,
	hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq, hclsyntax.TokenQuestion, hclsyntax.TokenDot,
	hclsyntax.TokenOBrack, // an index
}

// expect counts open brackets, and in each of them the links of the expression. Around is the outermost level.
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
			add(-last.chain) // an expression ends
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

// directives maps each directive of a template to its change of the level of the text behind it.
var directives = map[string]int{"if": 1, "for": 1, "endif": -1, "endfor": -1}
