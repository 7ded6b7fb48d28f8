package git

import (
	"bufio"
	"bytes"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// Promise: Secrets in text
func TestRepositoryAddresses(t *testing.T) {
	for text, want := range map[string]string{ // :: address → protocol, address for git, URL for credentials
		"https://git.example.com/a/b.git":         "https https://git.example.com/a/b.git https://git.example.com/a/b.git",
		"HTTPS://git.example.com/a":               "https https://git.example.com/a https://git.example.com/a",
		"https://alice@git.example.com/a":         "https https://alice@git.example.com/a https://alice@git.example.com/a",
		"https://a%40b.example@git.example.com/a": "https https://a%40b.example@git.example.com/a https://a%40b.example@git.example.com/a",
		"http://127.0.0.1:3000/a":                 "http http://127.0.0.1:3000/a http://127.0.0.1:3000/a",
		"https://[::1]:3000/a":                    "https https://[::1]:3000/a https://[::1]:3000/a",
		"https://git.example.com/My%20P/_git/x":   "https https://git.example.com/My%20P/_git/x https://git.example.com/My%20P/_git/x",
		"ssh://git@git.example.com:2222/a":        "ssh ssh://git@git.example.com:2222/a ssh://git@git.example.com:2222/a",
		"ssh://git.example.com/~me/a":             "ssh ssh://git.example.com/~me/a ssh://git.example.com/~me/a",
		"git@git.example.com:a/b.git":             "ssh git@git.example.com:a/b.git ssh://git@git.example.com/a/b.git",
		"git@git.example.com:/a/b.git":            "ssh git@git.example.com:/a/b.git ssh://git@git.example.com/a/b.git",
		"git.example.com:a":                       "ssh git.example.com:a ssh://git.example.com/a",
		"git@[::1]:a":                             "ssh git@[::1]:a ssh://git@[::1]/a",
		// The short form has no place for a port: this is a folder.
		"git@git.example.com:2222/a/b.git": "ssh git@git.example.com:2222/a/b.git ssh://git@git.example.com/2222/a/b.git",
		"file:///srv/git/a.git":            "file file:///srv/git/a.git ",
		"file:///C:/git/a.git":             "file file:///C:/git/a.git ",
		"/srv/git/a b%.git":                "file file:///srv/git/a%20b%25.git ",

		"":                                   "",
		"a":                                  "",
		"./a":                                "",
		"../a":                               "",
		"a/b:c":                              "",
		"C:/git/a":                           "",
		`C:\git\a`:                           "",
		"--upload-pack=touch x":              "",
		"-oProxyCommand=x":                   "",
		"ext::sh -c x":                       "",
		"fd::3":                              "",
		"https::https://git.example.com/a":   "",
		"::x":                                "",
		"git://git.example.com/a":            "",
		"ftp://git.example.com/a":            "",
		"ssh://-oProxyCommand=x/a":           "",
		"ssh://-l@git.example.com/a":         "",
		"-l@git.example.com:a":               "",
		"git@-oProxyCommand=x:a":             "",
		"git@git.example.com:-a":             "",
		"https:///a":                         "",
		"https://git.example.com":            "",
		"https://git.example.com/":           "",
		"https:git.example.com/a":            "",
		"https://git.example.com:/a":         "",
		"https://git.example.com:0/a":        "",
		"https://git.example.com:99999/a":    "",
		"https://git.example.com:x/a":        "",
		"https://git.example.com/a?token=x":  "",
		"https://git.example.com/a?":         "",
		"https://git.example.com/a#x":        "",
		"https://git.example.com/a#":         "",
		"https://git%2eexample.com/a":        "",
		"https://git.example.com%00.evil/a":  "",
		`https://git.example.com\.evil/a`:    "",
		`https://git.example.com\@evil/a`:    "",
		"https://gіt.example.com/a":          "", // a Cyrillic letter
		"https://git.example.com/a\nb":       "",
		"https://git.example.com/a\x7f":      "",
		"https://git.example.com@evil@x/a":   "",
		"ssh://[fe80::1%25eth0]/a":           "",
		"file://server/share/a":              "",
		"file://user@/a":                     "",
		"file:a":                             "",
		"https://alice:pw@git.example.com/a": "",
		"https://alice:@git.example.com/a":   "",
		"https://:pw@git.example.com/a":      "",
		"ssh://git:pw@git.example.com/a":     "",
		"git:pw@git.example.com:a":           "",
		"https://ghp_16C7e42F292c6912E7710c838347Ae178B4a@github.com/a":      "",
		"https://github_pat_11ABC@github.com/a":                              "",
		"https://glpat-abc@gitlab.com/a":                                     "",
		"https://0123456789abcdef0123456789abcdef01234567@git.example.com/a": "",
		"ssh://ghp_16C7e42F292c6912E7710c838347Ae178B4a@github.com/a":        "",
	} {
		got, err := parseRepository(text)
		if want == "" {
			if err == nil {
				t.Errorf("%q: accepted as %+v", text, got)
			}
			if err != nil && strings.Contains(err.Error(), "pw") {
				t.Errorf("%q: the error repeats it: %v", text, err)
			}
			continue
		}
		u := ""
		if got.url != nil {
			u = got.url.String()
		}
		if line := got.protocol + " " + got.address + " " + u; err != nil || line != want {
			t.Errorf("%q: got %q, %v; want %q", text, line, err, want)
		}
	}
}

// What is wrong with an address is said.
func TestAdviceOnAddresses(t *testing.T) {
	t.Parallel()
	says := openMistakes(t, "addresses")
	for _, text := range []string{
		"https://git.example.com/a.git//network",
		"https://git.example.com/<GROUP>/a.git",
		"https://git.example.com/a.git?ref=main",
		"ssh://git@git.example.com:acme/infra.git",
		"git::https://git.example.com/a.git",
		"infra",
		"https://git.example.com:443//acme/infra/x",
	} {
		_, err := parseRepository(text)
		says.Error(t, text, err)
	}
	for address, want := range map[string]string{
		"https://github.com/acme/infra/tree/main/network":     " /tree/",
		"https://gitlab.com/acme/infra/-/blob/main/s.tfstate": " /-/blob/",
		"https://gitea.example.com/a/b/src/branch/main/s":     " /src/branch/",
		"https://git.example.com/acme/treehouse.git":          "",
	} {
		if got := (remote{address: address}).ofPage(); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: got %q, want %s", address, got, want)
		}
	}
}

