package git

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// reach tells how much of a commit is fetched at first, beside the commit itself. It only grows, and
// earlier fetches are not kept.
type reach int

const (
	glance        reach = iota // all folders, if they are few: no further request, for most repositories
	walk                       // the root, and later the folders on the way to wanted files: one more fetch for each level
	allFolders                 // however many: the server does not do the other two
	wholeSnapshot              // all files as well: it does not send single ones either
)

// filter returns the filter for git fetch. The depth of a tree counts from the commit, so 1 is the root.
func (r reach) filter() string {
	switch r {
	case walk:
		return "tree:1"
	case wholeSnapshot:
		return ""
	}
	return "blob:none"
}

const (
	// maxGlance is the size of about four thousand folders of a few files each. Where
	// files cannot be limited, git stops at twenty thousand: that many it keeps
	// account of in maxGlanceMemory, which has to hold 1 MiB for a request, too.
	maxGlance       = 256 << 10         // bytes
	maxGlanceMemory = 1<<20 + maxGlance // bytes

	// maxSnapshot limits the first fetch from a server that knows no filter, and sends all files of
	// the commit.
	maxSnapshot = 4 << 30 // bytes

	// spare is git's limit in addition to the sizes of the fetched files.
	spare = 16 << 20 // bytes
)

// limits are the limits of one fetch: git unpacks no larger object, and writes no larger file. Large
// objects that streams counts are written to the disk piece by piece.
type limits struct {
	object, file int64 // bytes
	streams      bool
}

// limits: commits and folders are held in memory, and files are not, if a server sends
// them.
func (r reach) limits(of *run) limits {
	if r == glance {
		return limits{object: min(maxGlanceMemory, of.maxObject), file: of.maxGlance, streams: true}
	}
	return limits{object: of.maxObject, file: maxSnapshot, streams: true}
}

// limitsOf has git unpack nothing larger than the largest of the wanted files.
func (r *run) limitsOf(wanted map[string]int64) limits {
	l := limits{object: min(spare+slices.Max(slices.Collect(maps.Values(wanted))), r.largest), file: spare}
	for _, most := range wanted {
		l.file += most
	}
	return l
}

// apply returns the environment for git. Without the threshold, it would unpack large
// files in pieces.
func (l limits) apply(environ world.Environ, largest int64) world.Environ {
	threshold := largest
	if l.streams {
		threshold = l.object / 2
	}
	return appendConfig(environ.With(fmt.Sprintf("GIT_ALLOC_LIMIT=%d", l.object)),
		[]setting{{"core.bigFileThreshold", strconv.FormatInt(threshold, 10)}})
}
