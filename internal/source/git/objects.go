package git

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// blob is the content of one file; data is nil if it is larger than allowed.
type blob struct {
	size  int64
	data  []byte
	taken bool
}

// lines returns the ids as git reads them.
func lines(limits map[string]int64) io.Reader {
	return strings.NewReader(strings.Join(slices.Sorted(maps.Keys(limits)), "\n") + "\n")
}

// readBlobs takes ids, each with the largest size to be read.
func (d *repository) readBlobs(ctx context.Context, limits map[string]int64) (map[string]blob, error) {
	blobs := map[string]blob{}
	if len(limits) == 0 {
		return blobs, nil
	}
	_, err := d.git(ctx, lines(limits), func(stdout io.Reader) error {
		return readObjects(stdout, limits, blobs)
	}, "cat-file", "--batch")
	return blobs, err
}

var errObjects = errors.New("git printed a file that cannot be read")

// readObjects reads the objects that limits has, and keeps the blobs.
func readObjects(stdout io.Reader, limits map[string]int64, blobs map[string]blob) error {
	in := bufio.NewReader(stdout)
	for range limits {
		id, kind, b, err := readObject(in, "blob", func(id string) int64 { return limits[id] })
		if err != nil {
			return err
		}
		if _, wanted := limits[id]; !wanted {
			return errObjects
		}
		if kind == "blob" { // what a list calls a file may be something else
			blobs[id] = b
		}
	}
	return nil
}

// readObject reads one object of git-cat-file(1) BATCH OUTPUT. All is empty if it
// is missing, and the data nil if it is of another kind or larger than its limit.
func readObject(in *bufio.Reader, kind string, limit func(id string) int64) (id, found string, b blob, err error) {
	header, err := in.ReadString('\n')
	if strings.HasSuffix(header, " missing\n") {
		return "", "", blob{}, nil
	}
	fields := strings.Split(strings.TrimSuffix(header, "\n"), " ")
	if err != nil || len(fields) != 3 { // <id> <type> <size>
		return "", "", blob{}, errObjects
	}
	id, found = fields[0], fields[1]
	b.size, err = strconv.ParseInt(fields[2], 10, 64)
	switch {
	case err != nil || b.size < 0:
		return "", "", blob{}, errObjects
	case found != kind || b.size > limit(id):
		_, err = io.CopyN(io.Discard, in, b.size)
	default:
		b.data, err = source.Read(io.LimitReader(in, b.size), b.size, b.size)
	}
	if end, e := in.ReadByte(); err != nil || e != nil || end != '\n' {
		return "", "", blob{}, errObjects
	}
	return id, found, b, nil
}
