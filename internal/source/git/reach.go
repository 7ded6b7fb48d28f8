package git

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// reach says how much of a commit the first fetch gets, in addition to the commit itself. Each retry may only
// increase it, and fetches everything again.
type reach int

const (
	glance        reach = iota // all folders, if they are small: most repositories then need no further request
	walk                       // the root folder; later, one more fetch for each level of folders above the requested files
	allFolders                 // all folders of any size, for servers that support neither of the above
	wholeSnapshot              // all folders and files, for servers that do not send single files
)

// filter returns the value of --filter for git fetch, or an empty string for no filter. A tree depth counts
// from the commit, so 1 means the root folder.
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
	// maxGlance is the size of about four thousand folders with a few files each. On systems that cannot
	// limit the file size, git stops at about twenty thousand folders, because their list no longer fits into
	// maxGlanceMemory. maxGlanceMemory includes 1 MiB for a request.
	maxGlance       = 256 << 10         // bytes
	maxGlanceMemory = 1<<20 + maxGlance // bytes

	// maxSnapshot limits a fetch from a server that ignores the filter and sends all files of the commit.
	maxSnapshot = 4 << 30 // bytes

	// spare is added to the sizes of the requested files in git's limits.
	spare = 16 << 20 // bytes
)

// limits holds the largest size of an object that git unpacks in memory, and of a file that it writes. If
// streams is true, git writes objects larger than half the object limit to disk piece by piece.
type limits struct {
	object, file int64 // bytes
	streams      bool
}

// limits returns the limits for fetching a commit and its folders, which git holds in memory. If the server
// sends files nevertheless, git streams them to disk.
func (r reach) limits(of *run) limits {
	if r == glance {
		return limits{object: min(maxGlanceMemory, of.maxObject), file: of.maxGlance, streams: true}
	}
	return limits{object: of.maxObject, file: maxSnapshot, streams: true}
}

// limitsOf returns the limits for fetching files. wanted maps each id to the largest size allowed.
func (r *run) limitsOf(wanted map[string]int64) limits {
	l := limits{object: min(spare+slices.Max(slices.Collect(maps.Values(wanted))), r.largest), file: spare}
	for _, most := range wanted {
		l.file += most
	}
	return l
}

// apply returns environ with the limits added. Unless the limits allow streaming, core.bigFileThreshold is
// set to the largest number, so that git unpacks every object in memory, where the object limit applies.
func (l limits) apply(environ world.Environ, largest int64) world.Environ {
	threshold := largest
	if l.streams {
		threshold = l.object / 2
	}
	return appendConfig(environ.With(fmt.Sprintf("GIT_ALLOC_LIMIT=%d", l.object)),
		[]setting{{"core.bigFileThreshold", strconv.FormatInt(threshold, 10)}})
}
