package wrap_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// handDown opens the descriptors that a caller hands down to a program: the ends of a pipe under the
// first two numbers, as make does, and files that can be written under the others. It does not hand
// down those that the tests have been started with.
func handDown(t *testing.T, numbers ...int) (files []*os.File) {
	t.Helper()
	files = make([]*os.File, 1<<12)
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	for i, number := range numbers {
		var f *os.File
		var err error
		switch i {
		case 0, 1:
			f = os.NewFile(uintptr(ends[i]), "end")
		default:
			f, err = os.OpenFile(filepath.Join(t.TempDir(), strconv.Itoa(number)), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		files[number-3] = f
	}
	return files
}

// needDescriptors skips a test where nobody tells which descriptors a process has.
func needDescriptors(t *testing.T) {
	t.Helper()
	if descriptors() == "" {
		t.Skip("there is no /proc/self/fdinfo")
	}
}

// seen are descriptors by their numbers: the flags of each, and what it is.
func seen(t *testing.T, path string) map[int]string {
	t.Helper()
	all := map[int]string{}
	for line := range strings.Lines(read(t, path)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, err := strconv.Atoi(name)
		if err != nil {
			t.Fatal(line)
		}
		all[number] = rest
	}
	if len(all) < 3 {
		t.Fatalf("only these were seen: %v", all)
	}
	return all
}

// access is how a descriptor was opened: to read, to write, or both.
func access(t *testing.T, descriptor string) int64 {
	t.Helper()
	flags, err := strconv.ParseInt(strings.Fields(descriptor)[0], 8, 64)
	if err != nil {
		t.Fatal(err)
	}
	return flags & syscall.O_ACCMODE
}

// compare compares the descriptors of a program under wrap with those that it has without: they are the
// same, and above them, there is nothing that can be written.
func compare(t *testing.T, alone, wrapped map[int]string) (lent []int) {
	t.Helper()
	last := slices.Max(slices.Collect(maps.Keys(alone)))
	for _, number := range slices.Sorted(maps.Keys(wrapped)) {
		now := wrapped[number]
		was, same := alone[number]
		delete(alone, number)
		switch {
		case same && number < 3: // pipes of its own
			same = access(t, was) == access(t, now)
		case same:
			same = was == now
		case number > last && access(t, now) == syscall.O_RDONLY:
			lent, same = append(lent, number), true
		}
		if !same {
			t.Errorf("the descriptor %d is %q, and is %q without wrap", number, now, was)
		}
	}
	if len(alone) > 0 {
		t.Errorf("under wrap, these are missing: %v", alone)
	}
	return lent
}

// ends runs a program, with two pipes, and returns what it says.
func ends(t *testing.T, cmd *exec.Cmd) (code int, said string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String() + errs.String()
}

// TestDescriptors: the child has what the caller has handed down, under the same numbers, and what wrap
// lends it above that, from 900 on or as high as it can be.
//
// Promise: Runs under wrap
func TestDescriptors(t *testing.T) {
	t.Parallel()
	needDescriptors(t)
	for name, c := range map[string]struct {
		handed []int
		limit  string // of descriptors
		lent   []int
	}{
		"nothing":               {lent: []int{900, 901, 902, 903}},
		"a jobserver":           {handed: []int{3, 4}, lent: []int{900, 901, 902, 903}},
		"a jobserver elsewhere": {handed: []int{4, 3}, lent: []int{900, 901, 902, 903}},
		"gaps":                  {handed: []int{5, 9, 13, 200, 899}, lent: []int{900, 901, 902, 903}},
		"all that are low": {
			handed: []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, lent: []int{900, 901, 902, 903},
		},
		"one of ours":       {handed: []int{3, 4, 900}, lent: []int{901, 902, 903, 904}},
		"a high one":        {handed: []int{3, 4, 200, 4000}, lent: []int{4001, 4002, 4003, 4004}},
		"few numbers":       {handed: []int{3, 4, 200}, limit: "256", lent: []int{247, 248, 249, 250}},
		"few numbers alone": {limit: "256", lent: []int{250, 251, 252, 253}},
		"no number left":    {handed: []int{3, 4, 255}, limit: "256"},
		"hardly any number": {limit: "20"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := filepath.Join(t.TempDir(), "list")
			o, dir, _ := inFile(t, "", "apply")
			handed := handDown(t, c.handed...)
			run := func(script string, command ...string) map[int]string {
				limited := "ulimit -n " + c.limit + "; exec \"$@\""
				if c.limit == "" {
					limited = `exec "$@"`
				}
				cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", limited, "sh"}, command...)...)
				cmd.ExtraFiles = handed
				cmd.Env = append(o.Environ, "WRAP_TEST_FILE="+filepath.Join(dir, "terraform.tfstate"), "WRAP_TEST_SCRIPT="+script,
					"WRAP_TEST_CHILD_SCRIPT=LOCK={} GET descriptors="+list+" POST="+state+" UNLOCK={}")
				if code, said := ends(t, cmd); code != 0 {
					t.Fatalf("%d\n%s", code, said)

				}
				return seen(t, list)
			}
			alone := run("descriptors="+list, o.Command...)
			wrapped := run("wrap="+strings.Join(o.Command, ","), os.Args[0])
			if lent := compare(t, alone, wrapped); !slices.Equal(lent, c.lent) {
				t.Errorf("these are lent: %d", lent)
			}
			expectSealed(t, filepath.Join(dir, "terraform.tfstate"))
		})
	}
}

// TestOthersDoNotInherit: a program that is started while a child is has nothing that is lent to the child.
//
// Promise: Runs under wrap
func TestOthersDoNotInherit(t *testing.T) {
	t.Parallel()
	needDescriptors(t)
	out, in, err := os.Pipe() // so that wrap lends its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for range 60 {
			o, _, _ := inFile(t, "GET", "apply")
			o.Stdout = in
			if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
				t.Errorf("%d, %v", code, err)
			}
		}
		_ = in.Close()
	}()
	go func() { _, _ = out.WriteTo(new(bytes.Buffer)) }()
	for number, running := 0, true; running; number++ {
		list := filepath.Join(t.TempDir(), "list")
		cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
		cmd.Env = append(os.Environ(), "WRAP_TEST_SCRIPT=descriptors="+list)
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if last := slices.Max(slices.Collect(maps.Keys(seen(t, list)))); last >= 900 {
			t.Fatalf("the program %d has %s", number, read(t, list))
		}
		select {
		case <-stopped:
			running = false
		default:
		}
	}
}

