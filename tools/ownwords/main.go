// Command ownwords finds code that makes decisions based on the text of an error, such as strings.Contains(err.Error(),
// "…"): rewording a message would then change what the code does. Our own errors are told apart with errors.Is and
// errors.As, or carry facts for cases that differ only in wording. Errors of other packages often have nothing but a
// text, so the functions listed in others.go may read them.
//
// It also finds wording that fits only one program, such as "in the provider block", in packages that several programs
// use. Such packages must write a placeholder. The Doc field of an attribute or a table may have such wording, because
// it belongs to the provider's documentation.
//
//	go vet -vettool=$(command -v ownwords) ./...
package main

import (
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
)

var analyzer = &analysis.Analyzer{Name: "ownwords", Doc: "finds decisions by the texts of errors", Run: run}

func main() { unitchecker.Main(analyzer) }
