package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // what git uses
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

const bomb = 256 << 20 // bytes

// bombRepo has a file of zeros beside two states.
func bombRepo(t *testing.T, opts gittest.RepoOptions) (repo *gittest.Repo, id string) {
	t.Helper()
	repo = gittest.NewRepo(t, opts)
	id = repo.Zeros(bomb)
	repo.Git("config", "core.bigFileThreshold", "1m") // so that it is sent as it is stored
	repo.Git("config", "core.compression", "1")
	repo.Commit("refs/heads/main", gittest.File{Path: "bomb", Object: id}, gittest.File{Path: "a", Data: "one"},
		gittest.File{Path: "b", Data: "two"})
	return repo, id
}

// TestBombIsNotUnpacked looks at what is there when the files have arrived: had
// git unpacked the file to see what it is, it would be among the objects.
//
// Promise: Cost
func TestBombIsNotUnpacked(t *testing.T) {
	long(t)
	t.Parallel()
	repo, id := bombRepo(t, gittest.RepoOptions{})
	for name, address := range map[string]string{
		"http": gittest.HTTP(t, repo, gittest.HTTPOptions{}).URL,
		"file": repo.FileURL(),
	} {
		t.Run(name, func(t *testing.T) {
			src, err := newTestRun(t, nil).open(place{repository: address, path: "a"}.request(t))
			if err != nil {
				t.Fatal(err)
			}
			p := src.(*file).pin
			d := &repository{run: p.run, remote: p.remote}
			defer d.remove()
			list, err := p.list(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			wanted := list.wanted([]*want{{path: "a", maxSize: 1 << 20}, {path: "bomb", maxSize: 1 << 20}, {path: "b", maxSize: 1 << 20}})
			if err := d.fetchBlobs(t.Context(), wanted); err != nil {
				t.Fatal(err)
			}
			has := objectsIn(t, d.dir)
			if strings.Contains(has, id) {
				t.Error("the bomb is in the repository")
			}
			for _, path := range []string{"a", "b"} {
				if e, _ := list.find(path); !strings.Contains(has, e.id) {
					t.Errorf("%s is not in the repository", path)
				}
			}
			if n := diskUse(t, d.dir); n > 1<<20 {
				t.Errorf("%d bytes on disk, want at most 1 MiB", n)
			}
		})
	}
}

// TestBombBesideStates reads them together, so that one fetch is about all.
func TestBombBesideStates(t *testing.T) {
	long(t)
	t.Parallel()
	repo, _ := bombRepo(t, gittest.RepoOptions{})
	g := newGate()
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: g.before})
	r := newTestRun(t, nil)
	answers := map[string]<-chan answer{}
	for _, path := range []string{"a", "bomb", "b"} {
		answers[path] = fetchIn(t.Context(), t, r, place{repository: server.URL, path: path})
	}
	for queued(r, place{repository: server.URL}) < 3 {
		time.Sleep(time.Millisecond) // git is to have the processor
	}
	close(g.open)
	for path, want := range map[string]string{"a": "one", "b": "two"} {
		if a := <-answers[path]; a.err != nil || string(a.snapshot.Data) != want {
			t.Errorf("%s: %v", path, a.err)
		}
	}
	if a := <-answers["bomb"]; a.err == nil || a.err.Error() != meter.TooLarge(1<<20).Error() {
		t.Errorf("the bomb: %v, want %v", a.err, meter.TooLarge(1<<20))
	}
}

// TestBombInASnapshot: from a server that sends all files, the bomb comes, too.
// Nobody has to read it to know its size.
//
// Promise: Cost
func TestBombInASnapshot(t *testing.T) {
	long(t)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	repo, id := bombRepo(t, gittest.RepoOptions{NoFilter: true})
	path, log := os.Getenv("PATH"), filepath.Join(t.TempDir(), "log")
	withGit(t, `PATH='`+path+`'
		case "$*" in "cat-file --batch") tee -a '`+log+`' | '`+git+`' "$@" ;; *) exec '`+git+`' "$@" ;; esac`)
	r := newTestRun(t, nil)
	r.environ = append(r.environ, "PATH="+path)
	mustRead(t, r, place{repository: repo.FileURL(), path: "a"}, "one")
	_, err = read(t, r, place{repository: repo.FileURL(), path: "bomb"})
	if err == nil || err.Error() != meter.TooLarge(1<<20).Error() {
		t.Errorf("%v, want %v", err, meter.TooLarge(1<<20))
	}
	asked, _ := os.ReadFile(log)
	if strings.Contains(string(asked), id) || len(asked) == 0 {
		t.Errorf("git was told to print %q", asked)
	}
}

