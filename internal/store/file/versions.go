package file

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// These are the IDs of the only versions of a file: its content, and the content of its backup.
const (
	currentID = "current"
	backupID  = "backup"
)

// Versions returns the file, unless it is empty, and its backup. The time of the backup is unknown, because its file
// was written when the state in it was replaced.
func (s *state) Versions(ctx context.Context, limit int) (kept []store.Kept, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range []string{currentID, backupID} {
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		f, size, err := s.openVersion(id)
		if errors.Is(err, store.ErrNoVersion) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		one := store.Kept{ID: id, Size: size}
		if info, err := f.Stat(); err == nil && id == currentID {
			one.Created, one.Status = info.ModTime(), store.KeptCurrent
		}
		s.closeVersion(f)
		kept = append(kept, one)
	}
	return kept[:min(limit, len(kept))], len(kept) > limit, nil
}

// ReadVersion reads a part of the file or of its backup.
func (s *state) ReadVersion(ctx context.Context, id string, offset, length int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f, size, err := s.openVersion(id)
	if err != nil {
		return nil, err
	}
	defer s.closeVersion(f)
	first := make([]byte, 1)
	if _, err := f.ReadAt(first, 0); err == nil && id == currentID && isUnfinished(first) {
		return nil, s.notFinished()
	}
	offset = min(offset, size)
	if length < 0 || length > size-offset {
		length = size - offset
	}
	data, err := meter.Read(io.NewSectionReader(f, offset, length), length, s.limit)
	return data, failed(s.pathOf(id), err)
}

func (s *state) pathOf(id string) string {
	if id == backupID {
		return s.backup
	}
	return s.path
}

// openVersion opens the file or its backup, and returns its size. An empty file is no version. The caller must call
// closeVersion.
func (s *state) openVersion(id string) (f handle, size int64, err error) {
	switch {
	case id == currentID && s.f != nil:
		f, err = s.f, s.stillThere()
	case id == currentID:
		f, err = s.openFile(os.O_RDONLY)
	case id == backupID:
		f, err = openItself(s.backup)
	default:
		return nil, 0, store.ErrNoVersion
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, store.ErrNoVersion
	}
	if err != nil {
		return nil, 0, failed(s.pathOf(id), err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() > 0 {
		return f, info.Size(), nil
	}
	s.closeVersion(f)
	return nil, 0, cmp.Or(failed(s.pathOf(id), err), store.ErrNoVersion)
}

// closeVersion closes a file, unless it is the locked one.
func (s *state) closeVersion(f handle) {
	if f != s.f {
		_ = f.Close()
	}
}
