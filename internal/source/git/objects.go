package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// blob is the content of one file; data is nil if it is larger than allowed.
type blob struct {
	size  int64
	data  []byte
	taken bool
}

// lines returns the ids as git reads them.
func lines[V any](ids map[string]V) []byte {
	return []byte(strings.Join(slices.Sorted(maps.Keys(ids)), "\n") + "\n")
}

// readBlobs reads blobs by their ids, each up to the given size. It asks for the sizes first, so that
// git prints only blobs that are small enough.
func (d *repository) readBlobs(ctx context.Context, limits map[string]int64) (map[string]blob, error) {
	blobs, here := map[string]blob{}, map[string]int64{}
	for id, limit := range limits {
		if d.tooLarge[id] {
			blobs[id] = blob{size: limit + 1}
		} else {
			here[id] = limit
		}
	}
	if len(here) == 0 {
		return blobs, nil
	}
	_, err := d.git(ctx, bytes.NewReader(lines(here)), func(stdout io.Reader) error {
		return readSizes(stdout, here, blobs)
	}, "cat-file", "--batch-check")
	if err != nil || len(here) == 0 {
		return blobs, err
	}
	_, err = d.git(ctx, bytes.NewReader(lines(here)), func(stdout io.Reader) error {
		return readObjects(stdout, here, blobs)
	}, "cat-file", "--batch")
	return blobs, err
}

// readSizes removes from limits the blobs that are larger.
func readSizes(stdout io.Reader, limits map[string]int64, blobs map[string]blob) error {
	in := bufio.NewReader(stdout)
	for range len(limits) {
		id, kind, size, err := readHeader(in)
		if err != nil {
			return err
		}
		if limit, wanted := limits[id]; wanted && kind == "blob" && size > limit {
			blobs[id] = blob{size: size}
			delete(limits, id)
		}
	}
	return nil
}

// readHeader reads "<id> <type> <size>"; all is empty if the object is missing.
func readHeader(in *bufio.Reader) (id, kind string, size int64, err error) {
	line, err := in.ReadString('\n')
	if strings.HasSuffix(line, " missing\n") {
		return "", "", 0, nil
	}
	fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
	if err != nil || len(fields) != 3 {
		return "", "", 0, errObjects
	}
	size, err = strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size < 0 {
		return "", "", 0, errObjects
	}
	return fields[0], fields[1], size, nil
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
		if kind == "blob" { // a tree may call another object a file
			blobs[id] = b
		}
	}
	return nil
}

// readObject reads one object of git-cat-file(1) BATCH OUTPUT. All is empty if it
// is missing, and the data nil if it is of another kind or larger than its limit.
func readObject(in *bufio.Reader, kind string, limit func(id string) int64) (id, found string, b blob, err error) {
	id, found, b.size, err = readHeader(in)
	switch {
	case err != nil || id == "":
		return "", "", blob{}, err
	case found != kind || b.size > limit(id):
		_, err = io.CopyN(io.Discard, in, b.size)
	default:
		b.data, err = meter.Read(io.LimitReader(in, b.size), b.size, b.size)
	}
	if end, e := in.ReadByte(); err != nil || e != nil || end != '\n' {
		return "", "", blob{}, errObjects
	}
	return id, found, b, nil
}