// TestNoProgramIsRun gives git every chance to run a program of the address,
// with a configuration that allows all transports.
//
// Promise: Commands
func TestNoProgramIsRun(t *testing.T) {
	t.Parallel()
	r := newTestRun(t, nil)
	r.environ = append(r.environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.ext.allow", "GIT_CONFIG_VALUE_0=always")
	for _, address := range []string{"ext::sh -c 'exit 0'", "--upload-pack=true", "fd::3", "ssh://-oProxyCommand=true/x",
		"git://127.0.0.1/x"} {
		_, err := read(t, r, place{repository: address, path: "x"})
		mustFail(t, err, "data.git.repository: ")
	}
}

// insteadOf is the user's own configuration, in an environment variable.
func insteadOf(r *run, from, to string) {
	r.environ = append(r.environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+to+".insteadOf", "GIT_CONFIG_VALUE_0="+from)
}

func TestInsteadOf(t *testing.T) {
	long(t)
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "state"})
	t.Run("https to file", func(t *testing.T) {
		r := newTestRun(t, nil)
		insteadOf(r, "https://git.example.invalid/a", repo.FileURL())
		_, err := read(t, r, place{repository: "https://git.example.invalid/a", path: "s"})
		mustFail(t, err, "not allowed")
	})
	t.Run("elsewhere, with credentials of the environment", func(t *testing.T) {
		other := gittest.HTTP(t, repo, gittest.HTTPOptions{})
		r := newTestRun(t, vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary}, vars{"url": "http://127.0.0.1:1/"})
		insteadOf(r, "http://127.0.0.1:1/", other.Origin+"/")
		mustRead(t, r, place{repository: "http://127.0.0.1:1/a", path: "s"}, "state")
		if got := other.Authorizations(); len(got) > 0 {
			t.Errorf("the other server got %q", got)
		}
	})
	t.Run("https to ext", func(t *testing.T) {
		r := newTestRun(t, nil)
		insteadOf(r, "https://git.example.invalid/a", "ext::sh -c 'exit 0'")
		_, err := read(t, r, place{repository: "https://git.example.invalid/a", path: "s"})
		mustFail(t, err, "not allowed")
	})
	t.Run("https to ssh", func(t *testing.T) {
		server := gittest.SSH(t, repo)
		r := newTestRun(t, nil)
		insteadOf(r, "https://git.example.invalid/", "ssh://git@"+server.Host+":"+server.Port+"/")
		r.environ = append(r.environ, "GIT_SSH_COMMAND="+server.Command(server.KnownHosts)+" -i '"+server.KeyFile+"'")
		mustRead(t, r, place{repository: "https://git.example.invalid/a", path: "s"}, "state")
	})
	t.Run("file to https", func(t *testing.T) {
		r := newTestRun(t, nil)
		insteadOf(r, repo.FileURL(), "https://git.example.invalid/a")
		_, err := read(t, r, place{repository: repo.FileURL(), path: "s"})
		mustFail(t, err, "not allowed")
	})
}

