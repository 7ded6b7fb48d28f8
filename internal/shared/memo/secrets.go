package memo

import (
	"bytes"
	"context"
	"sync"
)

// Secrets is a [Memo] for a limited number of secret keys. It overwrites secrets when it forgets them.
type Secrets struct{ memo Memo[string, *secret] }

// NewSecrets returns a Secrets that remembers at most limit secrets.
func NewSecrets(limit int) *Secrets {
	return &Secrets{Memo[string, *secret]{Limit: limit, Forgotten: (*secret).wipe}}
}

// Do works like [Memo.Do], but returns a separate copy of the secret to each caller.
func (s *Secrets) Do(ctx context.Context, key string, work func(context.Context) ([]byte, error)) ([]byte, error) {
	for {
		found, err := s.memo.Do(ctx, key, func(ctx context.Context) (*secret, error) {
			b, err := work(ctx)
			return &secret{bytes: bytes.Clone(b)}, err
		})
		if err != nil {
			return nil, err
		}
		if b, ok := found.clone(); ok {
			return b, nil
		} // otherwise the secret was wiped after memo.Do returned it
	}
}

// Clear overwrites and forgets all secrets.
func (s *Secrets) Clear() { s.memo.Clear() }

type secret struct {
	mu    sync.Mutex
	bytes []byte
	wiped bool
}

func (s *secret) clone() ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.bytes), !s.wiped
}

func (s *secret) wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.bytes)
	s.wiped = true
}
