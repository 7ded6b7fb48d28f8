package source

import (
	"context"
	"fmt"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// Patience is enough for the requests for one state, however large it is.
const Patience = 10 * time.Minute

// bounded wraps every source: it limits the time of a read and the size of the file.
type bounded struct {
	Source
	patience time.Duration // 0 for the source's own
	limit    int64
	voice    fault.Voice
}

// Fetch reads the file.
func (b bounded) Fetch(ctx context.Context) (*Snapshot, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	limited, cancel := ctx, func() {}
	if b.patience > 0 {
		limited, cancel = context.WithTimeout(ctx, b.patience)
	}
	defer cancel()
	snapshot, err := b.Source.Fetch(limited)
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("the state could not be read within %s, with all the requests that it takes; try again later", b.patience)
	case err == nil && int64(len(snapshot.Data)) > b.limit:
		return nil, meter.TooLarge(b.limit)
	}
	return snapshot, b.voice.Speak(err)
}
