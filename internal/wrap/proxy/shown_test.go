package proxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// hostileText moves the cursor, and gives a command to a CI system where a line begins.
const hostileText = "::add-mask::x \x1b[2K\r##vso[x]\u202e"

// isHarmless reports whether a text may go to a terminal and to the log of a CI system.
func isHarmless(text string) bool {
	words := strings.Fields(text)
	for _, word := range words {
		if strings.HasPrefix(word, "::") {
			return false
		}
	}
	return !strings.Contains(text, "##") && !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

// TestAnswersAreShown: the child prints what it is answered, and the texts of a lock are those of whoever
// made it.
//
// Promise: Text from outside
func TestAnswersAreShown(t *testing.T) {
	t.Parallel()
	var answer http.HandlerFunc
	url, _ := wraptest.Upstream(t, &answer)
	harmless := `{"ID":"a-1 (\"é\")","Operation":"apply","Info":"","Who":"me@here","Version":"1","Created":"2026-01-02T03:04:05Z",` +
		`"Path":"x","More":[1]}`
	text, err := json.Marshal(map[string]string{"ID": hostileText, "Operation": hostileText, "Info": hostileText, "Who": hostileText,
		"Version": hostileText, "Created": "2026-01-02T03:04:05Z", "Path": hostileText})
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{http.StatusLocked, http.StatusConflict, http.StatusBadRequest, http.StatusInternalServerError} {
		for _, method := range []string{"LOCK", "UNLOCK", "GET", "POST", "DELETE"} {
			for name, body := range map[string]string{
				"a lock": string(text), "a text": hostileText, "a list": `["` + hostileText + `"]`, "a harmless lock": harmless,
				"an unknown member": `{"ID":"1","x":"##vso[x]"}`,
			} {
				answer = func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(status)
					_, _ = w.Write([]byte(body))
				}
				p, _ := between(t, url, wraptest.Sealing)
				p.version.Store(new(store.Version))
				p.guard.Lineage.Store(new(string))
				path := "/state"
				if strings.HasSuffix(method, "LOCK") {
					path = "/lock"
				}
				got := ask(p, method, path, wraptest.State).Body.String()
				if !isHarmless(got) {
					t.Errorf("%d after %s, %s: the child gets %q", status, method, name, got)
				}
				lock, isLock := store.ParseLock([]byte(got))
				isHeld := status == http.StatusLocked || status == http.StatusConflict // after which the child reads a lock
				texts := []string{lock.ID, lock.Operation, lock.Info, lock.Who, lock.Version, lock.Created, lock.Path}
				if isLock && isHeld && !isHarmless(strings.Join(texts, "\n")) {
					t.Errorf("%d after %s, %s: the child gets the lock %+v", status, method, name, lock)
				}
				if isHeld && name == "a lock" && (!isLock || lock.Created != "2026-01-02T03:04:05Z" || lock.ID == "") {
					t.Errorf("%s: the child gets no lock: %s", method, got)
				}
				if name == "a harmless lock" && method == "LOCK" && got != harmless {
					t.Errorf("%d: the child gets %s", status, got)
				}
			}
		}
	}
}

// TestForceUnlockAsShown: an ID that was escaped can be named as it is shown, and as it is.
//
// Promise: Text from outside
func TestForceUnlockAsShown(t *testing.T) {
	t.Parallel()
	var answer http.HandlerFunc
	url, last := wraptest.Upstream(t, &answer)
	body, err := json.Marshal(store.Lock{ID: hostileText})
	if err != nil {
		t.Fatal(err)
	}
	answer = func(w http.ResponseWriter, _ *http.Request) { // as one that compares IDs
		if lock, _ := store.ParseLock([]byte(last.Body)); lock.ID != hostileText {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write(body)
		}
	}
	p, _ := between(t, url, wraptest.Sealing)
	shown, _ := store.ParseLock(ask(p, "LOCK", "/lock", `{"ID":"1"}`).Body.Bytes())
	if !isHarmless(shown.ID) {
		t.Fatalf("the child gets %q", shown.ID)
	}
	for id, want := range map[string]int{shown.ID: http.StatusOK, hostileText: http.StatusOK, shown.ID + "1": http.StatusConflict} {
		p, _ = between(t, url, wraptest.Sealing)
		p.lock.forced = id
		if got := ask(p, "UNLOCK", "/lock", "").Code; got != want {
			t.Errorf("force-unlock %q: got %d", id, got)
		}
	}
}
