package wrap

import "testing"

// TestHolderOnce: a child that waits for a lock asks again and again; the user is told who
// has it once, and again if it is somebody else.
func TestHolderOnce(t *testing.T) {
	t.Parallel()
	answer := status(423, `{"ID":"1","Who":"somebody"}`)
	url, _ := upstream(t, &answer)
	p, told := between(t, url, sealing)
	for range 3 {
		ask(p, "LOCK", "/lock", `{"ID":"2"}`)
	}
	mistakes := OpenMistakes(t, "holder of a lock")
	mistakes.Said(t, "asked three times", told.take())
	answer = status(423, `{"ID":"3","Who":"another"}`)
	ask(p, "LOCK", "/lock", `{"ID":"2"}`)
	mistakes.Said(t, "another", told.take())
}
