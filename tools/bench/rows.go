package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"
)

// row is one kind of work, measured for this project and for a peer.
type row struct {
	name    string
	measure func() ([]line, error)
}

const megabyte = 1 << 20

func (b *bench) rows() []row {
	return []row{
		{"start", b.startRow},
		{"memory", b.memoryRow},
		{"library", b.libraryRow},
		{"command", b.commandRow},
		{"show", b.showRow},
		{"plan", b.planRow},
		{"many states", b.manyStatesRow},
		{"many keys", b.manyKeysRow},
		{"one source", b.oneSourceRow},
		{"one small source", b.oneSmallSourceRow},
		{"many outputs", b.outputsRow("10,000 outputs", manyOutputs(10_000), "many = 10000")},
		{"large output", b.outputsRow("one output of 50 MB", largeOutput(50_000_000), "large = 50000000")},
		{"only", b.onlyRow},
		{"git", b.gitRow},
		{"many folders in git", b.foldersRow},
		{"writes to git", b.cycleRow},
		{"sops", b.sopsRow},
		{"apply", b.applyRow},
		{"encrypted apply", b.encryptedApplyRow},
		{"keys of one run", b.keysRow},
		{"large apply", b.largeApplyRow},
		{"bucket", b.bucketRow},
		{"stores", b.storesRow},
		{"clouds", b.cloudsRow},
		{"growth", b.growthRow},
		{"hostile", b.hostileRow},
	}
}

// cpu returns a line about CPU time. From both sides, it subtracts the time needed without the work.
func cpu(name string, here, hereBase, peer, peerBase cost, most float64) line {
	h, p := here.cpu-hereBase.cpu, peer.cpu-peerBase.cpu
	return line{name: name + ", CPU", here: seconds(h), peer: seconds(p), ratio: h.Seconds() / p.Seconds(), most: most}
}

func (b *bench) role(name string, args ...string) command {
	return command{name: name, args: append([]string{b.self, name}, args...), dir: b.dir}
}

// noted returns a command whose peak memory is noted, without its output.
func (b *bench) noted(args ...string) command {
	return command{args: append([]string{"sh", "-c", `exec "$@" >/dev/null`, "sh", b.path("noted")}, args...), dir: b.dir}
}

// startRow gets the time from process start to schema from the benchmark in internal/testing/builds, for the provider
// and for the stub.
func (b *bench) startRow() ([]line, error) {
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", "^BenchmarkStart$", "-count", fmt.Sprint(b.runs), "./internal/testing/builds")
	cmd.Dir = b.root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go test: %w\n%s", err, out)
	}
	runs := map[string][]cost{}
	for _, m := range regexp.MustCompile(`(?m)^BenchmarkStart/([a-z]+)\S*\s+\d+\s+(\d+) ns/op`).FindAllStringSubmatch(string(out), -1) {
		ns, _ := strconv.ParseInt(m[2], 10, 64)
		runs[m[1]] = append(runs[m[1]], cost{wall: time.Duration(ns)})
	}
	if len(runs["provider"]) == 0 || len(runs["stub"]) == 0 {
		return nil, fmt.Errorf("go test measured nothing:\n%s", out)
	}
	wall := func(c cost) time.Duration { return c.wall }
	took, stub := median(runs["provider"], wall), median(runs["stub"], wall)
	info, err := os.Stat(b.path("providers/terraform-provider-statecrypt") + wrapped)
	if err != nil {
		return nil, err
	}
	const mostSize = 50_000_000
	return []line{
		{name: "start, handshake and schema: beside a stub", here: milliseconds(took), peer: milliseconds(stub),
			ratio: took.Seconds() / stub.Seconds(), most: 2.6},
		{name: "size of the provider: beside 50 MB", here: megabytes(info.Size()), peer: megabytes(mostSize),
			ratio: float64(info.Size()) / mostSize, most: 1},
	}, nil
}

