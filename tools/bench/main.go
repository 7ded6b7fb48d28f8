// Command bench compares the provider with its peers. It runs whole processes, in turn, on the same files. It prints
// one table, and fails if a result exceeds its limit.
//
//	bench -root . -tofu .tools/bin/tofu -terraform terraform -sops .tools/bin/sops
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// bench is one run of the program.
type bench struct {
	root                  string
	tofu, terraform, sops string
	runs                  int
	only                  string
	dir                   string // the folder for all files
	self                  string // the path of this executable
	charts                []string
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func main() {
	if len(os.Args) > 1 {
		if role, ok := roles[os.Args[1]]; ok {
			exit(role(os.Args[2:]))
		}
	}
	b := &bench{}
	flag.StringVar(&b.root, "root", ".", "the provider's source `directory`")
	flag.StringVar(&b.tofu, "tofu", "tofu", "`path` of OpenTofu")
	flag.StringVar(&b.terraform, "terraform", "terraform", "`path` of Terraform")
	flag.StringVar(&b.sops, "sops", "sops", "`path` of sops")
	flag.IntVar(&b.runs, "runs", 5, "how `often` each command runs")
	flag.StringVar(&b.only, "only", "", "run only rows whose name holds this `text`")
	flag.Parse()
	exit(b.all())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (b *bench) all() error {
	if b.runs < 5 {
		fmt.Fprintln(os.Stderr, "bench: fewer than five runs say little")
	}
	dir, err := os.MkdirTemp("", "statecrypt-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	if err := b.prepare(); err != nil {
		return err
	}
	fmt.Printf("%s, %s/%s, %d cores, %s, median of %d runs\n\n", time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), processor(), b.runs)
	fmt.Print("| work | here | peer | ratio | at most |\n|---|---|---|---|---|\n")
	var failed []string
	for _, r := range b.rows() {
		if !strings.Contains(r.name, b.only) {
			continue
		}
		lines, err := r.measure()
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		for _, l := range lines {
			fmt.Printf("| %s | %s | %s | %.2f | %s |\n", l.name, l.here, l.peer, l.ratio, l.limit())
			if l.most > 0 && l.ratio > l.most {
				failed = append(failed, l.name)
			}
		}
	}
	for _, c := range b.charts {
		fmt.Print("\n", c)
	}
	if len(failed) > 0 {
		return errors.New("above the limit: " + strings.Join(failed, "; "))
	}
	return nil
}

// line is one line of the table.
type line struct {
	name, here, peer string
	ratio, most      float64 // most is the limit for ratio; 0 means no limit
}

func (l line) limit() string {
	if l.most == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", l.most)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
func megabytes(n int64) string       { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for l := range strings.SplitSeq(string(text), "\n") {
		if name, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// wrapped is the suffix of a provider's executable when noted takes its place.
const wrapped = ".measured"

// prepare builds the provider and the stub, and puts them where Terraform and OpenTofu look for them.
func (b *bench) prepare() (err error) {
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.root, err = filepath.Abs(b.root); err != nil {
		return err
	}
	for _, cli := range []*string{&b.tofu, &b.terraform, &b.sops} {
		if *cli, err = exec.LookPath(*cli); err != nil {
			return err
		}
		if *cli, err = filepath.Abs(*cli); err != nil {
			return err
		}
	}
	for _, name := range []string{"home", "tmp", "providers"} {
		if err := os.Mkdir(b.path(name), 0o700); err != nil {
			return err
		}
	}
	provider, stub := b.path("providers/terraform-provider-statecrypt"), b.path("providers/terraform-provider-stub")
	for _, build := range []struct{ dir, program, work string }{
		{b.root, provider + wrapped, "auto"},
		{filepath.Join(b.root, "tools/bench/noted"), b.path("noted"), "off"},
		{filepath.Join(b.root, "tools/bench/stub"), stub + wrapped, "off"}, // a separate module
		{filepath.Join(b.root, "cmd/statecrypt"), b.path("statecrypt"), "auto"},
	} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", build.program, ".")
		cmd.Dir, cmd.Env = build.dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK="+build.work)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err := errors.Join(copyFile(b.path("noted"), provider), copyFile(b.path("noted"), stub)); err != nil {
		return err
	}
	return os.WriteFile(b.path("cli.tfrc"), fmt.Appendf(nil, `provider_installation {
  dev_overrides {
    "statecrypt/statecrypt" = %[1]q
    "statecrypt/stub"       = %[1]q
  }
  direct { exclude = ["*/*/*"] }
}
`, b.path("providers")), 0o600)
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o700)
}
