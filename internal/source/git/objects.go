package git

import (
	"bufio"
	"context"
	"errors"
	"io"
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

// readBlobs takes ids, each with the largest size to be read.
func (d *repository) readBlobs(ctx context.Context, limits map[string]int64) (map[string]blob, error) {
	blobs := map[string]blob{}
	if len(limits) == 0 {
		return blobs, nil
	}
	var ids strings.Builder
	for id := range limits {
		ids.WriteString(id + "\n")
	}
	_, err := d.git(ctx, strings.NewReader(ids.String()), func(stdout io.Reader) error {
		return readObjects(stdout, limits, blobs)
	}, "cat-file", "--batch")
	return blobs, err
}

var errObjects = errors.New("git printed a file that cannot be read")

// readObjects parses git-cat-file(1) BATCH OUTPUT.
func readObjects(stdout io.Reader, limits map[string]int64, blobs map[string]blob) error {
	in := bufio.NewReader(stdout)
	for range limits {
		header, err := in.ReadSlice('\n')
		if err != nil {
			return errObjects
		}
		id, kind, size, err := parseObjectHeader(string(header))
		if err != nil {
			return err
		}
		limit, wanted := limits[id]
		if !wanted {
			return errObjects
		}
		b := blob{size: size}
		if size > limit || kind != "blob" {
			_, err = io.CopyN(io.Discard, in, size)
		} else {
			b.data, err = source.Read(io.LimitReader(in, size), size, limit)
		}
		if end, e := in.ReadByte(); err != nil || e != nil || end != '\n' {
			return errObjects
		}
		if kind == "blob" { // what a list calls a file may be something else
			blobs[id] = b
		}
	}
	return nil
}

// parseObjectHeader reads "<id> <type> <size>\n".
func parseObjectHeader(line string) (id, kind string, size int64, err error) {
	fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
	if len(fields) != 3 {
		return "", "", 0, errObjects
	}
	size, err = strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size < 0 {
		return "", "", 0, errObjects
	}
	return fields[0], fields[1], size, nil
}