// TestWork: a pack of a few kilobytes takes minutes to put together, and ends
// nobody's patience but ours.
//
// Promise: Cost
func TestWork(t *testing.T) {
	long(t)
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such limits")
	}
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "one"})
	bomb := packOfCopies(300, 30<<20)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: func(w http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(unpacked(body), []byte("command=fetch")) {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = io.WriteString(w, line("packfile\n"))
		for part := range slices.Chunk(bomb, 60_000) {
			_, _ = io.WriteString(w, line("\x01"+string(part)))
		}
		_, _ = io.WriteString(w, "0000")
		return true
	}})
	r := newTestRun(t, nil)
	r.maxWork = time.Second
	_, err := read(t, r, place{repository: server.URL, path: "a"})
	openMistakes(t, "a bomb").Error(t, "a pack", err)
}

// line is a line of git's protocol.
func line(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// packOfCopies is a pack with a file of zeros, and many that are a number of copies
// of it: size bytes in all, each.
func packOfCopies(files, size int) []byte {
	const base = 1 << 20
	var pack bytes.Buffer
	object := func(kind, size int, name, content []byte) {
		head := kind<<4 | size&15
		for size >>= 4; size > 0; size >>= 7 {
			pack.WriteByte(byte(head | 0x80))
			head = size & 0x7f
		}
		pack.WriteByte(byte(head))
		pack.Write(name)
		z := zlib.NewWriter(&pack)
		_, _ = z.Write(content) // to memory
		_ = z.Close()
	}
	pack.WriteString("PACK")
	_ = binary.Write(&pack, binary.BigEndian, []uint32{2, uint32(files + 1)})
	zeros := make([]byte, base)
	object(3, base, nil, zeros)
	name := sha1.Sum(append([]byte(fmt.Sprintf("blob %d\x00", base)), zeros...)) //nolint:gosec // git's name of the file
	for i := range files {
		copies := size / base
		number := fmt.Sprintf("%08d", i)
		delta := binary.AppendUvarint(binary.AppendUvarint(nil, base), uint64(copies*base+len(number)))
		delta = append(delta, bytes.Repeat([]byte{0xc0, base >> 16}, copies)...) // each copies the whole base
		delta = append(append(delta, byte(len(number))), number...)
		object(7, len(delta), name[:], delta)
	}
	sum := sha1.Sum(pack.Bytes()) //nolint:gosec // git's checksum
	return append(pack.Bytes(), sum[:]...)
}

// TestLimits has a program write more than it may.
func TestLimits(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such limits")
	}
	path := filepath.Join(t.TempDir(), "file")
	command := limited(maxWork, maxMemory, 1<<20, []string{"sh", "-c", `LC_ALL=C dd if=/dev/zero of="$1" bs=65536 count=100`, "sh", path})
	_, err := execute(t.Context(), world.World{}.Environ(), nil, nil, (*exec.Cmd).Run, command)
	info, statErr := os.Stat(path)
	if err == nil || statErr != nil || info.Size() != 1<<20 {
		t.Fatalf("%v; %v; %v", info, err, statErr)
	}
	if !says(err, words("File too large")) { // and was not killed without a word
		t.Errorf("%v", err)
	}
}

func objectsIn(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command("git", "cat-file", "--batch-check", "--batch-all-objects")
	cmd.Env = append(os.Environ(), "GIT_DIR="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func diskUse(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHugeCommit: git holds a commit in memory, also one that takes a thousandth
// of it on the way.
//
// Promise: Cost
func TestHugeCommit(t *testing.T) {
	long(t)
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "one"})
	path := filepath.Join(t.TempDir(), "commit")
	text := repo.Git("cat-file", "commit", "refs/heads/main") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 9<<20); err != nil {
		t.Fatal(err)
	}
	repo.Git("update-ref", "refs/heads/main", repo.Git("-c", "core.compression=1", "hash-object", "-t", "commit", "--literally", "-w", path))
	r := newTestRun(t, nil)
	r.maxObject = 8 << 20
	_, err := read(t, r, place{repository: gittest.HTTP(t, repo, gittest.HTTPOptions{}).URL, path: "a"})
	openMistakes(t, "a large object").Error(t, "a commit", err)
}
