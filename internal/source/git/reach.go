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
	glance        reach = iota // all folders, if they are small: most repositories then need no further request
	walk                       // the root folder; later, one more fetch for each level of folders above the wanted files
	allFolders                 // all folders of any size, for servers that support neither of the above
	wholeSnapshot              // all folders and files, for servers that do not send single files
)

// filter returns the value of --filter for git fetch, "" for none. The depth of a tree counts from the
// commit, so 1 is the root.
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
	// maxGlance is the size of about four thousand folders of a few files each. If the size of files
	// cannot be limited, git stops at about twenty thousand folders, whose list no longer fits into
	// maxGlanceMemory. That includes 1 MiB for a request.
	maxGlance       = 256 << 10         // bytes
	maxGlanceMemory = 1<<20 + maxGlance // bytes

	// maxSnapshot limits a fetch from a server that ignores the filter and sends all files of the
	// commit.
	maxSnapshot = 4 << 30 // bytes

	// spare is added to the sizes of the wanted files in git's limits.
	spare = 16 << 20 // bytes
)

// limits holds the sizes of the largest object that git unpacks in memory, and of the largest file that
// it writes. If streams is set, git writes objects of more than half the limit to the disk piece by
// piece.
type limits struct {
	object, file int64 // bytes
	streams      bool
}

// limits returns the limits of a fetch of a commit and its folders, which git holds in memory. Files
// that the server sends nevertheless are streamed to the disk.
func (r reach) limits(of *run) limits {
	if r == glance {
		return limits{object: min(maxGlanceMemory, of.maxObject), file: of.maxGlance, streams: true}
	}
	return limits{object: of.maxObject, file: maxSnapshot, streams: true}
}

// limitsOf returns the limits of a fetch of files. It takes their ids with their largest sizes.
func (r *run) limitsOf(wanted map[string]int64) limits {
	l := limits{object: min(spare+slices.Max(slices.Collect(maps.Values(wanted))), r.largest), file: spare}
	for _, most := range wanted {
		l.file += most
	}
	return l
}

// apply returns the environment for git with the limits. Unless the limits allow streaming,
// core.bigFileThreshold is the largest number, so that git unpacks every object in memory, where the
// limit applies.
func (l limits) apply(environ world.Environ, largest int64) world.Environ {
	threshold := largest
	if l.streams {
		threshold = l.object / 2
	}
	return appendConfig(environ.With(fmt.Sprintf("GIT_ALLOC_LIMIT=%d", l.object)),
		[]setting{{"core.bigFileThreshold", strconv.FormatInt(threshold, 10)}})
}
