//go:build linux

package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

const (
	loadReaders = 5 // of each state, for each of the two provider configurations

	loadHTTP, loadTransit, loadGit, loadFiles = 50, 10, 30, 10 // states; together 100

	// maxLoadMemory is what the provider may take at its peak, of which 40 MiB
	// are the program itself. The race detector takes several times as much.
	maxLoadMemory, maxRacedLoadMemory = 192 << 20, 640 << 20 // bytes
)

// loaded are the servers and files of the load test. What the HTTP server
// answers depends on who asks, so that a mix-up changes a value.
type loaded struct {
	http    *stateServer
	transit *openbaotest.Server
	git     *gittest.HTTPServer
	files   string

	mu    sync.Mutex
	asked map[string]int // :: user and place → requests
}

func (l *loaded) count(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[what]++
}

// counts returns the requests so far, and forgets them.
func (l *loaded) counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.asked
	l.asked = map[string]int{}
	return out
}

var loadUsers = []string{"anna", "bert"}

// loadKey is the user's own key, or that which both have.
func loadKey(user string) string {
	first := map[string]string{"anna": "a0", "bert": "b0", "both": "c0"}[user]
	return first + staticKey[2:]
}

func loadState(value string) string {
	return stateWith(value+strings.Repeat("-", 4_000), "x")
}

