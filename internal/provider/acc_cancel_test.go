//go:build linux

package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// patience is how long everything may take to end after Ctrl-C. It should be two
// seconds: then the CLI kills the provider, which leaves processes and files.
// Machines are slow at times, but nothing that is stuck ends so soon by itself.
const patience = 25 * time.Second

// stuck is a place that never answers. It tells when someone waits for it.
type stuck struct {
	reached chan struct{}
	once    sync.Once
}

func newStuck() *stuck { return &stuck{reached: make(chan struct{})} }

func (s *stuck) waits() { s.once.Do(func() { close(s.reached) }) }

func (s *stuck) before(w http.ResponseWriter, r *http.Request) bool {
	s.waits()
	return gittest.Stall(w, r)
}

func (s *stuck) serve(w http.ResponseWriter, r *http.Request) { s.before(w, r) }

// watch looks for the file that a program makes when it has started.
func (s *stuck) watch(t *testing.T, file string) {
	t.Helper()
	go func() {
		for t.Context().Err() == nil {
			if _, err := os.Stat(file); err == nil {
				s.waits()
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
}

// Ctrl-C while a read waits for someone who never answers: the CLI, the
// provider and every program that it started are gone soon after, and so are
// their temporary files.
func TestAccCancel(t *testing.T) {
	needAcceptance(t)
	testkit.OneIsEnough(t)
	builtProvider(t)
	group, alone := true, false // whom the signal reaches
	for name, c := range map[string]struct {
		args   []string
		setup  func(*testing.T, *stuck) (config string, env []string)
		child  string // a program that has to be seen while the read waits
		signal syscall.Signal
		group  bool
	}{
		"http":                     {[]string{"plan"}, stuckHTTP, "", syscall.SIGINT, group},
		"http, in the body":        {[]string{"plan"}, stuckHTTPBody, "", syscall.SIGINT, group},
		"http, in apply":           {[]string{"apply", "-auto-approve"}, stuckHTTP, "", syscall.SIGINT, group},
		"http, ephemeral":          {[]string{"plan"}, stuckEphemeral, "", syscall.SIGINT, group},
		"http, only the CLI":       {[]string{"plan"}, stuckHTTP, "", syscall.SIGINT, alone},
		"git over http":            {[]string{"plan"}, stuckGit, "git", syscall.SIGINT, group},
		"git, only the CLI":        {[]string{"plan"}, stuckGit, "git", syscall.SIGINT, alone},
		"git, terminated":          {[]string{"plan"}, stuckGit, "git", syscall.SIGTERM, group},
		"git over ssh":             {[]string{"plan"}, stuckSSH, "ssh", syscall.SIGINT, group},
		"key provider":             {[]string{"plan"}, stuckProgram("sleep 600 & wait"), "sleep", syscall.SIGINT, group},
		"deaf key provider":        {[]string{"plan"}, stuckProgram("trap '' TERM INT HUP; sleep 600 & wait"), "sleep", syscall.SIGINT, group},
		"key service":              {[]string{"plan"}, stuckKeyService, "", syscall.SIGINT, group},
		"kubernetes":               {[]string{"plan"}, stuckKubernetes, "", syscall.SIGINT, group},
		"kubernetes plugin":        {[]string{"plan"}, stuckKubernetesPlugin, "sleep", syscall.SIGINT, group},
		"key derivation":           {[]string{"plan"}, stuckDerivation, "", syscall.SIGINT, group},
		"fifty reads":              {[]string{"plan", "-parallelism=50"}, stuckEverywhere, "git", syscall.SIGINT, group},
		"fifty reads, two by two":  {[]string{"plan", "-parallelism=2"}, stuckEverywhere, "git", syscall.SIGINT, alone},
		"fifty reads, in an apply": {[]string{"apply", "-auto-approve", "-parallelism=2"}, stuckEverywhere, "git", syscall.SIGINT, group},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "ephemeral") && !knowsEphemeral() {
				t.Skip("this CLI has no ephemeral values")
			}
			place := newStuck()
			config, env := c.setup(t, place)
			p := newProject(t, map[string]string{"main.tf": configuration(config)})
			temp := t.TempDir()
			p.setenv(append(env, "TMPDIR="+temp)...)
			var out bytes.Buffer
			cmd := p.command(c.args...)
			cmd.Stdout, cmd.Stderr = &out, &out
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell starts it
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			var result error
			go func() { result = cmd.Wait(); close(ended) }()
			t.Cleanup(func() { // of a failure
				for pid := range processesOf(t, temp) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
				<-ended
			})
			select {
			case <-place.reached:
			case <-ended:
				t.Fatalf("it did not wait: %v\n%s", result, out.String())
			case <-time.After(2 * time.Minute):
				t.Fatal("it never came so far")
			}
			if c.child != "" {
				awaitChild(t, temp, c.child)
			}

			begin := time.Now()
			to := cmd.Process.Pid
			if c.group {
				to = -to // as a terminal does
			}
			if err := syscall.Kill(to, c.signal); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatalf("it does not end: %v", processesOf(t, temp))
			}
			cli := time.Since(begin)
			left := processesOf(t, temp)
			for len(left) > 0 && time.Since(begin) < patience {
				time.Sleep(10 * time.Millisecond)
				left = processesOf(t, temp)
			}
			t.Logf("the CLI took %v, everything %v", cli.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
			if len(left) > 0 {
				t.Errorf("still there: %v", left)
			}
			if result == nil || !bytes.Contains(bytes.ToLower(out.Bytes()), []byte("interrupt")) {
				t.Errorf("%v; it was not interrupted:\n%s", result, out.String())
			}
			for _, file := range filesBelow(t, temp) {
				t.Errorf("%s is left", file)
			}
		})
	}
}

