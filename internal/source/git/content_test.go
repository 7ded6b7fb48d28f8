package git

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

func TestRefs(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	state := func(text string) gittest.File { return gittest.File{Path: "s", Data: text} }
	old := repo.Commit("refs/heads/main", state("old"))
	tip := repo.Commit("refs/heads/main", state("tip"))
	both := repo.Commit("refs/heads/both", state("branch"))
	tagged := repo.Commit("refs/heads/tmp", state("tagged"))
	repo.Git("tag", "light", tagged)
	repo.Git("tag", "-a", "-m", "x", "annotated", tagged)
	repo.Git("tag", "both", tagged)
	repo.Git("tag", "a-tree", tagged+"^{tree}")
	repo.Git("tag", "a-blob", tagged+":s")
	repo.Git("tag", "-a", "-m", "x", "annotated-tree", tagged+"^{tree}")
	pull := repo.Commit("refs/pull/7/head", state("pull"))
	lock := repo.Commit("refs/heads/locks/a/b.tfstate", state("lock"))
	head := repo.Commit("refs/heads/trunk", state("head"))
	repo.Git("symbolic-ref", "HEAD", "refs/heads/trunk")
	empty := gittest.NewRepo(t, gittest.RepoOptions{})

	says := openMistakes(t, "refs")
	for name, c := range map[string]struct {
		ref, want, commit string
		fails             bool
	}{
		"branch":                 {ref: "main", want: "tip", commit: tip},
		"full branch":            {ref: "refs/heads/main", want: "tip", commit: tip},
		"annotated tag":          {ref: "annotated", want: "tagged", commit: tagged},
		"lightweight tag":        {ref: "light", want: "tagged", commit: tagged},
		"tag of a tree":          {ref: "a-tree", fails: true},
		"tag of a blob":          {ref: "a-blob", fails: true},
		"annotated tag of tree":  {ref: "annotated-tree", fails: true},
		"pull request":           {ref: "refs/pull/7/head", want: "pull", commit: pull},
		"HEAD":                   {ref: "HEAD", want: "head", commit: head},
		"absent":                 {ref: "", want: "head", commit: head},
		"full non-tip id":        {ref: old, want: "old", commit: old},
		"uppercase id":           {ref: strings.ToUpper(old), want: "old", commit: old},
		"missing":                {ref: "none", fails: true},
		"misspelt":               {ref: "mian", fails: true},
		"missing full":           {ref: "refs/heads/none", fails: true},
		"misspelt full":          {ref: "refs/heads/mian", fails: true},
		"missing, of no branch":  {ref: "refs/pull/8/head", fails: true},
		"missing id":             {ref: strings.Repeat("ab", 20), fails: true},
		"abbreviated id":         {ref: old[:10], fails: true},
		"64 digits against SHA1": {ref: strings.Repeat("ab", 32), fails: true},
		"tag and branch":         {ref: "both", want: "branch", commit: both},
		"the tag of the two":     {ref: "refs/tags/both", want: "tagged", commit: tagged},
		"lock branch":            {ref: "locks/a/b.tfstate", want: "lock", commit: lock},
		"wildcard":               {ref: "refs/heads/*", fails: true},
		"colon":                  {ref: "main:refs/heads/x", fails: true},
		"leading dash":           {ref: "-main", fails: true},
		"leading plus":           {ref: "+main", fails: true},
		"leading caret":          {ref: "^main", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := place{repository: repo.FileURL(), ref: c.ref, path: "s"}
			if c.fails {
				_, err := read(t, newTestRun(t, nil), p)
				says.Error(t, name, err)
				mustNotBeMissing(t, err)
				return
			}
			if s := mustRead(t, newTestRun(t, nil), p, c.want); s.Revision != c.commit {
				t.Errorf("revision %s, want %s", s.Revision, c.commit)
			}
		})
	}
	t.Run("empty repository", func(t *testing.T) {
		_, err := read(t, newTestRun(t, nil), place{repository: empty.FileURL(), path: "s"})
		says.Error(t, "an empty repository, HEAD", err)
		_, err = read(t, newTestRun(t, nil), place{repository: empty.FileURL(), ref: "main", path: "s"})
		says.Error(t, "an empty repository", err)
		mustNotBeMissing(t, err)
	})
}

func mustNotBeMissing(t *testing.T, err error) {
	t.Helper()
	if _, ok := source.IsMissing(err); ok {
		t.Errorf("a MissingError, which says that there is no state: %v", err)
	}
}