// memoryRow measures the peak memory of provider processes: while a plan reads nothing, after a validation, and while a
// plan reads states of several sizes.
func (b *bench) memoryRow() ([]line, error) {
	kinds := []struct {
		name, body string
		most       float64
	}{
		{"of a provider process that reads nothing", configuredProvider + idle, 2.5},
		{"after a validation", configuredProvider + idle, 2.5},
	}
	for _, s := range []struct {
		name string
		size int
	}{{"10 kB", 10_000}, {"1 MiB", megabyte}, {"100 MiB", 100 * megabyte}} {
		path, err := b.seal("read "+s.name+".tfstate", state(oneOutput, s.size))
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, struct {
			name, body string
			most       float64
		}{"while it reads a state of " + s.name, configuredProvider + reads(path), 0})
	}
	stub, err := b.terraformPlan("memory of the stub", "data \"stub_remote_state\" \"s\" {\n  many = 0\n}\n")
	if err != nil {
		return nil, err
	}
	commands := []command{stub}
	for _, k := range kinds {
		c, err := b.terraformPlan("memory "+k.name, k.body)
		if err != nil {
			return nil, err
		}
		if k.name == "after a validation" {
			c.args = []string{b.terraform, "validate"}
		}
		commands = append(commands, c)
	}
	m, err := b.compare(commands...)
	if err != nil {
		return nil, err
	}
	var lines []line
	for i, k := range kinds {
		here, peer := m[1+i].provider, m[0].provider
		lines = append(lines, line{name: "memory " + k.name + ": beside a stub that reads nothing", here: megabytes(here), peer: megabytes(peer),
			ratio: float64(here) / float64(peer), most: k.most})
	}
	return lines, nil
}

// libraryRow opens a large file, and compares the library with the bare primitives.
func (b *bench) libraryRow() ([]line, error) {
	path, err := b.seal("large.tfstate", state(oneOutput, 100*megabyte))
	if err != nil {
		return nil, err
	}
	m, err := b.compare(b.role("nothing"), b.role("primitives", path), b.role("library", encrypted, path))
	if err != nil {
		return nil, err
	}
	return []line{cpu("open a state of 100 MiB: the library beside the bare primitives", m[2], m[0], m[1], m[0], 1.3)}, nil
}

// commandRow opens and seals a large file, and compares the command with the library.
func (b *bench) commandRow() ([]line, error) {
	plain := b.path("plain.tfstate")
	if err := os.WriteFile(plain, state(oneOutput, 100*megabyte), 0o600); err != nil {
		return nil, err
	}
	sealed, err := b.seal("large.tfstate", state(oneOutput, 100*megabyte))
	if err != nil {
		return nil, err
	}
	noted := func(args ...string) command {
		c := b.noted(args...)
		c.name, c.env = filepath.Base(args[0])+" "+args[1], []string{"TF_ENCRYPTION=" + encrypted}
		return c
	}
	statecrypt := b.path("statecrypt")
	m, err := b.compare(noted(statecrypt, "help"), noted(b.self, "nothing"),
		noted(statecrypt, "decrypt", sealed), noted(b.self, "library", encrypted, sealed),
		noted(statecrypt, "encrypt", plain), noted(b.self, "seal", encrypted, plain))
	if err != nil {
		return nil, err
	}
	here, peer := m[2].providerCPU-m[0].providerCPU, m[3].providerCPU-m[1].providerCPU
	lines := []line{{name: "statecrypt decrypt, 100 MiB: beside the library, CPU", here: seconds(here), peer: seconds(peer),
		ratio: here.Seconds() / peer.Seconds(), most: 1.2}}
	for _, peak := range []struct {
		name, path string
		took, base cost
		times      float64
	}{
		{name: "its peak memory over an idle process: beside 2 × file", path: sealed, took: m[2], base: m[0], times: 2},
		{
			name: "statecrypt encrypt, 100 MiB, peak memory over an idle process: beside 2.5 × file",
			path: plain, took: m[4], base: m[0], times: 2.5,
		},
		{name: "the same with the library", path: plain, took: m[5], base: m[1], times: 2.5},
	} {
		info, err := os.Stat(peak.path)
		if err != nil {
			return nil, err
		}
		took, allowed := peak.took.provider-peak.base.provider, int64(peak.times*float64(info.Size()))
		lines = append(lines, line{name: peak.name, here: megabytes(took), peer: megabytes(allowed),
			ratio: float64(took) / float64(allowed), most: 1})
	}
	return lines, nil
}