// TestRefFormat compares our rules with git's own.
func TestRefFormat(t *testing.T) {
	for _, name := range refSeeds {
		if name == "" || name == "HEAD" || objectID.MatchString(name) || !utf8.ValidString(name) {
			continue
		}
		full := name
		if !strings.HasPrefix(name, "refs/") {
			full = "refs/heads/" + name
		}
		git := exec.Command("git", "check-ref-format", full).Run()
		_, ours := parseRef(name)
		if ours == nil && git != nil {
			t.Errorf("%q: accepted, but git refuses it", name)
		}
		if ours != nil && git == nil && name != "@" && !strings.HasPrefix(name, "-") {
			t.Errorf("%q: refused (%v), but git accepts it", name, ours)
		}
	}
}

func TestUppercaseIDIsTheSameCommit(t *testing.T) {
	upper, err := parseRef(strings.Repeat("AB", 20))
	if err != nil || upper.name != strings.Repeat("ab", 20) || upper.candidates[0] != upper.name {
		t.Errorf("%+v, %v", upper, err)
	}
}

var refSeeds = []string{
	"", "HEAD", "main", "feature/x", "v1.2.0", "refs/heads/main", "refs/pull/7/head", "locks/a/b.tfstate", "grüße",
	strings.Repeat("a", 40), strings.Repeat("B", 64), strings.Repeat("a", 41),
	"a*", "refs/heads/*", "a:b", "a b", "a~1", "a^", "a?", "a[", `a\b`, "-a", "@", "a@{1}", "a@b", "a..b", "a.", "a/.b", ".a",
	"a.lock", "a.lock/b", "a.locks", "/a", "a/", "a//b", "a\x00", "a\n", "a\x7f", "+a", "refs/", "refs", "{}", "a/@", "\xff",
}

func FuzzRef(f *testing.F) {
	for _, s := range refSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseRef(text)
		if err != nil {
			return
		}
		for _, c := range got.candidates {
			if c != "HEAD" && !objectID.MatchString(c) && !strings.HasPrefix(c, "refs/") {
				t.Errorf("%q: a short name reaches git: %q", text, c)
			}
			if strings.ContainsAny(c, ":*^~?[\\ \n\x00") || strings.Contains(c, "..") {
				t.Errorf("%q: %q is not one name", text, c)
			}
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"", ".", "/", "a", "a/b", "../a", "a/../b", "a/../../b", "./a", "a//b", "a/", "*", "a\x00b", "..", "...",
		"a\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := CleanPath(text)
		if err != nil {
			return
		}
		for part := range strings.SplitSeq(got, "/") {
			if part == "" || part == "." || part == ".." {
				t.Errorf("%q: %q", text, got)
			}
		}
	})
}