const (
	composed   = "caf\u00e9/\u00fc.tfstate"
	decomposed = "nai\u0308ve/o\u0308.tfstate"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	sub := repo.Commit("refs/heads/sub", gittest.File{Path: "x", Data: "x"})
	file := func(path string) gittest.File { return gittest.File{Path: path, Data: "content of " + path} }
	link := func(path, to string) gittest.File { return gittest.File{Path: path, Data: to, Mode: "120000"} }
	repo.Commit("refs/heads/main",
		file("plain"), file("envs/dev/a.tfstate"), file("*.tfstate"), file("x.tfstate"), file("-dash"), file(":(glob)*"),
		file(`it's "quoted" \ here`), file("grüße 日本/état.tfstate"), file("new\nline"), file("tab\there"), file("here"), file("Case"),
		file(composed), file(decomposed),
		gittest.File{Path: "exec", Data: "content of exec", Mode: "100755"},
		gittest.File{Path: "empty"},
		gittest.File{Path: "lfs", Data: "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"},
		gittest.File{Path: "sub/module", Data: sub, Mode: "160000"},
		link("rel", "envs/dev/a.tfstate"), link("abs", "/etc/\x1b[31mpasswd"), link("dir", "envs/dev"),
	)
	runs := []*run{newTestRun(t, nil)}
	if runtime.GOOS != "windows" {
		runs = append(runs, newWalkingRun(t))
	}

	says := openMistakes(t, "paths")
	for name, c := range testkit.Some(map[string]struct {
		path, want string
		missing    bool
		fails      bool
	}{
		"plain":                 {path: "plain", want: "content of plain"},
		"executable":            {path: "exec", want: "content of exec"},
		"missing":               {path: "envs/none", missing: true},
		"directory":             {path: "envs/dev", fails: true},
		"trailing slash of dir": {path: "envs/dev/", fails: true},
		"symlink rel":           {path: "rel", fails: true},
		"symlink abs":           {path: "abs", fails: true},
		"below symlink":         {path: "dir/a.tfstate", fails: true},
		"star is literal":       {path: "*.tfstate", want: "content of *.tfstate"},
		"magic is literal":      {path: ":(glob)*", want: "content of :(glob)*"},
		"pattern of none":       {path: "envs/*/a.tfstate", missing: true},
		"leading dash":          {path: "-dash", want: "content of -dash"},
		"quotes and spaces":     {path: `it's "quoted" \ here`, want: `content of it's "quoted" \ here`},
		"UTF-8":                 {path: "grüße 日本/état.tfstate", want: "content of grüße 日本/état.tfstate"},
		"NFC":                   {path: composed, want: "content of " + composed},
		"NFD":                   {path: decomposed, want: "content of " + decomposed},
		"newline":               {path: "new\nline", want: "content of new\nline"},
		"tab":                   {path: "tab\there", want: "content of tab\there"},
		"after a tab":           {path: "here", want: "content of here"},
		"up":                    {path: "../x", fails: true},
		"up in the middle":      {path: "envs/../../x", fails: true},
		"absolute":              {path: "/plain", fails: true},
		"empty":                 {path: "", fails: true},
		"dot":                   {path: "./", fails: true},
		"./x":                   {path: "./plain", want: "content of plain"},
		"a//b":                  {path: "envs//dev/./a.tfstate", want: "content of envs/dev/a.tfstate"},
		"a/../b":                {path: "envs/../plain", want: "content of plain"},
		"file as directory":     {path: "plain/x", missing: true},
		"empty file":            {path: "empty", want: ""},
		"LFS pointer":           {path: "lfs", fails: true},
		"gitlink":               {path: "sub/module", fails: true},
		"below gitlink":         {path: "sub/module/x", fails: true},
		"case differs":          {path: "case", missing: true},
	}) {
		t.Run(name, func(t *testing.T) {
			for i, r := range runs {
				how := ""
				if i > 0 {
					how = ", folder by folder"
				}
				s, err := read(t, r, place{repository: repo.FileURL(), ref: "main", path: c.path})
				switch m, isMissing := source.IsMissing(err); {
				case c.missing:
					if says.Error(t, name+how, err); !isMissing || m.CredentialsSent {
						t.Errorf("%v; want a MissingError without credentials", err)
					}
				case c.fails:
					says.Error(t, name+how, err)
					mustNotBeMissing(t, err)
				case err != nil || string(s.Data) != c.want:
					t.Errorf("%v, %v; want %q", s, err, c.want)
				}
			}
		})
	}
}

// Good and bad files leave together, some of them with the same content.
func TestDuplicatePathsInABatch(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main",
		gittest.File{Path: "a", Data: "same"}, gittest.File{Path: "b", Data: "same"}, gittest.File{Path: "c", Data: "other"},
		gittest.File{Path: "link", Data: "a", Mode: "120000"})
	r := newTestRun(t, nil)
	type result struct {
		path string
		s    *source.Snapshot
		err  error
	}
	results := make(chan result)
	paths := []string{"a", "a", "b", "c", "link", "none", "a"}
	for _, path := range paths {
		src, err := r.open(place{repository: repo.FileURL(), path: path}.request(t))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			s, err := src.Fetch(t.Context())
			results <- result{path, s, err}
		}()
	}
	want := map[string]string{"a": "same", "b": "same", "c": "other"}
	for range paths {
		got := <-results
		if text, good := want[got.path]; good {
			if got.err != nil || string(got.s.Data) != text {
				t.Errorf("%s: %v", got.path, got.err)
			} else {
				clear(got.s.Data)
			}
		} else if got.err == nil {
			t.Errorf("%s: no error", got.path)
		}
	}
}

