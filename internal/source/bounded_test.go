package source

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// answering is a source that reads what it is told.
type answering struct {
	data []byte
	wait bool // for the end of the read
}

func (a answering) String() string { return "a source" }

func (a answering) Fetch(ctx context.Context) (*Snapshot, error) {
	if a.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &Snapshot{Data: a.data}, nil
}

// TestStart: what every source has around it.
func TestStart(t *testing.T) {
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	for name, tt := range map[string]struct {
		ctx      context.Context
		source   Source
		patience time.Duration
		want     string
	}{
		"a file":               {t.Context(), answering{data: make([]byte, 8)}, 0, ""},
		"too large, unnoticed": {t.Context(), answering{data: make([]byte, 9)}, 0, meter.TooLarge(8).Error()},
		"too long":             {t.Context(), answering{wait: true}, time.Millisecond, " 1ms"},
		"not begun":            {cancelled, answering{data: make([]byte, 9)}, 0, "interrupted"},
	} {
		kind := Kind{Patience: tt.patience, Begin: func(Settings) Open { return func(Request) (Source, error) { return tt.source, nil } }}
		src, err := kind.Start(Settings{})(Request{MaxSize: 8})
		if err != nil || src.String() != "a source" {
			t.Fatal(src, err)
		}
		if _, err := src.Fetch(tt.ctx); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	refuses := Kind{Begin: func(Settings) Open { return func(Request) (Source, error) { return nil, errors.New("no") } }}
	if src, err := refuses.Start(Settings{})(Request{}); src != nil || err == nil {
		t.Errorf("got %v, %v", src, err)
	}
}