// processesOf lists the processes that have our temporary directory in their
// environment: the CLI hands it to the provider, and so on.
func processesOf(t *testing.T, temp string) map[int]string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(all) == 0 {
		t.Fatalf("no processes at all: %v", err)
	}
	found := map[int]string{} // :: process → command line
	for _, file := range all {
		environ, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(environ, []byte("TMPDIR="+temp+"\x00")) {
			continue
		}
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if len(args) > 0 { // else it has ended
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			found[pid] = strings.ReplaceAll(string(args), "\x00", " ")
		}
	}
	return found
}

func awaitChild(t *testing.T, temp, name string) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(10 * time.Millisecond) {
		for _, args := range processesOf(t, temp) {
			if strings.HasPrefix(filepath.Base(strings.Fields(args)[0]), name) {
				return
			}
		}
	}
	t.Fatalf("%s was never seen, so this shows nothing: %v", name, processesOf(t, temp))
}

func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func stuckHTTP(t *testing.T, s *stuck) (string, []string) {
	server := serve(t, httptest.NewServer, s.serve)
	t.Cleanup(server.CloseClientConnections)
	return textProvider(staticText) + reads("s", fromHTTP(server.URL)), nil
}

func stuckHTTPBody(t *testing.T, s *stuck) (string, []string) {
	server := serve(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("{"))
			w.(http.Flusher).Flush()
			s.waits()
			time.Sleep(50 * time.Millisecond)
		}
	})
	return textProvider(staticText) + reads("s", fromHTTP(server.URL)), nil
}

func stuckEphemeral(t *testing.T, s *stuck) (string, []string) {
	config, env := stuckHTTP(t, s)
	return strings.Replace(config, "data \"", "ephemeral \"", 1), env
}

func stuckGit(t *testing.T, s *stuck) (string, []string) {
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "{}"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: s.before})
	return textProvider(staticText) + reads("s", fromGit(server.URL, "main", "s")), nil
}

// stuckSSH is a server that accepts connections and says nothing.
func stuckSSH(t *testing.T, s *stuck) (string, []string) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("ssh is not installed")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			s.waits()
		}
	}()
	return textProvider(staticText) + reads("s", fromGit("ssh://git@"+listener.Addr().String()+"/acme/infra.git", "main", "s")), nil
}

