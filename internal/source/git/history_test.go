package git

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// TestHistory: a branch has the same history on every server, whether its folders are fetched together or one by one.
func TestHistory(t *testing.T) {
	t.Parallel()
	for name, c := range testkit.Some(map[string]struct {
		repo   gittest.RepoOptions
		http   gittest.HTTPOptions
		walks  bool // the folders are fetched one by one
		config string
	}{
		"plain":                {},
		"walked":               {walks: true},
		"walked, v0":           {walks: true, http: gittest.HTTPOptions{ProtocolV0: true}},
		"walked, SHA-256":      {walks: true, repo: gittest.RepoOptions{SHA256: true}},
		"no filter":            {walks: true, repo: gittest.RepoOptions{NoFilter: true}},
		"no single objects":    {walks: true, repo: gittest.RepoOptions{NoObjectID: true}, http: gittest.HTTPOptions{ProtocolV0: true}},
		"neither":              {repo: gittest.RepoOptions{NoFilter: true, NoObjectID: true}, http: gittest.HTTPOptions{ProtocolV0: true}},
		"no filter of folders": {walks: true, config: "uploadpackfilter.tree.allow"},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, c.repo)
			if c.config != "" {
				repo.Git("config", c.config, "false")
			}
			repo.Commit("refs/heads/main", ballast()...)
			var script strings.Builder
			for i := range 130 {
				fmt.Fprintf(&script, "commit refs/heads/main\ncommitter Test <test@example.com> 1700000000 +0000\ndata 4\ntest\n")
				if i == 0 {
					script.WriteString("from refs/heads/main^0\n")
				}
				fmt.Fprintf(&script, "M 100644 inline a/b/s\ndata 7\ntext %02d\n\n", i/2)
			}
			repo.Import(script.String())
			want := strings.Fields(repo.Git("rev-list", "main"))
			server := gittest.HTTP(t, repo, c.http)
			where, err := parseRepository(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			r := newTestRun(t, nil)
			if c.walks {
				r = newWalkingRun(t)
			}
			v, err := (&Server{run: r, remote: where}).Visit(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			var last []Commit
			for _, n := range []int{3, 130} {
				var got []Commit
				complete := false
				if err := v.History(t.Context(), "refs/heads/main", "a/b/s", func(commits []Commit, all bool) bool {
					got, complete = commits, all
					return len(commits) >= n
				}); err != nil {
					t.Fatal(err)
				}
				if fetched := min(len(want), 100*(n/100*9+1)); len(got) != fetched || complete != (n == 130) {
					t.Fatalf("%d commits, %t", len(got), complete)
				}
				for i, commit := range got {
					isSame := i > 0 && commit.File == got[i-1].File
					if commit.ID != want[i] || isSame != (i%2 == 1) || (commit.File == "") != (i == 130) || commit.Author != "Test <test@example.com>" {
						t.Fatalf("commit %d is %+v, not %s", i, commit, want[i])
					}
				}
				last = got
			}
			sizes, err := v.FetchFiles(t.Context(), []string{last[0].File, last[100].File}, 7)
			if err != nil || sizes[last[0].File] != 7 || sizes[last[100].File] != 7 {
				t.Errorf("the sizes are %v, %v", sizes, err)
			}
			if file, err := v.File(t.Context(), last[100].File, 7); err != nil || string(file) != "text 14" {
				t.Errorf("got %s, %v", file, err)
			}
			if name == "walked" {
				all, err := v.d.output(t.Context(), 1<<20, "cat-file", "--batch-all-objects", "--batch-check")
				if folders := strings.Count(string(all), " tree "); err != nil || folders > 3*130 {
					t.Errorf("%d folders were fetched, %v", folders, err)
				}
			}
		})
	}
}

// TestReadLog: damaged output of git is an error.
func TestReadLog(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a", 40)
	whole := "commit " + id + "\n" + id + " 1700000000\nA <b>\nsubject\n"
	for text, want := range map[string]int{
		"": 0, whole: 1, whole + whole: 2, whole + whole + whole: 2,
		whole[:len(whole)-9]: -1, whole + "x": -1, whole[3:]: -1, strings.Replace(whole, "commit "+id, "commit x", 1): -1,
		strings.Replace(whole, id+" 17", "x 17", 1): -1,
		strings.Replace(whole, " 17", " x17", 1):    1, // the time is unknown
	} {
		roots := map[string]string{}
		commits, err := readLog(strings.NewReader(text), 2, roots)
		if (err != nil) != (want < 0) || err == nil && len(commits) != want {
			t.Errorf("%q: %+v, %v", text, commits, err)
		}
	}
}
