package gittest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Lost is the way in which a server treats a push that expects another commit than there is.
type Lost int

// Refused is the way of git. A client is told "ok" by the others.
const (
	Refused  Lost = iota
	Dropped       // nothing is stored, as by dulwich
	Replaces      // the commit there is replaced, as by servers that are made of go-git
)

// Drop has a server over HTTP store nothing from now on of a push to the refs that drops names, and say "ok".
func (r *Repo) Drop(drops func(ref string) bool) { r.drops.Store(&drops) }

// lies changes a push that has lost a race into one that has not, or reports that it has answered.
func (r *Repo) lies(w http.ResponseWriter, req *http.Request, what Lost) bool {
	if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/git-receive-pack") {
		return false
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return true
	}
	old, ref := command(body)
	now := r.Git("for-each-ref", "--format=%(objectname)", ref)
	if now == "" {
		now = strings.Repeat("0", len(old))
	}
	drops := r.drops.Load()
	switch {
	case drops != nil && (*drops)(ref):
		pushed(w, ref)
		return true
	case ref == "", what == Refused, now == old:
	case what == Replaces:
		body = bytes.Replace(body, []byte(old), []byte(now), 1)
	default:
		pushed(w, ref)
		return true
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return false
}

// pushed says "ok" to a push.
func pushed(w http.ResponseWriter, ref string) {
	status := line("unpack ok\n") + line("ok "+ref+"\n") + "0000"
	w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
	fmt.Fprint(w, line("\x01"+status)+"0000") // in a side band
}

// command returns the commit that a push expects, and its ref: "<old> <new> <ref>\x00<capabilities>", after lines about
// a shallow repository.
func command(body []byte) (old, ref string) {
	for len(body) > 4 {
		length, err := strconv.ParseUint(string(body[:4]), 16, 16)
		if err != nil || length < 4 || int(length) > len(body) {
			break
		}
		text, _, isCommand := strings.Cut(string(body[4:length]), "\x00")
		if fields := strings.Fields(text); isCommand && len(fields) == 3 {
			return fields[0], fields[2]
		}
		body = body[length:]
	}
	return "", ""
}

// line is one of git's protocol.
func line(text string) string { return fmt.Sprintf("%04x%s", 4+len(text), text) }
