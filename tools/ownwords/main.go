// Command ownwords finds code that decides by the text of an error, such as
// strings.Contains(err.Error(), "…"): whoever rewords a sentence would change what is done.
// Errors of ours are told apart by errors.Is and errors.As, and have facts for what is only
// about words. Errors of others, which often have nothing but their texts, are read in the
// places that others.go lists.
//
// It finds the words of one program, such as "in the provider block", in sentences of packages that several programs
// use: these write a placeholder. Doc of an attribute or a table is the documentation of the provider, and may have them.
//
//	go vet -vettool=$(command -v ownwords) ./...
package main

import (
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
)

var analyzer = &analysis.Analyzer{Name: "ownwords", Doc: "finds decisions by the texts of errors", Run: run}

func main() { unitchecker.Main(analyzer) }