// wrapping is a project whose state is in a store, and wrap as a program for it.
type wrapping struct {
	*project
	with   []string // variables that name the store to wrap as a program
	stored func() []byte
}

// everywhere are projects in all stores.
func everywhere(t *testing.T) map[string]func(t *testing.T) *wrapping {
	t.Helper()
	return map[string]func(t *testing.T) *wrapping{
		"http": func(t *testing.T) *wrapping {
			t.Helper()
			s := newStore(t)
			return &wrapping{newProject(t, s.environ(), empty), nil, s.stored}
		},
		"file": func(t *testing.T) *wrapping {
			t.Helper()
			p := inModule(t, empty)
			return &wrapping{p, []string{"WRAP_TEST_FILE=" + p.state()}, func() []byte { return []byte(read(t, p.state())) }}
		},
		"git": func(t *testing.T) *wrapping {
			t.Helper()
			repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
			p := newProject(t, nil, empty)
			p.with.Where.Backend = gitBlock(repo.FileURL())
			return &wrapping{p, []string{"WRAP_TEST_GIT=" + repo.FileURL()}, func() []byte {
				return []byte(repo.Git("cat-file", "blob", "main:"+statePath))
			}}
		},
		"s3": func(t *testing.T) *wrapping {
			t.Helper()
			p, b := inBucket(t)
			return &wrapping{p, []string{"WRAP_TEST_S3=" + b.url}, func() []byte { return b.Get(stateBucket, stateKey) }}
		},
	}
}

// provision has the project run a command while it is applied.
func (p *project) provision(t *testing.T, command string) {
	t.Helper()
	write(t, filepath.Join(p.dir, "more.tf"), `resource "terraform_data" "more" {
  depends_on = [terraform_data.x]
  provisioner "local-exec" { command = "`+command+`" }
}`)
}

// ready is the project after its init, by wrap.
func (w *wrapping) ready(t *testing.T) *wrapping {
	t.Helper()
	w.target = target(t, sealing)
	w.must(t, "init")
	return w
}

// environ is that of wrap as a program that applies the project.
func (w *wrapping) environ() []string {
	return append(append(append(w.env, w.store...), w.with...), "WRAP_TEST_SCRIPT=wrap="+w.cli+",-chdir="+w.dir+",apply,-auto-approve")
}

// checkStored opens what is in the store.
func (w *wrapping) checkStored(t *testing.T) {
	t.Helper()
	opened, err := w.target.Decrypt(t.Context(), w.stored())
	if err != nil || !opened.Encrypted || !bytes.Contains(opened.Data, []byte(`"more"`)) {
		t.Errorf("the state is not there: %v", err)
	}
}

