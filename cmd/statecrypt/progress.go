package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
)

// How often long work says how far it is: on a terminal, where a line is replaced, and elsewhere.
const (
	beatOfTerminal = time.Second
	beatElsewhere  = 10 * time.Second
)

// work is work on several files that may take long.
type work struct {
	files   int
	done    atomic.Int64 // how many of the files are done
	began   time.Time
	traffic *web.Traffic
	stop    func() // ends the messages about the work
}

// begin begins work on a number of files. Requests with the returned context count as part of it. Nothing is
// printed with -json, for short work, and unless c.tells.
func (c *call) begin(ctx context.Context, files int) (context.Context, *work) {
	w := &work{files: files, began: time.Now(), stop: func() {}}
	ctx, w.traffic = web.WithTraffic(ctx)
	if c.on("json") || !c.tells {
		return ctx, w
	}
	beat := beatElsewhere
	if isTerminal(c.stderr) {
		beat = beatOfTerminal
	}
	ticker := time.NewTicker(beat)
	ended := make(chan struct{})
	stopped := c.follow(w, ticker.C, ended)
	w.stop = func() {
		ticker.Stop()
		close(ended)
		<-stopped
		c.clear()
	}
	return ctx, w
}

// follow prints how far the work is at each beat, until it has ended. The returned channel is then closed.
func (c *call) follow(w *work, beats <-chan time.Time, ended <-chan struct{}) (stopped <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case at := <-beats:
				c.tellProgress(w.text(at))
			case <-ended:
				return
			}
		}
	}()
	return done
}

// tellProgress prints a text about the work: on a terminal in a line that the next text replaces.
func (c *call) tellProgress(text string) {
	if !isTerminal(c.stderr) {
		c.say(yellow, "note:", text)
		return
	}
	c.printing.Lock()
	defer c.printing.Unlock()
	c.unfinished = true
	fmt.Fprintf(c.stderr, "\r%s: %s\x1b[K", c.Name, text)
}

// text says how far the work is.
func (w *work) text(at time.Time) string {
	var parts []string
	if w.files > 1 {
		parts = append(parts, fmt.Sprintf("%d of %d", w.done.Load(), w.files))
	} else {
		parts = append(parts, "still at work")
	}
	parts = append(parts, "after "+at.Sub(w.began).Round(time.Second).String())
	received, sent := w.traffic.Bytes()
	for _, t := range []struct {
		bytes int64
		what  string
	}{{received, "received"}, {sent, "sent"}} {
		const mega = 1e6
		if t.bytes >= mega {
			parts = append(parts, fmt.Sprintf("%.1f MB %s", float64(t.bytes)/mega, t.what))
		}
	}
	return strings.Join(parts, ", ")
}