// showRow shows what is in a large state, and compares the command with decrypting it, and with Terraform, which shows
// the plaintext. Terraform needs no provider of others for it.
func (b *bench) showRow() ([]line, error) {
	plain := b.path("data.tfstate")
	text := builtinState(100 * megabyte)
	if err := os.WriteFile(plain, text, 0o600); err != nil {
		return nil, err
	}
	sealed, err := b.seal("data-sealed.tfstate", text)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(sealed)
	if err != nil {
		return nil, err
	}
	noted := func(args ...string) command {
		c := b.noted(args...)
		c.name, c.env = filepath.Base(args[0])+" "+args[1], []string{"TF_ENCRYPTION=" + encrypted, "TF_CLI_CONFIG_FILE=" + os.DevNull}
		return c
	}
	statecrypt := b.path("statecrypt")
	m, err := b.compare(noted(statecrypt, "help"), noted(statecrypt, "decrypt", sealed), noted(statecrypt, "show", sealed),
		noted(statecrypt, "show", "-json", sealed), noted(b.terraform, "show", "-json", plain))
	if err != nil {
		return nil, err
	}
	base, decrypt, terraform := m[0], m[1].providerCPU-m[0].providerCPU, m[4].providerCPU
	allowed := info.Size() * 3 / 2
	var lines []line
	for i, name := range []string{"statecrypt show, 100 MiB", "statecrypt show -json, 100 MiB"} {
		took, peak := m[2+i].providerCPU-base.providerCPU, m[2+i].provider-base.provider
		lines = append(lines,
			line{name: name + ": beside statecrypt decrypt, CPU", here: seconds(took), peer: seconds(decrypt),
				ratio: took.Seconds() / decrypt.Seconds(), most: 1.3},
			line{name: "the same: beside terraform show -json of the plaintext, CPU", here: seconds(took), peer: seconds(terraform),
				ratio: took.Seconds() / terraform.Seconds(), most: 0.1},
			line{name: "its peak memory over an idle process: beside 1.5 × file", here: megabytes(peak), peer: megabytes(allowed),
				ratio: float64(peak) / float64(allowed), most: 1})
	}
	lines[3].most = 0 // the limit is for the text, which git asks for
	return lines, nil
}

// terraformPlan returns a command that makes a plan with our provider, or with the stub. Terraform would also start a
// provider that the body does not use.
func (b *bench) terraformPlan(name, body string) (command, error) {
	provider := "statecrypt"
	if strings.Contains(body, `data "stub_`) {
		provider = "stub"
	}
	return b.planOf(name, b.terraform, fmt.Sprintf(`terraform {
  required_providers {
    %[1]s = { source = "statecrypt/%[1]s" }
  }
}
`, provider)+body)
}

const configuredProvider = `provider "statecrypt" {
  key_provider {
    pbkdf2 {
      name       = "p"
      passphrase = "` + passphrase + `"
    }
  }
  method {
    aes_gcm {
      name = "m"
      keys = "key_provider.pbkdf2.p"
    }
  }
  default { method = "method.aes_gcm.m" }
}
`

