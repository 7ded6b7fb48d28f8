package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// answers reads the requested files from the throw-away repository. It returns one answer for each request in
// the batch.
func (d *repository) answers(ctx context.Context, list *tree, batch []*want) []answer {
	blobs, err := d.readBlobs(ctx, list.wanted(batch))
	answers := make([]answer, len(batch))
	for i, w := range batch {
		if err != nil {
			answers[i].err = d.explain(err, ref{})
			continue
		}
		answers[i].snapshot, answers[i].err = d.snapshot(list, blobs, w)
	}
	return answers
}

func (d *repository) snapshot(list *tree, blobs map[string]blob, w *want) (*source.Snapshot, error) {
	lock, lockErr := list.lock(w.path, blobs)
	notice, err := w.onLocked.accept(lock, lockErr)
	if err != nil {
		return nil, err
	}
	e, err := list.resolve(w.path, d.access.sent())
	if missing, ok := source.IsMissing(err); ok {
		missing.Lock = lock
		if notice != "" {
			missing.Detail += ". " + sentence(notice)
		}
	}
	if err != nil {
		return nil, err
	}
	b, err := content(e, w.path, w.maxSize, blobs)
	if err != nil {
		return nil, err
	}
	data := b.data
	if b.taken {
		data = bytes.Clone(data) // each caller may overwrite its data
	}
	b.taken = true
	blobs[e.id] = b
	warnings := slices.Clone(d.access.warnings)
	if list.slow != "" && d.run.first(d.remote) {
		warnings = append(warnings, source.Warning{Title: "Slow source", Text: list.slow})
	}
	if notice != "" {
		title := "Locked state"
		if lock == nil {
			title = "Unknown lock"
		}
		warnings = append(warnings, source.Warning{Title: title, Text: sentence(notice) + "."})
	}
	return &source.Snapshot{Data: data, Revision: list.commit, Lock: lock, Warnings: warnings}, nil
}

// sentence returns text with a capital letter at its beginning.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// content returns the content of an entry, or an error if the entry is not a file.
func content(e entry, path string, maxSize int64, blobs map[string]blob) (blob, error) {
	b, ok := blobs[e.id]
	if !ok {
		return blob{}, errors.New("git did not deliver the file")
	}
	if e.mode == modeSymlink {
		return blob{}, fmt.Errorf("%s is a symbolic link to %s, and links are not followed; set the argument path to the file itself",
			shown(path), outside.Line(string(b.data), 200))
	}
	if b.size > maxSize {
		return blob{}, meter.TooLarge(maxSize)
	}
	if isLFSPointer(b.data) {
		return blob{}, fmt.Errorf("%s is stored in Git LFS, so the repository contains only a pointer to it; commit the file without Git "+
			"LFS", shown(path))
	}
	return b, nil
}

// isLFSPointer reports whether data is the pointer that Git LFS commits instead of a large file.
func isLFSPointer(data []byte) bool {
	return len(data) < 1024 && bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/v1\n"))
}
