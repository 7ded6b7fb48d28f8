package outside

import "io"

// Limit returns body without what follows its first max bytes, for clients that
// read answers to their end.
func Limit(body io.ReadCloser, max int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, max), body}
}
