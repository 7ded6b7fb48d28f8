package main

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
)

// TestAccWeek plays the guide with two people, each with a home, a clone and a key: over a server,
// where it prints what that says, and in a file that both reach.
func TestAccWeek(t *testing.T) {
	t.Parallel()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests are skipped unless TF_ACC is set")
	}
	provider := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", provider+"/", "../..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	guide := read(t, theWeek)
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		s := newHTTPStore(t, "")
		s.tells = true
		var down atomic.Bool
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			switch sealed := bytes.Contains(body, []byte(`"encrypted_data"`)); {
			case down.Load():
				w.WriteHeader(http.StatusBadGateway)
			case r.Method == http.MethodPost && !sealed:
				t.Errorf("the server gets %s", body)
			default:
				s.ServeHTTP(w, r)
			}
		}))
		t.Cleanup(front.Close)
		w := newWeek(t, provider)
		w.server, w.goes = front.URL, down.Store
		switch printed := w.play(t, guide, ""); {
		case os.Getenv("STATECRYPT_GOLDENS") != "":
			write(t, absolute(t, theWeek), printed)
		case printed != guide:
			t.Errorf("the guide prints something else:\n%s", printed)
		}
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		w := newWeek(t, provider)
		folder := w.in("states")
		w.goes = func(away bool) {
			from, to := folder, folder+".away"
			if !away {
				from, to = to, from
			}
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		w.make(t, folder)
		_ = w.play(t, guide, "backend \"file\" {\n  path = \""+folder+"/net.tfstate\"\n}\n")
		testkit.OpenGolden(t, "testdata/week.txt", "", canary).Check(t, "in a file", w.said.String())
	})
}

// week is what the people share.
type week struct {
	root    string
	server  string // its address, "" if there is none
	cli     string // what it is called
	environ []string
	goes    func(away bool) // the store

	waiting *session        // that someone has to answer, nil if there is none
	said    strings.Builder // by everybody and everything
}

