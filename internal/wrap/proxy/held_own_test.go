package proxy

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestHolderOnce: a child that waits for a lock asks again and again; the user is told who
// has it once, and again if it is someone else.
func TestHolderOnce(t *testing.T) {
	t.Parallel()
	answer := wraptest.Status(423, `{"ID":"1","Who":"someone"}`)
	url, _ := wraptest.Upstream(t, &answer)
	p, told := between(t, url, wraptest.Sealing)
	for range 3 {
		ask(p, "LOCK", "/lock", `{"ID":"2"}`)
	}
	mistakes := wraptest.OpenMistakes(t, "holder of a lock")
	mistakes.Said(t, "asked three times", told.Take())
	answer = wraptest.Status(423, `{"ID":"3","Who":"another"}`)
	ask(p, "LOCK", "/lock", `{"ID":"2"}`)
	mistakes.Said(t, "another", told.Take())
}