// TestAccDescriptors: with each store, a provisioner sees the descriptors that it sees without wrap, and
// above them nothing that it can write.
//
// Promise: Runs under wrap
func TestAccDescriptors(t *testing.T) {
	t.Parallel()
	needDescriptors(t)
	handed := handDown(t, 3, 4, 5, 200, 899)
	apply := func(t *testing.T, p *project, environ []string, command ...string) map[int]string {
		t.Helper()
		list := filepath.Join(t.TempDir(), "list")
		p.provision(t, "WRAP_TEST_SCRIPT=descriptors="+list+" '"+os.Args[0]+"'")
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...) //nolint:gosec // this program, or the CLI
		cmd.Env, cmd.ExtraFiles = environ, handed
		if code, said := ends(t, cmd); code != 0 {
			t.Fatalf("%d\n%s", code, said)

		}
		return seen(t, list)
	}
	p := newProject(t, nil, `backend "local" {}`)
	if code, out := p.bare(t, p.cli, nil, "init"); code != 0 {
		t.Fatalf("%d\n%s", code, out)
	}
	alone := apply(t, p, p.env, p.cli, "-chdir="+p.dir, "apply", "-auto-approve")
	for name, in := range everywhere(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := in(t).ready(t)
			lent := compare(t, maps.Clone(alone), apply(t, w.project, w.environ(), os.Args[0]))
			if want := map[bool]int{false: 3, true: 4}[name == "file"]; len(lent) != want { // pipes, a mark, and the file
				t.Errorf("these are lent: %d", lent)
			}
			w.checkStored(t)
		})
	}
}

// TestAccJobserver: make in a provisioner finds the jobserver of the make that runs wrap if its recipe
// hands that down, and otherwise says that there is none, as without wrap.
//
// Promise: Runs under wrap
func TestAccJobserver(t *testing.T) {
	t.Parallel()
	cliUnderTest(t)
	version, err := exec.CommandContext(t.Context(), "make", "--version").Output()
	if err != nil || !bytes.Contains(version, []byte("GNU Make")) {
		t.Skipf("there is no GNU make: %v, %s", err, version)
	}
	inner := t.TempDir()
	write(t, filepath.Join(inner, "Makefile"), "all: a b c d\na b c d:\n\t@echo made $@\n")
	// deploy returns what make in the provisioner prints.
	deploy := func(t *testing.T, p *project, recipe string, environ []string, onePipe bool) (printed []string) {
		t.Helper()
		p.provision(t, "make -C '"+inner+"'")
		outer := t.TempDir()
		write(t, filepath.Join(outer, "Makefile"), "deploy:\n\t"+recipe+"\n")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // or make waits for a token
		defer cancel()
		cmd := exec.CommandContext(ctx, "make", "-j3", "deploy")
		cmd.Dir, cmd.Env = outer, environ
		var out, errs bytes.Buffer
		if cmd.Stdout, cmd.Stderr = &out, &errs; onePipe {
			cmd.Stderr = &out
		}
		if err := cmd.Run(); err != nil {
			t.Errorf("%v\n%s%s", err, &out, &errs)
		}
		for line := range strings.Lines(out.String() + errs.String()) {
			if _, text, ok := strings.Cut(line, " (local-exec): "); ok && !strings.HasPrefix(text, "Executing") {
				printed = append(printed, text)
			}
		}
		slices.Sort(printed)
		return printed
	}
	for name, plus := range map[string]string{"not handed": "@", "handed": "+@"} {
		p := newProject(t, nil, `backend "local" {}`)
		if code, out := p.bare(t, p.cli, nil, "init"); code != 0 {
			t.Fatalf("%d\n%s", code, out)
		}
		alone := deploy(t, p, plus+"'"+p.cli+"' -chdir='"+p.dir+"' apply -auto-approve -no-color", p.env, false)
		if unavailable := strings.Contains(fmt.Sprint(alone), "jobserver unavailable"); unavailable != (plus == "@") {
			t.Fatalf("%s to the CLI: %q", name, alone)
		}
		for store, in := range everywhere(t) {
			for pipes, onePipe := range map[string]bool{"one pipe": true, "two pipes": false} {
				if onePipe && store != "file" { // which lends a lock
					continue
				}
				t.Run(name+" to wrap with "+store+" and "+pipes, func(t *testing.T) {
					t.Parallel()
					w := in(t).ready(t)
					if wrapped := deploy(t, w.project, plus+"'"+os.Args[0]+"'", w.environ(), onePipe); !slices.Equal(wrapped, alone) {
						t.Errorf("make has printed %q, and without wrap %q", wrapped, alone)
					}
					w.checkStored(t)
				})
			}
		}
	}
}