func stuckProgram(hangs string) func(*testing.T, *stuck) (string, []string) {
	return func(t *testing.T, s *stuck) (string, []string) {
		started := filepath.Join(t.TempDir(), "started")
		script := writeTemp(t, "kp.sh", []byte("touch '"+started+"'\n"+hangs))
		s.watch(t, started)
		return settings(entry("key_provider", "external", "e", fmt.Sprintf("command = [\"sh\", %s]", quote(script)))+
			entry("method", "aes_gcm", "m", `keys = "key_provider.external.e"`)+staticDefault) +
			reads("s", fromFile(writeTemp(t, "state", sealed(t, argumentsState)))), nil
	}
}

func stuckKeyService(t *testing.T, s *stuck) (string, []string) {
	server, state := transit(t)
	server.Fault = s.before
	return settings(openbaoBlock("b", server.URL, `token = "t"`), entry("method", "aes_gcm", "m", `keys = "key_provider.openbao.b"`),
		staticDefault) +
		reads("s", fromFile(writeTemp(t, "state", state))), nil
}

func kubernetesAt(host, ca, how string) string {
	return settings(fmt.Sprintf("encryption = %s\ncredentials {\nkubernetes {\nhost = %q\ncluster_ca_certificate = %s\n%s\n}\n}",
		quote(staticText), host, quote(ca), how)) +
		reads("s", "kubernetes {\nsecret_suffix = \"s\"\n}")
}

func stuckKubernetes(t *testing.T, s *stuck) (string, []string) {
	server := serve(t, httptest.NewTLSServer, s.serve)
	t.Cleanup(server.CloseClientConnections)
	return kubernetesAt(server.URL, nettest.PEM(server.Certificate()), `token = "t"`), nil
}

func stuckKubernetesPlugin(t *testing.T, s *stuck) (string, []string) {
	server := kubetest.New(t)
	started := filepath.Join(t.TempDir(), "started")
	s.watch(t, started)
	return kubernetesAt(server.URL, server.CA(), fmt.Sprintf("exec {\napi_version = \"client.authentication.k8s.io/v1\"\ncommand = "+
		"\"sh\"\nargs = [\"-c\", %s]\n}",
		quote("touch '"+started+"'; sleep 600 & wait"))), nil
}

// stuckDerivation is work that does not stop: minutes of PBKDF2.
func stuckDerivation(t *testing.T, s *stuck) (string, []string) {
	const maker = "key_provider \"pbkdf2\" \"k\" {\npassphrase = \"a passphrase for one test\"\n" +
		"iterations = 200000\nmax_iterations = 2000000000\n}\nmethod " +
		"\"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.k }\n" + stateTarget
	var file map[string]json.RawMessage
	if err := json.Unmarshal(sealedAs(t, maker, argumentsState), &file); err != nil {
		t.Fatal(err)
	}
	var meta map[string][]byte
	if err := json.Unmarshal(file["meta"], &meta); err != nil {
		t.Fatal(err)
	}
	for address, stored := range meta {
		meta[address] = bytes.Replace(stored, []byte("200000"), []byte("2000000000"), 1)
	}
	var err error
	if file["meta"], err = json.Marshal(meta); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) {
		gives(data)(w, nil)
		time.AfterFunc(200*time.Millisecond, s.waits)
	})
	return textProvider(maker) + reads("s", fromHTTP(server.URL)), nil
}

// stuckEverywhere has fifty data sources wait for git, which is a fetch for
// each branch.
func stuckEverywhere(t *testing.T, s *stuck) (string, []string) {
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "{}"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: s.before})
	source := strings.Replace(fromGit(server.URL, "@", "s"), `"@"`, `"branch-${count.index % 10}"`, 1)
	return textProvider(staticText) + reads("s", "count = 50", source), nil
}
