package httpsource

import (
	"io"
	"log"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

func contains(err error, part string) bool { return strings.Contains(err.Error(), part) }

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func missing(t *testing.T, err error) *source.MissingError {
	t.Helper()
	m, ok := source.IsMissing(err)
	if !ok {
		t.Fatalf("got %v, want a MissingError", err)
	}
	return m
}
