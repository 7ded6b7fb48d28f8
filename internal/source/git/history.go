package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// Commit is a commit of a branch, with a file in it. The texts come from the repository and are not escaped.
type Commit struct {
	ID      string
	File    string // the id of the file, or Link; "" if the commit does not contain it
	Time    time.Time
	Author  string // name and address
	Subject string
}

// Link stands for the id of a file if the file, or a folder above it, is a symbolic link.
const Link = "a link"

// depths are the numbers of commits that History fetches, one after the other.
var depths = [...]int{100, 1000, 10_000}

// History returns the newest commits of a branch, the newest first, with the file called name in each. Of a merge, it
// follows the first parent. It fetches older commits until enough returns true, or until it has fetched 10,000 commits
// or all of them. It fetches no files, and only the folders above the file if the server supports that.
func (v *Visit) History(ctx context.Context, branch, name string, enough func(commits []Commit, complete bool) bool) error {
	p, _, err := v.tip(ctx, branch, nil)
	for _, depth := range depths {
		if err != nil {
			break
		}
		var commits []Commit
		commits, err = v.d.log(ctx, branch, name, depth)
		if isRefusal(err) && v.d.reach != wholeSnapshot { // the server does not send single folders
			v.d.reach = wholeSnapshot
			if p, _, err = v.tip(ctx, branch, nil); err == nil {
				commits, err = v.d.log(ctx, branch, name, depth)
			}
		}
		if complete := len(commits) < depth; err == nil && (enough(commits, complete) || complete) {
			break
		}
	}
	return v.d.explain(err, p.ref)
}

// log returns at most depth commits of a branch.
func (d *repository) log(ctx context.Context, branch, name string, depth int) ([]Commit, error) {
	args := []string{fmt.Sprintf("--depth=%d", depth)}
	switch filter := d.reach.filter(); {
	case d.reach == walk:
		args = append(args, "--filter=tree:0")
		d.here = map[string]bool{}
	case filter != "":
		args = append(args, "--filter="+filter)
	}
	most := limits{object: d.run.maxObject, file: maxSnapshot, streams: true}
	if _, err := d.fetch(ctx, nil, most, append(args, Remote, "+"+branch+":"+wantedRef)...); err != nil {
		return nil, err
	}
	var commits []Commit
	folders := map[string]string{} // the root folder by commit
	// The command rev-list obeys no settings for the output of git log.
	_, err := d.git(ctx, nil, func(stdout io.Reader) (err error) {
		commits, err = readLog(stdout, depth, folders)
		return err
	}, "-c", "i18n.logOutputEncoding=UTF-8", "rev-list", "--first-parent", fmt.Sprintf("--max-count=%d", depth),
		"--format=%T %ct%n%an <%ae>%n%s", wantedRef)
	if err != nil {
		return nil, err
	}
	files, err := d.trace(ctx, name, folders)
	for i := range commits {
		commits[i].File = files[commits[i].ID]
	}
	return commits, err
}

// errLog means that the output of rev-list is damaged.
var errLog = errors.New("git's list of commits cannot be parsed")

// readLog reads at most the given number of commits, and notes the root folder of each.
func readLog(stdout io.Reader, most int, roots map[string]string) (commits []Commit, err error) {
	in := bufio.NewReader(stdout)
	for len(commits) < most {
		var record [4]string
		for i := range record {
			if record[i], err = readLine(in); err != nil {
				if err == io.EOF && i == 0 && record[0] == "" { //nolint:errorlint // the reader returns this very value
					return commits, nil
				}
				return nil, errLog
			}
		}
		id, isCommit := strings.CutPrefix(record[0], "commit ")
		root, at, _ := strings.Cut(record[1], " ")
		seconds, failed := strconv.ParseInt(at, 10, 64)
		if !isCommit || !objectID.MatchString(id) || !objectID.MatchString(root) {
			return nil, errLog
		}
		c := Commit{ID: id, Author: record[2], Subject: record[3]}
		if failed == nil {
			c.Time = time.Unix(seconds, 0).UTC()
		}
		roots[id] = root
		commits = append(commits, c)
	}
	return commits, nil
}

// readLine returns the first bytes of a line, and skips the rest. Names and subjects may be long.
func readLine(in *bufio.Reader) (string, error) {
	const most = 1 << 10 // bytes
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part[:min(len(part), most-len(line))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return string(bytes.TrimSuffix(line, []byte("\n"))), err
	}
}

// trace returns the id of a file by commit, or Link. The argument roots has the root folder by commit.
func (d *repository) trace(ctx context.Context, name string, roots map[string]string) (map[string]string, error) {
	level := roots
	idSize := (&tree{format: d.format}).idSize()
	for rest, more := name, true; more; {
		var part string
		part, rest, more = strings.Cut(rest, "/")
		ids := map[string]bool{}
		for _, id := range level {
			ids[id] = true
		}
		if delete(ids, Link); len(ids) == 0 {
			break
		}
		folders, err := d.fetchFolders(ctx, ids, maxListing)
		if err != nil {
			return nil, err
		}
		inside := map[string]string{Link: Link} // the id of the part by folder
		for id, folder := range folders {
			for e := range entries(folder, idSize) {
				switch {
				case string(e.name) != part:
				case string(e.mode) == modeSymlink:
					inside[id] = Link
				case more && e.isDirectory(), !more && e.isFile():
					inside[id] = hex.EncodeToString(e.id)
				}
			}
		}
		next := map[string]string{}
		for commit, folder := range level {
			if id := inside[folder]; id != "" {
				next[commit] = id
			}
		}
		level = next
	}
	return level, nil
}

func (e folderEntry) isFile() bool {
	mode := string(e.mode)
	return mode == modeFile || mode == modeExecutable || mode == modeGroup
}

// FetchFiles fetches files by id, each of at most limit bytes, and returns their sizes. A larger file has the size -1.
func (v *Visit) FetchFiles(ctx context.Context, ids []string, limit int64) (map[string]int64, error) {
	d, wanted, sizes := v.d, map[string]int64{}, map[string]int64{}
	for _, id := range ids {
		wanted[id] = limit
	}
	err := d.fetchBlobs(ctx, wanted)
	for id := range wanted {
		if sizes[id] = -1; d.tooLarge[id] {
			delete(wanted, id)
		}
	}
	if err == nil && len(wanted) > 0 {
		_, err = d.git(ctx, bytes.NewReader(lines(wanted)), func(stdout io.Reader) error {
			in := bufio.NewReader(stdout)
			for range wanted {
				id, _, size, err := readHeader(in)
				if err != nil || id == "" {
					return errObjects
				}
				if size <= limit {
					sizes[id] = size
				}
			}
			return nil
		}, "cat-file", "--batch-check")
	}
	return sizes, d.explain(err, ref{})
}

// File returns a file that FetchFiles has fetched.
func (v *Visit) File(ctx context.Context, id string, limit int64) ([]byte, error) {
	blobs, err := v.d.readBlobs(ctx, map[string]int64{id: limit})
	if err != nil {
		return nil, v.d.explain(err, ref{})
	}
	b, ok := blobs[id]
	switch {
	case !ok:
		return nil, errObjects
	case b.size > limit:
		return nil, meter.TooLarge(limit)
	}
	return b.data, nil
}