func (b *bench) planOf(name, cli, body string, env ...string) (command, error) {
	dir := b.path(strings.ReplaceAll(name, " ", "_"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return command{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(body), 0o600); err != nil {
		return command{}, err
	}
	return command{
		name: name, dir: dir, args: []string{cli, "plan", "-refresh=false", "-lock=false", "-out=" + os.DevNull},
		env: append(env, "TF_CLI_CONFIG_FILE="+b.path("cli.tfrc")),
	}, nil
}

func reads(paths ...string) string {
	var s strings.Builder
	for i, p := range paths {
		fmt.Fprintf(&s, "data \"statecrypt_remote_state\" \"s%d\" {\n  file { path = %q }\n}\n", i, p)
	}
	return s.String()
}

// tofuReads returns a command that reads states with OpenTofu's own data source.
func (b *bench) tofuReads(name, settings string, paths ...string) (command, error) {
	var s strings.Builder
	for i, p := range paths {
		fmt.Fprintf(&s, "data \"terraform_remote_state\" \"s%d\" {\n  backend = \"local\"\n  config  = { path = %q }\n}\n", i, p)
	}
	return b.planOf(name, b.tofu, s.String()+"output \"x\" { value = 1 }\n", "TF_ENCRYPTION="+settings)
}

// plans makes four plans: one with the work and one without, with our provider and with OpenTofu.
func (b *bench) plans(name string, paths ...string) ([]cost, error) {
	var commands []command
	for _, make := range []func() (command, error){
		func() (command, error) { return b.terraformPlan(name+" here", configuredProvider+reads(paths...)) },
		func() (command, error) { return b.terraformPlan("base here", configuredProvider+idle) },
		func() (command, error) { return b.tofuReads(name+" tofu", encrypted, paths...) },
		func() (command, error) { return b.tofuReads("base tofu", encrypted) },
	} {
		c, err := make()
		if err != nil {
			return nil, err
		}
		commands = append(commands, c)
	}
	return b.compare(commands...)
}

// idle configures the provider and reads nothing.
const idle = `data "statecrypt_remote_state" "none" {
  count = 0
  file { path = "none" }
}
`

func (b *bench) planRow() ([]line, error) {
	path, err := b.seal("large.tfstate", state(oneOutput, 100*megabyte))
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	m, err := b.plans("plan with a state of 100 MiB", path)
	if err != nil {
		return nil, err
	}
	allowed := info.Size()*5/4 + 60_000_000
	return []line{
		cpu("plan with a state of 100 MiB over one without: beside tofu", m[0], m[1], m[2], m[3], 1.0/6),
		{name: "its provider process, peak memory: beside 1.25 × file + 60 MB", here: megabytes(m[0].provider), peer: megabytes(allowed),
			ratio: float64(m[0].provider) / float64(allowed), most: 1},
	}, nil
}

func (b *bench) manyStatesRow() ([]line, error) {
	var paths []string
	for i := range 20 {
		path, err := b.seal(fmt.Sprintf("small%d.tfstate", i), state(oneOutput, megabyte))
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	m, err := b.plans("twenty states", paths...)
	if err != nil {
		return nil, err
	}
	var none cost
	return []line{
		cpu("plan with 20 encrypted states of 1 MiB: beside tofu", m[0], none, m[2], none, 0.55),
		{name: "its time: beside its CPU", here: seconds(m[0].wall), peer: seconds(m[0].cpu), ratio: m[0].wall.Seconds() / m[0].cpu.Seconds(),
			most: 0.65},
	}, nil
}

// manyKeysRow reads states that each have their own key, as OpenTofu recommends.
func (b *bench) manyKeysRow() ([]line, error) {
	const keys = 20
	settings, targets, data := "", "", ""
	var paths []string
	for i := range keys {
		key := fmt.Sprintf("key_provider \"pbkdf2\" \"p%d\" { passphrase = \"%s of %[1]d\" }\n", i, passphrase) +
			fmt.Sprintf("method \"aes_gcm\" \"m%d\" { keys = key_provider.pbkdf2.p%[1]d }\n", i)
		settings += key
		targets += fmt.Sprintf("remote_state_data_source \"s%d\" { method = method.aes_gcm.m%[1]d }\n", i)
		text := key + fmt.Sprintf("state { method = method.aes_gcm.m%d }\n", i)
		path, err := b.sealAs(fmt.Sprintf("key%d.tfstate", i), text, state(oneOutput, 10<<10))
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
		data += fmt.Sprintf("data \"statecrypt_remote_state\" \"s%d\" {\n  file { path = %q }\n  name = \"s%[1]d\"\n}\n", i, path)
	}
	settings += "remote_state_data_sources {\n" + targets + "}\n"
	here, err := b.terraformPlan("twenty keys here", "provider \"statecrypt\" {\n  encryption = <<-EOT\n"+settings+"  EOT\n}\n"+data)
	if err != nil {
		return nil, err
	}
	peer, err := b.tofuReads("twenty keys tofu", settings, paths...)
	if err != nil {
		return nil, err
	}
	m, err := b.compare(here, peer)
	if err != nil {
		return nil, err
	}
	var none cost
	return []line{cpu("plan with 20 encrypted states of 10 kB, a key for each: beside tofu", m[0], none, m[1], none, 0.45)}, nil
}

// oneSourceRow reads one state many times. It compares the work that Terraform does for each data source with the work
// that the provider does.
func (b *bench) oneSourceRow() ([]line, error) {
	path, err := b.seal("one.tfstate", state(oneOutput, 100*megabyte))
	if err != nil {
		return nil, err
	}
	fifty, err := b.terraformPlan("fifty data sources", configuredProvider+reads(repeat(path, 50)...))
	if err != nil {
		return nil, err
	}
	one, err := b.terraformPlan("one data source", configuredProvider+reads(path))
	if err != nil {
		return nil, err
	}
	m, err := b.compare(fifty, one)
	if err != nil {
		return nil, err
	}
	here, peer := m[0].providerCPU, m[1].providerCPU
	return []line{
		{name: "50 data sources on one state of 100 MiB: beside one, CPU of the provider", here: seconds(here), peer: seconds(peer),
			ratio: here.Seconds() / peer.Seconds(), most: 1.1},
		cpu("the same, with Terraform", m[0], cost{}, m[1], cost{}, 0),
	}, nil
}

// oneSmallSourceRow reads one small state many times. The number of key derivations determines the result.
func (b *bench) oneSmallSourceRow() ([]line, error) {
	path, err := b.seal("10kB.tfstate", state(oneOutput, 10_000))
	if err != nil {
		return nil, err
	}
	m, err := b.plans("fifty data sources on 10 kB", repeat(path, 50)...)
	if err != nil {
		return nil, err
	}
	here, peer := m[0].wall, m[2].wall
	return []line{
		cpu("plan with 50 data sources on one encrypted state of 10 kB: beside tofu", m[0], cost{}, m[2], cost{}, 0.1),
		{name: "its time: beside that of tofu", here: seconds(here), peer: seconds(peer), ratio: here.Seconds() / peer.Seconds(), most: 0.15},
	}, nil
}

func repeat(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

// outputsRow returns large outputs to Terraform, and compares this with a provider that has them ready.
func (b *bench) outputsRow(name, outputs, arguments string) func() ([]line, error) {
	return func() ([]line, error) {
		path := b.path("outputs.tfstate")
		if err := os.WriteFile(path, state(outputs, 0), 0o600); err != nil {
			return nil, err
		}
		here, err := b.terraformPlan(name+" here", plaintext+reads(path))
		if err != nil {
			return nil, err
		}
		peer, err := b.terraformPlan(name+" stub", "data \"stub_remote_state\" \"s\" {\n"+arguments+"\n}\n")
		if err != nil {
			return nil, err
		}
		m, err := b.compare(here, peer)
		if err != nil {
			return nil, err
		}
		return []line{cpu(name+": beside a provider that need not read", m[0], cost{}, m[1], cost{}, 1.2)}, nil
	}
}

const plaintext = `provider "statecrypt" {
  default { method = "unencrypted" }
}
`

// onlyRow reads one output of many, and compares this with a state that has no other outputs.
func (b *bench) onlyRow() ([]line, error) {
	many, one := b.path("many.tfstate"), b.path("single.tfstate")
	if err := os.WriteFile(many, state(manyOutputs(10_000), 0), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(one, state(manyOutputs(1), 0), 0o600); err != nil {
		return nil, err
	}
	read := func(name, path string) (command, error) {
		return b.terraformPlan(name, plaintext+fmt.Sprintf("data \"statecrypt_remote_state\" \"s\" {\n  file { path = %q }\n  only = "+
			"[\"o0\"]\n}\n", path))
	}
	here, err := read("one of many", many)
	if err != nil {
		return nil, err
	}
	peer, err := read("one of one", one)
	if err != nil {
		return nil, err
	}
	m, err := b.compare(here, peer)
	if err != nil {
		return nil, err
	}
	return []line{cpu("one output of 10,000, with only: beside a state with that one", m[0], cost{}, m[1], cost{}, 1.2)}, nil
}

// sopsRow opens a sops file, and compares this with sops itself.
func (b *bench) sopsRow() ([]line, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	plain, sealed := b.path("plain.json"), b.path("sops.json")
	if err := os.WriteFile(plain, state(oneOutput, megabyte), 0o600); err != nil {
		return nil, err
	}
	if _, err := b.run(command{name: "sops encrypt", args: []string{b.sops, "encrypt", "--age", identity.Recipient().String(), "--output",
		sealed, plain}, dir: b.dir}); err != nil {
		return nil, err
	}
	settings := `method "sops" "s" { age_identities = ["` + identity.String() + `"] }
state { method = method.sops.s }
`
	peer := command{name: "sops decrypt", args: []string{b.sops, "decrypt", sealed}, dir: b.dir,
		env: []string{"SOPS_AGE_KEY=" + identity.String()}}
	m, err := b.compare(b.role("library", settings, sealed), peer)
	if err != nil {
		return nil, err
	}
	return []line{cpu("open a sops state of 1 MiB: the library beside sops decrypt", m[0], cost{}, m[1], cost{}, 0)}, nil
}

// growthRow opens files of growing size, and files of the same size with a growing number of resources.
func (b *bench) growthRow() ([]line, error) {
	tiny, err := b.seal("tiny.tfstate", state(oneOutput, 0))
	if err != nil {
		return nil, err
	}
	over := func(plain []byte) (library, primitives float64, err error) {
		path, err := b.seal("growth.tfstate", plain)
		if err != nil {
			return 0, 0, err
		}
		m, err := b.compare(b.role("library", encrypted, path), b.role("primitives", path), b.role("library", encrypted, tiny),
			b.role("primitives", tiny))
		if err != nil {
			return 0, 0, err
		}
		return (m[0].cpu - m[2].cpu).Seconds(), (m[1].cpu - m[3].cpu).Seconds(), nil
	}

	sizes := []int{25, 50, 75, 100}
	bySize := make([][]float64, 2)
	for _, size := range sizes {
		library, primitives, err := over(state(oneOutput, size*megabyte))
		if err != nil {
			return nil, err
		}
		bySize[0], bySize[1] = append(bySize[0], library), append(bySize[1], primitives)
	}
	numbers := []int{100, 1_000, 10_000, 40_000}
	byNumber := make([][]float64, 1)
	for _, n := range numbers {
		library, _, err := over(stateOf(oneOutput, 25*megabyte, 25*megabyte/n-600))
		if err != nil {
			return nil, err
		}
		byNumber[0] = append(byNumber[0], library)
	}
	b.charts = append(b.charts,
		chart("CPU seconds to open a state, by its size in MiB: the library above, the bare primitives below", sizes, bySize),
		chart("CPU seconds to open a state of 25 MiB, by its number of resources", numbers, byNumber))
	four, one, many, few := bySize[0][3], bySize[0][0], byNumber[0][3], byNumber[0][0]
	return []line{
		{name: "open 100 MiB: beside four times 25 MiB, CPU over an empty state", here: fmt.Sprintf("%.3f s", four),
			peer: fmt.Sprintf("%.3f s", 4*one), ratio: four / (4 * one), most: 1.2},
		{name: "open 25 MiB of 40,000 resources: beside 100 resources, CPU over an empty state", here: fmt.Sprintf("%.3f s", many),
			peer: fmt.Sprintf("%.3f s", few), ratio: many / few},
	}, nil
}

// chart returns a chart in the Mermaid language, which GitHub renders.
func chart(title string, x []int, series [][]float64) string {
	var s strings.Builder
	fmt.Fprintf(&s, "```mermaid\nxychart-beta\n  title %q\n  x-axis [%s]\n", title,
		strings.Trim(strings.ReplaceAll(fmt.Sprint(x), " ", ", "), "[]"))
	for _, values := range series {
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = fmt.Sprintf("%.3f", v)
		}
		fmt.Fprintf(&s, "  line [%s]\n", strings.Join(texts, ", "))
	}
	return s.String() + "```\n"
}
