package git

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	gitsource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// history holds the commits that changed the state, as far as they were fetched.
type history struct {
	visit    *gitsource.Visit
	commits  []gitsource.Commit // all of them, the newest first
	complete bool               // whether there are no older commits
	sizes    map[string]int64   // the sizes of the fetched files by id, in bytes; -1 for a link and a file that is too large
}

// changes returns the commits that changed the file. It leaves out the oldest commit, unless it has no parents, because
// it is unknown whether that commit changed the file.
func changes(commits []gitsource.Commit, complete bool) (changed []gitsource.Commit) {
	for i, c := range commits {
		isOldest := i == len(commits)-1
		if !isOldest && c.File != commits[i+1].File || isOldest && complete && c.File != "" {
			changed = append(changed, c)
		}
	}
	return changed
}

// Versions returns the commits of the branch that changed the state. It fetches these states together, because a
// server of git sends whole files only. They stay in a temporary repository until the store is closed.
func (s *state) Versions(ctx context.Context, limit int) (kept []store.Kept, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.lookBack(ctx, func(h *history) bool { return len(changes(h.commits, h.complete)) > limit })
	if err != nil {
		return nil, false, err
	}
	changed := changes(h.commits, h.complete)
	more = !h.complete || len(changed) > limit
	changed = changed[:min(limit, len(changed))]
	var files []string
	for _, c := range changed {
		files = append(files, c.File)
	}
	err = s.fetch(ctx, h, files)
	for i, c := range changed {
		one := store.Kept{ID: c.ID, Created: c.Time, Author: c.Author, Subject: c.Subject, Size: h.sizes[c.File]}
		switch {
		case c.File == "":
			one.Status = store.KeptDeleted
		case i == 0:
			one.Status = store.KeptCurrent
		}
		kept = append(kept, one)
	}
	return kept, more, err
}

var abbreviation = lazyregexp.New(`^[0-9a-f]{7,64}$`)

// errAmbiguous means that an abbreviation stands for several commits.
var errAmbiguous = errors.New("several commits have IDs that begin like this; write more digits")

// errLink means that a commit has a symbolic link in place of the state, or of a folder above it.
var errLink = errors.New("in this commit, the path of the state is a symbolic link, and links are not followed")

// ReadVersion reads a part of the state in a commit of the branch. The ID may be abbreviated to its first 7 digits, as
// in git.
func (s *state) ReadVersion(ctx context.Context, id string, offset, length int64) (data []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id = strings.ToLower(id); !abbreviation.MatchString(id) {
		return nil, store.ErrNoVersion
	}
	var found []gitsource.Commit
	find := func(h *history) bool {
		found = nil
		for _, c := range h.commits {
			if strings.HasPrefix(c.ID, id) {
				found = append(found, c)
			}
		}
		return len(found) > 0
	}
	h := s.past
	if h == nil || !find(h) {
		if h, err = s.lookBack(ctx, find); err != nil {
			return nil, err
		}
	}
	switch {
	case len(found) > 1:
		return nil, errAmbiguous
	case len(found) == 0 || found[0].File == "":
		return nil, store.ErrNoVersion
	case found[0].File == gitsource.Link:
		return nil, errLink
	}
	if err = s.fetch(ctx, h, []string{found[0].File}); err == nil {
		data, err = h.visit.File(ctx, found[0].File, s.Limit)
	}
	size := int64(len(data))
	offset = min(offset, size)
	if length < 0 || length > size-offset {
		length = size - offset
	}
	return data[offset : offset+length], err
}

// fetch fetches those of the files that are not here yet.
func (s *state) fetch(ctx context.Context, h *history, files []string) error {
	files = slices.DeleteFunc(files, func(id string) bool { _, isHere := h.sizes[id]; return isHere })
	if len(files) == 0 {
		return nil
	}
	return s.inTime(ctx, func(ctx context.Context) error {
		sizes, err := h.visit.FetchFiles(ctx, files, s.Limit)
		if err == nil {
			maps.Copy(h.sizes, sizes)
		}
		return reached(err)
	})
}

// lookBack fetches commits until enough returns true.
func (s *state) lookBack(ctx context.Context, enough func(h *history) bool) (*history, error) {
	if err := s.forget(); err != nil {
		return nil, err
	}
	h := &history{complete: true, sizes: map[string]int64{"": 0, gitsource.Link: -1}}
	err := s.inTime(ctx, func(ctx context.Context) (err error) {
		if h.visit, err = s.server.Visit(ctx); h.visit != nil {
			s.past = h
		}
		if err == nil {
			err = h.visit.History(ctx, s.server.Branch, s.name, func(commits []gitsource.Commit, complete bool) bool {
				h.commits, h.complete = commits, complete
				return enough(h)
			})
		}
		if none, ok := errors.AsType[*gitsource.NoBranchError](err); ok {
			return s.mayCreate(none)
		}
		return reached(err)
	})
	return h, err
}

// forget deletes the temporary repository that has older versions.
func (s *state) forget() (err error) {
	if s.past != nil {
		if left := s.past.visit.Close(); left != "" {
			err = errors.New(left)
		}
	}
	s.past = nil
	return err
}