func newWeek(t *testing.T, provider string) *week {
	t.Helper()
	path := cmp.Or(os.Getenv("TF_ACC_TERRAFORM_PATH"), "terraform")
	path, err := exec.LookPath(path)
	if err != nil {
		t.Skip(err)
	}
	w := &week{root: t.TempDir(), cli: "terraform"}
	host := "registry.terraform.io"
	if strings.Contains(filepath.Base(path), "tofu") {
		w.cli, host = "tofu", "registry.opentofu.org"
	}
	w.make(t, w.in("bin"))
	for name, to := range map[string]string{w.cli: absolute(t, path), "statecrypt": built(t)} {
		if err := os.Symlink(to, w.in("bin/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	settings := write(t, w.in("cli.tfrc"), "provider_installation {\n  dev_overrides {\n    \""+host+"/statecrypt/statecrypt\" = \""+
		provider+"\"\n  }\n  direct {}\n}\n")
	w.environ = append(world.World{}.Environ().Pairs(), "TF_CLI_CONFIG_FILE="+settings, "TF_CLI_ARGS=-no-color", "CHECKPOINT_DISABLE=1",
		"PATH="+w.in("bin")+":"+os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "STATECRYPT_CONFIG=keys.hcl", "NO_COLOR=1",
		"TMPDIR="+t.TempDir(),
		"TF_VAR_state_password="+canary)
	return w
}

func (w *week) in(name string) string { return filepath.Join(w.root, name) }

func (w *week) make(t *testing.T, folder string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
}

// begin is what was there before Monday.
func (w *week) begin(t *testing.T, backend string) {
	t.Helper()
	const examples = "../../examples/guides/a-week-with-wrap/"
	keys := read(t, examples+"keys.hcl")
	if before, after, ok := strings.Cut(keys, "\n}\n"); ok && strings.HasPrefix(before, `backend "http" {`) {
		keys = cmp.Or(backend, before+"\n}\n") + after
	} else {
		t.Fatalf("%s does not begin with its backend", keys)
	}
	git := "[user]\nname = u\nemail = u@example.com\n[init]\ndefaultBranch = main\n[url \"" + w.in("net.git") +
		"\"]\ninsteadOf = git@git.example.com:acme/net.git\n"
	alices, alice := identity(t, "x25519.key")
	bobs, bob := identity(t, "ssh_ed25519")
	_, carol := identity(t, "other.key")
	for who, key := range map[string]string{"Alice": alices, "Bob": bobs} {
		w.make(t, w.home(who))
		write(t, filepath.Join(w.home(who), "key.txt"), read(t, key))
		write(t, filepath.Join(w.home(who), ".gitconfig"), git)
	}
	module := filepath.Join(w.home("Alice"), "net")
	w.make(t, module)
	write(t, filepath.Join(module, "main.tf"), read(t, examples+"main.tf"))
	write(t, filepath.Join(module, ".gitignore"), ".terraform/\n*.tfstate*\ntfplan\n")
	w.mustRun(t, "Alice", "git init -q --bare ~/../../net.git\ngit init -q .\ngit add .\ngit commit -q -m 'A network'\n"+
		"git remote add origin git@git.example.com:acme/net.git\ngit push -q -u origin main\nterraform init\nterraform apply -auto-approve")
	write(t, filepath.Join(module, "team.txt"), alice+"\n"+bob+"\n"+carol+"\n")
	write(t, filepath.Join(module, "keys.hcl"), strings.ReplaceAll(keys, stateURL, cmp.Or(w.server, stateURL)))
	write(t, filepath.Join(module, "backend.tf"), read(t, examples+"backend.tf"))
	app := filepath.Join(w.home("Alice"), "app")
	w.make(t, app)
	reader := strings.ReplaceAll(read(t, examples+"app/main.tf"), stateURL, cmp.Or(w.server, stateURL))
	if backend != "" {
		reader = regexp.MustCompile(`(?s)  credentials \{.*?\n  \}\n`).ReplaceAllString(reader, "")
		file := "  file {\n    path = \"" + w.in("states/net.tfstate") + "\"\n  }\n"
		reader = regexp.MustCompile(`(?s)  http \{.*?\n  \}\n`).ReplaceAllString(reader, file)
	}
	write(t, filepath.Join(app, "main.tf"), reader)
}

const stateURL = "https://states.example.com"

func (w *week) home(who string) string { return w.in("home/" + strings.ToLower(who)) }

// play does what a guide says, and returns the guide with what that prints.
func (w *week) play(t *testing.T, guide, backend string) string {
	t.Helper()
	w.begin(t, backend)
	var day, ran, printed string
	return fences(guide, func(before, language, text string) string {
		for _, heading := range headings.FindAllStringSubmatch(before, -1) {
			day = heading[1]
		}
		if language != "console" && printed != "" {
			t.Errorf("%s: the guide does not say that this is printed:\n%s", day, printed)
		}
		switch who, commands, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n"); {
		case language == "console":
			text, printed = printed, ""
		case language == "sh":
			if ran = commands; strings.Contains(ran, "statecrypt recover") {
				w.goes(false)
			}
			printed = w.run(t, who, ran)
		case language == "text" && w.waiting != nil:
			if strings.HasPrefix(day, "Thursday") && !strings.Contains(ran, "statecrypt recover") {
				w.goes(true)
			}
			_, _ = w.waiting.outer.WriteString(text)
			printed = strings.TrimPrefix(w.show(t, w.waiting), text) // the terminal's echo
		case language == "terraform" && strings.HasPrefix(day, "The way back"):
			write(t, filepath.Join(w.home("Alice"), "net", "backend.tf"), text)
		}
		if slices.Contains([]string{"sh", "text", "console"}, language) {
			w.said.WriteString(text)
		}
		return text
	})
}

var headings = regexp.MustCompile(`(?m)^## (.*)$`)

// fences replaces the blocks of a guide. Each gets the text between it and the one before.
func fences(guide string, replace func(before, language, text string) string) string {
	var b strings.Builder
	last := 0
	for _, at := range fence.FindAllStringSubmatchIndex(guide, -1) {
		before, language := guide[last:at[0]], guide[at[2]:at[3]]
		b.WriteString(before + "```" + language + "\n" + replace(before, language, guide[at[4]:at[5]]) + "```")
		last = at[1]
	}
	return b.String() + guide[last:]
}

// session is a shell at a terminal.
type session struct {
	who, commands string
	cmd           *exec.Cmd
	outer         *os.File
	printed       chan []byte // closed at its end
}

// run begins a shell, and returns what it prints until it ends, or asks something.
func (w *week) run(t *testing.T, who, commands string) string {
	t.Helper()
	if w.waiting != nil && w.waiting.who == who {
		t.Fatalf("%s is still asked", who)
	}
	outer, inner := clitest.Terminal(t)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(commands, "terraform ", w.cli+" "))
	cmd.Dir = filepath.Join(w.home(who), "net")
	if _, err := os.Stat(cmd.Dir); err != nil {
		cmd.Dir = w.home(who)
	}
	cmd.Env = append(slices.Clone(w.environ), "HOME="+w.home(who))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inner, inner, inner
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = inner.Close()
	s := &session{who, commands, cmd, outer, make(chan []byte)}
	go func() {
		defer close(s.printed)
		for {
			buffer := make([]byte, 4096)
			n, err := outer.Read(buffer)
			if n > 0 {
				s.printed <- buffer[:n]
			}
			if err != nil { // nobody has the inner end any more
				return
			}
		}
	}()
	return w.show(t, s)
}

// show is what a session prints until it ends, or asks something.
func (w *week) show(t *testing.T, s *session) string {
	t.Helper()
	var all bytes.Buffer
	if w.waiting == s {
		w.waiting = nil
	}
	for chunk := range s.printed {
		all.Write(chunk)
		if asks.Match(all.Bytes()) {
			w.waiting = s
			return w.telling(s.commands, all.String())
		}
	}
	t.Logf("%s: %s%s", s.who, s.commands, all.Bytes())
	err := s.cmd.Wait()
	if s.cmd.ProcessState == nil {
		t.Fatal(err)
	}
	text := w.telling(s.commands, all.String())
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		text += "exit code " + strconv.Itoa(code) + "\n"
	}
	return text
}

var asks = regexp.MustCompile(`(Enter a value|Answer yes or no): $`)

// telling is what the guide shows: of what a CLI prints, the lines that matter, without what each
// run has of its own.
func (w *week) telling(commands, printed string) string {
	replace := strings.NewReplacer("\r", "", w.in("home"), "/home", w.in("states"), "/states", cmp.Or(w.server, stateURL), stateURL,
		"OpenTofu", "Terraform", w.cli+" ", "terraform ")
	var b strings.Builder
	ours := false
	for line := range strings.Lines(replace.Replace(printed)) {
		for _, own := range owns {
			line = own.pattern.ReplaceAllString(line, own.name)
		}
		line = strings.TrimRight(strings.TrimLeft(line, "│╷╵"), " \n")
		ours = strings.HasPrefix(line, "statecrypt: ") || ours && strings.HasPrefix(line, "  ")
		if line != "" && (ours || !strings.Contains(commands, "terraform ") || matters.MatchString(line)) {
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	return b.String()
}

var matters = regexp.MustCompile(`^ ?(Plan: |No changes\.|Apply complete! |Error: |Terraform has been successfully |` +
	`Successfully configured |  Enter a value:|  \+ cidr )`)

var owns = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[A-Z2-7]{26}\b`), "ID"},
	{regexp.MustCompile(`"[^" @]+@[^" ]+" (has |had |held |holds )`), `"bob@laptop" $1`},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ][0-9:.]+(Z| \+0000 UTC)`), "09:30"},
	{regexp.MustCompile(`\((?:less than a|\d+) (?:minute|hour|day)s? ago\)`), "(12 minutes ago)"},
}

func (w *week) mustRun(t *testing.T, who, commands string) {
	t.Helper()
	if printed := w.run(t, who, commands); w.waiting != nil || strings.Contains(printed, "exit code") {
		t.Fatal(printed)
	}
}
