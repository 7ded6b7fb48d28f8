package source

import (
	"context"
	"fmt"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// Patience is the [Kind.Patience] of kinds whose servers determine the number of requests. It is long enough
// for a state of any size.
const Patience = 10 * time.Minute

// bounded wraps a source. It limits how long a read takes and how large the file may be, and explains errors.
type bounded struct {
	Source
	patience time.Duration // time limit for one read; 0 if the source has its own limit
	limit    int64
	voice    fault.Voice
}

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
		return nil, fmt.Errorf("could not read the state within %s, including all of its requests; try again later", b.patience)
	case err == nil && int64(len(snapshot.Data)) > b.limit:
		return nil, meter.TooLarge(b.limit)
	}
	return snapshot, b.voice.Speak(err)
}