// Promise: Cost
func TestMaxSize(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: strings.Repeat("x", 1000)}, gittest.File{Path: "t", Data: "t"})
	r := newTestRun(t, nil)
	_, err := read(t, r, place{repository: repo.FileURL(), path: "s", maxSize: 999})
	if err == nil || err.Error() != meter.TooLarge(999).Error() {
		t.Errorf("%v; want %v", err, meter.TooLarge(999))
	}
	mustRead(t, r, place{repository: repo.FileURL(), path: "s", maxSize: 1000}, strings.Repeat("x", 1000))
}

// TestAttributesDoNotApply: the bytes are those of the repository, whatever
// .gitattributes would make of them in a working tree.
func TestAttributesDoNotApply(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main",
		gittest.File{Path: ".gitattributes", Data: "*.tfstate text eol=crlf ident export-subst\nhidden.tfstate export-ignore\n"},
		gittest.File{Path: "s.tfstate", Data: "$Id$\n$Format:%H$\n"}, gittest.File{Path: "hidden.tfstate", Data: "hidden\n"})
	r := newTestRun(t, nil)
	mustRead(t, r, place{repository: repo.FileURL(), path: "s.tfstate"}, "$Id$\n$Format:%H$\n")
	mustRead(t, r, place{repository: repo.FileURL(), path: "hidden.tfstate"}, "hidden\n")
}

func TestLocalRepositories(t *testing.T) {
	long(t)
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "one"})
	tip := repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "two"})

	t.Run("absolute path", func(t *testing.T) {
		mustRead(t, newTestRun(t, nil), place{repository: repo.Dir, path: "s"}, "two")
	})
	t.Run("odd path", func(t *testing.T) {
		odd := filepath.Join(t.TempDir(), `a b"c%20#d\e`)
		if runtime.GOOS == "windows" {
			t.Skip("Windows has no such names")
		}
		if err := os.Symlink(repo.Dir, odd); err != nil {
			t.Skip(err)
		}
		mustRead(t, newTestRun(t, nil), place{repository: odd, path: "s"}, "two")
	})
	t.Run("shallow source", func(t *testing.T) {
		shallow := filepath.Join(t.TempDir(), "shallow")
		repo.Git("clone", "-q", "--depth=1", repo.FileURL(), shallow)
		if s := mustRead(t, newTestRun(t, nil), place{repository: "file://" + filepath.ToSlash(shallow), path: "s"}, "two"); s.Revision != tip {
			t.Errorf("revision %s", s.Revision)
		}
	})
	t.Run("foreign owner", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can give files away")
		}
		foreign := gittest.NewRepo(t, gittest.RepoOptions{})
		foreign.Commit("refs/heads/main", gittest.File{Path: "s", Data: "x"})
		if err := os.Chown(foreign.Dir, 12345, 12345); err != nil {
			t.Skip(err)
		}
		_, err := read(t, newTestRun(t, nil), place{repository: foreign.FileURL(), path: "s"})
		openMistakes(t, "folders of others").Error(t, "another owner", err)
	})
	t.Run("no repository", func(t *testing.T) {
		_, err := read(t, newTestRun(t, nil), place{repository: "file://" + filepath.ToSlash(t.TempDir()), path: "s"})
		openMistakes(t, "folders").Error(t, "no repository", err)
		mustNotBeMissing(t, err)
	})
}

func TestSHA256(t *testing.T) {
	long(t)
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{SHA256: true})
	first := repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "one"})
	repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "two"}, gittest.File{Path: "t", Data: "three"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	says := openMistakes(t, "SHA-256")
	for name, url := range map[string]string{"http": server.URL, "file": repo.FileURL()} {
		r := newTestRun(t, nil)
		if s := mustRead(t, r, place{repository: url, ref: "main", path: "s"}, "two"); len(s.Revision) != 64 {
			t.Errorf("revision %s", s.Revision)
		}
		mustRead(t, r, place{repository: url, ref: "main", path: "t"}, "three")
		mustRead(t, r, place{repository: url, ref: first, path: "s"}, "one")
		_, err := read(t, r, place{repository: url, ref: strings.Repeat("ab", 20), path: "s"})
		says.Error(t, "an id of SHA-1, "+name, err)
	}
}

func TestManyRefs(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	commit := repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "state"})
	var packed strings.Builder
	packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range 10_000 {
		fmt.Fprintf(&packed, "%s refs/heads/topic/%05d\n", commit, i)
	}
	if err := os.WriteFile(filepath.Join(repo.Dir, "packed-refs"), []byte(packed.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	mustRead(t, newTestRun(t, nil), place{repository: server.URL, ref: "main", path: "s"}, "state")
	if n := server.BytesDown(); n > 20_000 {
		t.Errorf("%d bytes down: the refs that nobody asked for came too", n)
	}
}