func FuzzRepository(f *testing.F) {
	for _, s := range []string{
		"https://git.example.com/a", "https://u@h/a", "https://u:p@h/a", "ssh://git@h:22/a", "git@h:a", "git@[::1]:a", "h:1/a", "file:///a", "/a",
		"ext::x", "a::b", "-x", "ssh://-x/a", "u:p@h:a", "https://h\\@e/a", "https://h/a?b#c", "C:/x", "[h]:a", "@h:a", "0@[0]:0",
		"https://[::1]:1/a",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseRepository(text)
		if err != nil {
			if len(text) > 30 && strings.Contains(err.Error(), text) {
				t.Errorf("the error repeats %q", text)
			}
			return
		}
		if strings.HasPrefix(got.address, "-") || strings.ContainsFunc(got.address, unicode.IsControl) || remoteHelper.MatchString(got.address) {
			t.Errorf("%q: %q reaches git", text, got.address)
		}
		if (got.url == nil) != (got.protocol == "file") || allowedProtocols[got.protocol] == "" {
			t.Errorf("%q: %+v", text, got)
		}
		if got.url == nil {
			return
		}
		if _, has := got.url.User.Password(); has || strings.HasPrefix(got.url.Hostname(), "-") || got.url.Hostname() == "" {
			t.Errorf("%q: %v", text, got.url)
		}
		if again, err := url.Parse(got.url.String()); err != nil || again.Host != got.url.Host {
			t.Errorf("%q: read again, the host is %v, %v", text, again, err)
		}
	})
}

func FuzzListing(f *testing.F) {
	id := strings.Repeat("0a", 20)
	for _, s := range []string{
		"", "100644 blob " + id + "\ta\x00", "040000 tree " + id + "\ta\x00100644 blob " + id + "\ta/b\x00", "100644 blob " + id + "\ta",
		"x", "\x00", "100644 blob\ta\x00", "160000 commit " + id + "\ta\tb\x00120000 blob " + id + "\tl\x00",
	} {
		f.Add([]byte(s), "a/b")
	}
	f.Fuzz(func(t *testing.T, listing []byte, name string) {
		if checkListing(listing) != nil {
			return
		}
		list := &tree{commit: id, listing: listing}
		e, err := list.resolve(name, false)
		if err == nil && (!objectID.MatchString(e.id) || len(e.mode) != 6) {
			t.Errorf("%q in %q: %+v", name, listing, e)
		}
		if _, missing := source.IsMissing(err); missing && strings.Contains(string(listing), id+"\t"+name+"\x00") {
			t.Errorf("%q is in %q, and is missing", name, listing)
		}
	})
}

func FuzzObjects(f *testing.F) {
	id := strings.Repeat("0a", 20)
	for _, s := range []string{"", id + " blob 3\nabc\n", id + " blob 0\n\n", id + " missing\n", id + " tree 3\nabc\n", id +
		" blob 99999999999999999999\n",
		id + " blob 9223372036854775807\n", id + " blob -1\n\n", id + " blob 11\nhello world\n", id + " blob 3\nabcd"} {
		f.Add(s, int64(10))
	}
	f.Fuzz(func(t *testing.T, output string, limit int64) {
		limit = max(0, min(limit, 1<<16))
		blobs := map[string]blob{}
		if err := readObjects(strings.NewReader(output), map[string]int64{id: limit}, blobs); err != nil {
			return
		}
		b := blobs[id]
		if b.size <= limit && int64(len(b.data)) != b.size || b.size > limit && b.data != nil {
			t.Errorf("%q with limit %d: size %d, %d bytes", output, limit, b.size, len(b.data))
		}
	})
}

func FuzzLock(f *testing.F) {
	for _, s := range []string{"", lockJSON, "{\"Who\":\"::\\u001b##[::::\"}", "{\"ID\":\"" + strings.Repeat("\u00e9", 300) + "\"}",
		"100644 a.lock\x00" + strings.Repeat("\x01", 20)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if id := findInFolder(data, "a.lock"); id != "" && !objectID.MatchString(id) {
			t.Errorf("%q", id)
		}
		if _, _, folder, err := readObject(bufio.NewReader(bytes.NewReader(data)), "tree", func(string) int64 { return 1 << 20 }); err == nil &&
			len(folder.data) > len(data) {
			t.Errorf("%d bytes out of %d", len(folder.data), len(data))
		}
	})
}
