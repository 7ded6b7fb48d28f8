package faults

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
)

// GiveUp returns a context that ends when the nth answer has been read to its
// end, just before the reader learns that it was the end. GaveUp reports whether
// that has happened.
//
// net/http then hands over the answer all the same. An answer that somebody
// makes up because the reader has gone looks the same.
func GiveUp(ctx context.Context, nth int) (limited context.Context, gaveUp func() bool) {
	limited, cancel := context.WithCancel(ctx)
	var answers atomic.Int64
	limited = httptrace.WithClientTrace(limited, &httptrace.ClientTrace{
		PutIdleConn: func(error) { // the connection can be used again
			if answers.Add(1) == int64(nth) {
				cancel()
			}
		},
	})
	return limited, func() bool { return answers.Load() >= int64(nth) }
}
