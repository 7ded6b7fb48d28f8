package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	filesource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/file"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// unfinished is the first byte of the file while it is being overwritten. No program mistakes such a file for a state.
const unfinished = filesource.Unfinished

func isUnfinished(data []byte) bool { return len(data) > 0 && data[0] == unfinished }

// notFinished returns the error for a file that was only partly overwritten.
func (s *state) notFinished() error {
	path := outside.Quoted(s.path, 300)
	if journal := journalOf(s.path); !recognize.Exists(journal) {
		return fmt.Errorf("a write to %s was not finished, and the file %s with the new state is missing; put that file back, or run "+
			"statecrypt restore -replace backup, which restores %s", path, outside.Quoted(journal, 300), outside.Quoted(s.backup, 300))
	}
	return fmt.Errorf("a write to %s was not finished; the next command that locks the state will finish it", path)
}

// journalOf returns the path of the journal. If path is a link, the journal is next to the target of the link, where
// the next run finds it.
func journalOf(path string) string {
	if itself, err := filepath.EvalSymlinks(path); err == nil {
		path = itself
	}
	dir, base := filepath.Split(path)
	return filepath.Join(dir, "."+base+".journal")
}

// replace overwrites the file in steps. After each step, the file is either the old state or the new one, or it is
// unreadable and the journal has the new state.
func (s *state) replace(ctx context.Context, found, data []byte) error {
	if err := s.writeJournal(ctx, found, data); err != nil {
		return failed(s.journal, err)
	}
	if err := overwrite(s.f, data); err != nil {
		if overwrite(s.f, found) == nil { // the old content fit before
			err = errors.Join(err, os.Remove(s.journal))
		}
		return s.failed(err)
	}
	return failed(s.journal, os.Remove(s.journal))
}

func overwrite(f handle, data []byte) error {
	if len(data) == 0 {
		return errors.Join(f.Truncate(0), f.Sync())
	}
	for _, step := range []func() error{
		func() error { return writeAt(f, []byte{unfinished}, 0) },
		f.Sync,
		func() error { return writeAt(f, data[1:], 1) },
		func() error { return f.Truncate(int64(len(data))) },
		f.Sync,
		func() error { return writeAt(f, data[:1], 0) },
		f.Sync,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func writeAt(f handle, data []byte, at int64) error {
	_, err := f.WriteAt(data, at)
	return err
}

// header is the first line of a journal. The new state follows it.
type header struct {
	Replaces store.Version `json:"replaces"` // digest of the old content
	State    store.Version `json:"state"`    // digest of the new content
}

func (s *state) writeJournal(ctx context.Context, found, data []byte) error {
	line, err := json.Marshal(header{store.Digest(found), store.Digest(data)})
	if err == nil {
		err = replace.Name(ctx, s.journal, append(append(line, '\n'), data...))
	}
	if err == nil {
		err = replace.SyncFolder(filepath.Dir(s.journal))
	}
	return err
}

// readJournal returns the content of the journal: a header, then a state.
func (s *state) readJournal() ([]byte, error) {
	f, err := openItself(s.journal)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const most = 1 << 10 // the maximum size of a header, in bytes
	return meter.Read(f, -1, s.limit+most)
}

// complete finishes an interrupted write. If another process has written to the file since, complete leaves the file as
// it is, and saves the interrupted state in another file next to it.
func (s *state) complete(ctx context.Context) error {
	text, err := s.readJournal()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if errors.Is(err, errForeign) {
		return failed(s.journal, err)
	}
	if err != nil {
		return failed(s.journal, fmt.Errorf("it may contain the newest state, but cannot be read: %w", keyfile.Reason(err)))
	}
	var h header
	line, data, _ := bytes.Cut(text, []byte("\n"))
	if json.Unmarshal(line, &h) != nil || h.State != store.Digest(data) {
		return fmt.Errorf("%s is damaged; if %s is intact, delete the damaged "+
			"file", outside.Quoted(s.journal, 300), outside.Quoted(s.path, 300))
	}
	found, err := s.content(s.f)
	switch {
	case err != nil:
		return s.failed(err)
	case store.Digest(found) == h.State:
	case store.Digest(found) == h.Replaces || isUnfinished(found) || !json.Valid(found):
		if err := overwrite(s.f, data); err != nil {
			return s.failed(err)
		}
		notice.Show(ctx, fmt.Sprintf("a write to %s was interrupted, and has been completed", outside.Quoted(s.path, 300)))
	default:
		kept := s.path + "." + string(h.State[:8]) + ".unwritten"
		if err := replace.Name(ctx, kept, data); err != nil {
			return failed(kept, err)
		}
		notice.Show(ctx, fmt.Sprintf("a write to %s was not finished, and someone else has changed the file since, so it was not overwritten; "+
			"the unwritten state is encrypted in %s", outside.Quoted(s.path, 300), outside.Quoted(kept, 300)))
	}
	return failed(s.journal, os.Remove(s.journal))
}
