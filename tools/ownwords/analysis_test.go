package main

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

// The lines with a comment are found, and no others.
func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), analyzer, module+"own", module+"internal/source/some", module+"internal/provider")
}