func newLoaded(t *testing.T) *loaded {
	t.Helper()
	l := &loaded{asked: map[string]int{}, files: t.TempDir()}
	withKey := func(user, state string) []byte {
		return sealedAs(t, strings.ReplaceAll(staticText, staticKey, loadKey(user)), state)
	}
	maker := openbaotest.New(t, transitKey)
	maker.MakesKeys = true
	states := map[string][]byte{} // :: user and path → state
	for _, user := range loadUsers {
		for i := range loadHTTP {
			states[fmt.Sprintf("%s /http/%d", user, i)] = withKey(user, loadState(fmt.Sprintf("%s http %d", user, i)))
		}
		for i := range loadTransit {
			text := fmt.Sprintf("key_provider \"openbao\" \"b\" {\nkey_name = \"k\"\ntoken = \"t\"\naddress = %q\n}\nmethod \"aes_gcm\" \"m\" { "+
				"keys = key_provider.openbao.b }\n%s", maker.URL, stateTarget)
			states[fmt.Sprintf("%s /transit/%d", user, i)] = sealedAs(t, text, loadState(fmt.Sprintf("%s transit %d", user, i)))
		}
	}
	l.http = serve(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if password != "password of "+user {
			t.Errorf("%s came with the credentials of nobody", r.URL)
		}
		l.count(user + " " + r.URL.Path)
		_, _ = w.Write(states[user+" "+r.URL.Path])
	})
	l.transit = openbaotest.New(t, transitKey)
	l.transit.Fault = func(_ http.ResponseWriter, r *http.Request) bool {
		l.count(r.Header.Get("X-Vault-Token") + " decrypts")
		return false
	}
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	var files []gittest.File
	for i := range loadGit {
		files = append(files, gittest.File{Path: fmt.Sprintf("git/%d", i), Data: string(withKey("both", loadState(fmt.Sprintf("git %d", i))))})
	}
	repo.Commit("refs/heads/main", files...)
	l.git = gittest.HTTP(t, repo, gittest.HTTPOptions{Before: func(w http.ResponseWriter, r *http.Request) bool {
		user, password, ok := r.BasicAuth()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if password != "git of "+user {
			t.Errorf("%s came with the credentials of nobody", r.URL)
		}
		l.count(user + " git")
		return false
	}})
	for i := range loadFiles {
		if err := os.WriteFile(filepath.Join(l.files, strconv.Itoa(i)), withKey("both", loadState(fmt.Sprintf("file %d", i))),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// provider is the provider block of one user.
func (l *loaded) provider(user string) string {
	return settings(
		fmt.Sprintf("alias = %q", user),
		entry("key_provider", "static", "own", fmt.Sprintf("key = %q", loadKey(user))),
		entry("key_provider", "static", "both", fmt.Sprintf("key = %q\nencrypted_metadata_alias = \"key_provider.static.k\"", loadKey("both"))),
		openbaoBlock("b", l.transit.URL, fmt.Sprintf("token = %q", user)),
		entry("method", "aes_gcm", "m", `keys = "key_provider.static.own"`),
		entry("method", "aes_gcm", "both", `keys = "key_provider.static.both"`),
		entry("method", "aes_gcm", "transit", `keys = "key_provider.openbao.b"`),
		staticDefault,
		fmt.Sprintf("credentials {\nhttp {\nurl = \"%[1]s/\"\nusername = %[2]q\npassword = \"password of %[2]s\"\n}\ngit {\nurl = "+
			"\"%[3]s/\"\nusername = %[2]q\npassword = \"git of %[2]s\"\n}\n}", l.http.URL, user, l.git.Origin))
}

// data are the data sources of one user, and an output for each kind of source.
func (l *loaded) data(user string) string {
	var out string
	for kind, c := range map[string]struct {
		states         int
		method, source string
	}{
		"http":    {loadHTTP, "method.aes_gcm.m", fromHTTP(l.http.URL + "/http/@")},
		"transit": {loadTransit, "method.aes_gcm.transit", fromHTTP(l.http.URL + "/transit/@")},
		"git":     {loadGit, "method.aes_gcm.both", fromGit(l.git.URL, "main", "git/@")},
		"file":    {loadFiles, "method.aes_gcm.both", fromFile(l.files + "/@")},
	} {
		name := user + "_" + kind
		out += reads(name, "provider = statecrypt."+user, fmt.Sprintf("count = %d", c.states*loadReaders), fmt.Sprintf("method = %q", c.method),
			strings.ReplaceAll(c.source, "@", fmt.Sprintf("${count.index %% %d}", c.states))) +
			output(name, fmt.Sprintf("[for d in data.statecrypt_remote_state.%s : split(\"-\", d.outputs.open)[0]]", name))
	}
	return out
}

// want are the values of the outputs.
func (l *loaded) want(user string) map[string][]string {
	out := map[string][]string{}
	for kind, states := range map[string]int{user + " http": loadHTTP, user + " transit": loadTransit, "git": loadGit, "file": loadFiles} {
		name := user + "_" + strings.TrimPrefix(kind, user+" ")
		for i := range states * loadReaders {
			out[name] = append(out[name], fmt.Sprintf("%s %d", kind, i%states))
		}
	}
	return out
}

// wantCounts compares what was asked with one fetch of each state, and one
// decryption of each key, for each user.
func (l *loaded) wantCounts(t *testing.T) {
	t.Helper()
	got := l.counts()
	want := map[string]int{}
	for _, user := range loadUsers {
		for i := range loadHTTP {
			want[fmt.Sprintf("%s /http/%d", user, i)] = 1
		}
		for i := range loadTransit {
			want[fmt.Sprintf("%s /transit/%d", user, i)] = 1
		}
		want[user+" decrypts"] = loadTransit
		// Who comes while a fetch is under way shares it or the next one, so
		// this depends on the moment: a list of files, and at worst two
		// requests for each file.
		if n := got[user+" git"]; n < 3 || n > 5+3*loadGit {
			t.Errorf("git got %d requests of %s", n, user)
		} else {
			t.Logf("git got %d requests of %s", n, user)
		}
		delete(got, user+" git")
	}
	if !maps.Equal(got, want) {
		t.Errorf("the servers got %v\nwant %v", got, want)
	}
}

// raced reports whether the tests run under the race detector.
var raced = sync.OnceValue(func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
})

// A plan with a thousand data sources on a hundred states, of two provider
// configurations that must share nothing. Where the tests run under the race
// detector, so does the provider.
func TestAccLoad(t *testing.T) {
	needAcceptance(t)
	testkit.OneIsEnough(t)
	t.Parallel()
	l := newLoaded(t)
	config := configuration(l.provider("anna"), l.provider("bert"), l.data("anna"), l.data("bert"))
	p := newProject(t, map[string]string{"main.tf": config})
	limit := int64(maxLoadMemory)
	temp, reports := t.TempDir(), t.TempDir()
	if raced() {
		limit = maxRacedLoadMemory
		dir := t.TempDir()
		cmd := exec.Command("go", "build", "-race", "-trimpath", "-o", filepath.Join(dir, "terraform-provider-statecrypt"), "../..")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		settings := strings.ReplaceAll(cliSettings(t, p), filepath.Dir(builtProvider(t)), dir)
		p.setenv("TF_CLI_CONFIG_FILE="+writeTemp(t, "cli.tfrc", []byte(settings)), "GORACE=log_path="+filepath.Join(reports, "race"))
	}
	p.setenv("TMPDIR=" + temp)

	done := make(chan struct{})
	peaks := make(chan map[int]int64, 1)
	go func() { peaks <- watchMemory(t, temp, done) }()
	begin := time.Now()
	p.mustRun("plan", "-parallelism=50", "-out=plan")
	t.Logf("the plan took %v", time.Since(begin).Round(time.Millisecond))
	close(done)
	peak := <-peaks
	if len(peak) < 2 {
		t.Fatalf("the memory of %d providers was seen, want 2", len(peak))
	}
	if most := slices.Max(slices.Collect(maps.Values(peak))); most > limit {
		t.Errorf("a provider took %d MiB, want at most %d", most>>20, limit>>20)
	} else {
		t.Logf("a provider took at most %d MiB", most>>20)
	}
	for pid, args := range processesOf(t, temp) {
		t.Errorf("process %d is left: %s", pid, args)
	}
	for _, file := range append(filesBelow(t, temp), filesBelow(t, reports)...) {
		text, _ := os.ReadFile(file)
		t.Errorf("%s is left:\n%s", file, text)
	}
	l.wantCounts(t)

	var plan struct {
		Values struct {
			Outputs map[string]struct{ Value []string }
		} `json:"planned_values"`
	}
	if err := json.Unmarshal([]byte(p.mustRun("show", "-json", "plan")), &plan); err != nil {
		t.Fatal(err)
	}
	for _, user := range loadUsers {
		for name, want := range l.want(user) {
			if got := plan.Values.Outputs[name].Value; !slices.Equal(got, want) {
				t.Errorf("%s:\n got %q\nwant %q", name, got, want)
			}
		}
	}
}

func cliSettings(t *testing.T, p *project) string {
	t.Helper()
	for _, pair := range slices.Backward(p.env) {
		if file, ok := strings.CutPrefix(pair, "TF_CLI_CONFIG_FILE="); ok {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
	}
	t.Fatal("the project has no CLI settings")
	return ""
}

// watchMemory returns the peak of each provider process that it saw, in bytes.
func watchMemory(t *testing.T, temp string, done <-chan struct{}) map[int]int64 {
	peak := map[int]int64{}
	for {
		for pid, args := range processesOf(t, temp) {
			if !strings.Contains(args, "terraform-provider-statecrypt") {
				continue
			}
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if _, line, ok := strings.Cut(string(status), "VmHWM:"); ok {
				n, _ := strconv.ParseInt(strings.Fields(line)[0], 10, 64)
				peak[pid] = max(peak[pid], n<<10)
			}
		}
		select {
		case <-done:
			return peak
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// What one provider configuration has read does not help another one that has
// neither the key nor the credentials.
func TestAccAliasesShareNothing(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	l := newLoaded(t)
	const anna = "provider = statecrypt.anna\ncount = 20"
	const bert = "provider = statecrypt.bert\ncount = 20"
	ofAnna := fromFile(writeTemp(t, "state", sealedAs(t, strings.ReplaceAll(staticText, staticKey, loadKey("anna")), loadState("x"))))
	p := newProject(t, map[string]string{"main.tf": configuration(l.provider("anna"), l.provider("bert"), reads("anna", anna, ofAnna),
		reads("bert", bert, ofAnna))})
	out, err := p.run("plan", "-parallelism=50")
	if err == nil || strings.Count(out, "data.statecrypt_remote_state.bert[") < 20 ||
		strings.Contains(out, "with data.statecrypt_remote_state.anna[") || !says(headed(stepDecrypt)...).MatchString(out) {
		t.Errorf("want an error for each of bert's, and none of anna's: %v\n%s", err, out)
	}
}

// A thousand reads at once, without a CLI, leave neither goroutines nor open
// files behind; and after a stop, none is begun until the next configuration.
func TestManyReadsLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("many reads take long")
	}
	begin := leftovers(t)
	t.Run("reads", func(t *testing.T) {
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		l := newLoaded(t)
		server := NewServer("test")
		configure := func() {
			value := server.block.sends(t, map[string]cty.Value{
				"key_provider": one(map[string]cty.Value{"static": one(map[string]cty.Value{"name": text1("k"), "key": text1(loadKey("both"))})}),
				"method": one(map[string]cty.Value{"aes_gcm": one(map[string]cty.Value{"name": text1("m"),
					"keys": text1("key_provider.static.k")})}),
				"credentials": one(map[string]cty.Value{"git": one(map[string]cty.Value{"url": text1(l.git.Origin + "/"), "username": text1("anna"),
					"password": text1("git of anna")})}),
			})
			if resp, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: &value}); err != nil ||
				len(resp.Diagnostics) > 0 {
				t.Fatalf("%v, %v", err, resp)
			}
		}
		read := func(i int) (problem string) {
			place := map[string]cty.Value{"git": one(map[string]cty.Value{"repository": text1(l.git.URL), "ref": text1("main"),
				"path": text1(fmt.Sprintf("git/%d", i%loadGit))})}
			if i%2 == 0 {
				place = map[string]cty.Value{"file": one(map[string]cty.Value{"path": text1(filepath.Join(l.files, strconv.Itoa(i%loadFiles)))})}
			}
			place["method"] = text1("method.aes_gcm.m")
			value := server.dataSources["statecrypt_remote_state"].sends(t, place)
			resp, err := server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: "statecrypt_remote_state", Config: &value})
			if err != nil {
				return err.Error()
			}
			for _, d := range resp.Diagnostics {
				if d.Severity == tfprotov6.DiagnosticSeverityError {
					return d.Detail
				}
			}
			return ""
		}
		all := func(n int, want string) {
			t.Helper()
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					if got := read(i); want == "" && got != "" || !strings.Contains(got, want) {
						t.Errorf("read %d: %q, want %q", i, got, want)
					}
				})
			}
			wg.Wait()
		}
		configure()
		all(1000, "")
		if len(l.counts()) == 0 {
			t.Error("nothing was read")
		}
		server.Stop()
		all(100, errStopped.Error()[1:])
		if asked := l.counts(); len(asked) > 0 {
			t.Errorf("after a stop, the servers got %v", asked)
		}
		configure()
		all(100, "")
		if left := filesBelow(t, temp); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
	// The servers of the test have to end as well.
	end := leftovers(t)
	for try := 0; try < 6000 && (end.goroutines > begin.goroutines || end.files > begin.files); try++ {
		time.Sleep(10 * time.Millisecond)
		end = leftovers(t)
	}
	if end.goroutines > begin.goroutines || end.files > begin.files {
		stacks := make([]byte, 1<<20)
		t.Errorf("before: %+v, after: %+v\n%s", begin, end, stacks[:runtime.Stack(stacks, true)])
	}
}

type left struct{ goroutines, files int }

func leftovers(t *testing.T) left {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return left{runtime.NumGoroutine(), len(files)}
}
