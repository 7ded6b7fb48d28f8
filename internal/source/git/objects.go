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

// blob is the content of one file. data is nil if the file is larger than allowed. taken says whether a
// caller has already received data.
type blob struct {
	size  int64
	data  []byte
	taken bool
}

// lines returns the sorted ids, one per line.
func lines[V any](ids map[string]V) []byte {
	return []byte(strings.Join(slices.Sorted(maps.Keys(ids)), "\n") + "\n")
}

// readBlobs reads the blobs in limits, which maps each id to the largest size allowed, in bytes. It asks git
// for the sizes first, so that git prints only blobs that are small enough.
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

// readSizes moves blobs that are larger than their limits from limits to blobs, without their data.
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

// readHeader reads the line "<id> <type> <size>". It returns empty values if the object is missing.
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

var errObjects = errors.New("git's output for a file cannot be parsed")

// readObjects reads one object for each entry of limits, and stores the blobs among them.
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
		if kind == "blob" { // a tree may list an object of another kind as a file
			blobs[id] = b
		}
	}
	return nil
}

// readObject reads one object in the format described in git-cat-file(1) under BATCH OUTPUT. It returns empty
// values if the object is missing, and no data if the object is of another kind or larger than its limit.
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
