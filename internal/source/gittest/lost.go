package gittest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Lost says how a server treats a push that expects a different commit than the current one.
type Lost int

// Git refuses such a push. With the other values, the client is told "ok".
const (
	Refused  Lost = iota
	Dropped       // nothing is stored, as in dulwich
	Replaces      // the current commit is replaced, as in servers built on go-git
)

// Drop makes an HTTP server ignore pushes from now on if drops returns true for their ref. The client is
// still told "ok".
func (r *Repo) Drop(drops func(ref string) bool) { r.drops.Store(&drops) }

// lies handles a push that has lost a race. It answers the push and returns true, or changes the request so
// that git accepts it, or leaves it unchanged.
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

// pushed answers a push with "ok".
func pushed(w http.ResponseWriter, ref string) {
	status := line("unpack ok\n") + line("ok "+ref+"\n") + "0000"
	w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
	fmt.Fprint(w, line("\x01"+status)+"0000") // sent in a side band
}

// command returns the commit that a push expects, and its ref. It finds them in the line "<old> <new>
// <ref>\x00<capabilities>", which may follow lines about a shallow repository.
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

// line returns text as a line of git's protocol.
func line(text string) string { return fmt.Sprintf("%04x%s", 4+len(text), text) }
