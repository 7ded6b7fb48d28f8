package file

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// These are the IDs of the only versions of a file: its content, and the content of its backup.
const (
	currentID = "current"
	backupID  = "backup"
)

// Versions returns the file, unless it is empty, and its backup. The time of the backup is unknown, because the backup
// was written when the state was replaced.
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
	if len(kept) > limit {
		return kept[:limit], true, nil
	}
	return kept, false, nil
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
	if length < 0 {
		length = math.MaxInt64
	}
	offset = min(offset, size)
	length = min(length, size-offset)
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
		f, err = opened(s.openFile(os.O_RDONLY))
	case id == backupID:
		f, err = opened(openItself(s.backup))
	default:
		return nil, 0, store.ErrNoVersion
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, store.ErrNoVersion
	}
	var info fs.FileInfo
	if err == nil {
		info, err = f.Stat()
	}
	switch {
	case err != nil:
		err = failed(s.pathOf(id), err)
	case info.Size() == 0:
		err = store.ErrNoVersion
	}
	if err != nil {
		s.closeVersion(f)
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// opened returns a file as a handle, which is nil if there is an error.
func opened(f *os.File, err error) (handle, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// closeVersion closes a file, unless it is the locked one.
func (s *state) closeVersion(f handle) {
	if f != nil && f != s.f {
		_ = f.Close()
	}
}
