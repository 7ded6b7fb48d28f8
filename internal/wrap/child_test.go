package wrap_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestMain is the child as well, if a script for one is set.
func TestMain(m *testing.M) {
	if script := os.Getenv("WRAP_TEST_SCRIPT"); script != "" {
		os.Exit(play(script))
	}
	m.Run()
}

// play is a child that talks to its backend. Each word of the script is a step.
// It ends with the first status that is not a success.
func play(script string) int {
	signals := make(chan os.Signal, 9)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	for _, arg := range os.Args {
		if dir, ok := strings.CutPrefix(arg, "-chdir="); ok {
			_ = os.Chdir(dir)
		}
	}
	if version := os.Getenv("WRAP_TEST_VERSION"); version != "" && slices.Contains(os.Args, "version") {
		fmt.Println(version) //nolint:forbidigo // a program of its own
		return 0
	}
	if text, err := os.ReadFile("backend.json"); err == nil { // it is asked what the hash of the block is
		if said := os.Getenv("WRAP_TEST_FAILS"); said != "" {
			fmt.Fprintln(os.Stderr, said, string(text), os.Getenv("TF_LOG"), os.Getenv("TF_LOG_CORE"))
			return 1
		}
		if pipe := os.Getenv("WRAP_TEST_ASKED"); pipe != "" {
			_ = os.WriteFile(pipe, nil, 0o600)
			<-signals
			return 1
		}
		_ = os.Mkdir(os.Getenv("TF_DATA_DIR"), 0o700)
		record := `{"backend":{"type":"http","config":` + string(text) + `,"hash":` + hash + `}}`
		_ = os.WriteFile(filepath.Join(os.Getenv("TF_DATA_DIR"), "terraform.tfstate"), []byte(record), 0o600)
		return 0
	}
	for step := range strings.FieldsSeq(script) {
		name, argument, _ := strings.Cut(step, "=")
		switch name {
		case "environ":
			fmt.Println(strings.Join(os.Environ(), "\n")) //nolint:forbidigo // a program of its own
		case "backend":
			record, _ := os.ReadFile(filepath.Join(os.Getenv("TF_DATA_DIR"), "terraform.tfstate"))
			fmt.Println(string(record)) //nolint:forbidigo // a program of its own
		case "arguments":
			fmt.Printf("%q\n", os.Args[1:]) //nolint:forbidigo // a program of its own
		case "report": // goes on there
			connection, err := new(net.Dialer).DialContext(context.Background(), "tcp", argument)
			if err == nil {
				os.Stdout, err = connection.(*net.TCPConn).File() //nolint:forcetypeassert // it is one
			}
			if err != nil {
				return 99
			}
			_ = connection.Close()
		case "modes": // of the files that the arguments name
			for _, arg := range os.Args {
				if info, err := os.Stat(arg); err == nil && filepath.IsAbs(arg) && !info.IsDir() {
					fmt.Println("mode", info.Mode()) //nolint:forbidigo // a program of its own
				}
			}
		case "ready":
			fmt.Println("ready") //nolint:forbidigo // a program of its own
		case "descriptors":
			_ = os.WriteFile(argument, []byte(descriptors()), 0o600)
		case "pid":
			fmt.Println("pid", os.Getpid()) //nolint:forbidigo // a program of its own
		case "wait":
			_, _ = io.Copy(io.Discard, os.Stdin)
		case "pulled":
			if slices.Contains(os.Args, "pull") {
				module, _ := os.ReadFile("main.tf.json")
				module = append(module, os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")+os.Getenv("GOOGLE_BACKEND_CREDENTIALS")...)
				fmt.Printf(`{"version":4,"serial":1,"lineage":%q,"outputs":{},"resources":[]}`, module) //nolint:forbidigo // a program of its own
				return 0
			}
			if _, err := os.Stat("main.tf.json"); err == nil {
				return 0
			}
		case "former": // reads it as the backend "http" does
			if !slices.Contains(os.Args, "pull") {
				if _, err := os.Stat("main.tf.json"); err == nil {
					return 0
				}
				continue
			}
			return pullFormer()
		case "signal":
			fmt.Println("got", <-signals) //nolint:forbidigo // a program of its own
		case "pending":
			fmt.Println("pending signals:", len(signals)) //nolint:forbidigo // a program of its own
		case "exit":
			var code int
			_, _ = fmt.Sscan(argument, &code)
			return code
		case "wrap":
			return wrapAgain(strings.Split(argument, ","))
		case "restore":
			return restoreAgain(argument)
		case "POSTLARGE":
			request("POST", backend("address"), large(8<<20))
		case "apply": // sends a state, or leaves it, or prints it, as Terraform does
			var size int
			text, fills := strings.CutSuffix(argument, ",fill")
			_, _ = fmt.Sscan(text, &size)
			if request("POST", backend("address"), large(size)) < 300 {
				continue
			}
			if os.WriteFile("errored.tfstate", []byte(large(size)), 0o600) != nil {
				fmt.Println(large(size)) //nolint:forbidigo // a program of its own
			}
			if fills { // the disk
				_ = os.WriteFile("more", make([]byte, 64<<20), 0o600)
			}
			return 1
		case "die":
			signalSelf(syscall.SIGKILL)
		case "reset":
			_ = os.WriteFile(filepath.Join(os.Getenv("TF_DATA_DIR"), "terraform.tfstate"), []byte(argument), 0o600)
		case "move":
			from, to, _ := strings.Cut(argument, ",")
			_ = os.Rename(from, to)
		case "mkdir":
			for dir := range strings.SplitSeq(argument, ",") {
				_ = os.Mkdir(dir, 0o700)
			}
		case "rmdir":
			for dir := range strings.SplitSeq(argument, ",") {
				_ = os.Remove(dir)
			}
		case "leave":
			name, text, _ := strings.Cut(argument, ",")
			_ = os.WriteFile(name, []byte(cmp.Or(text, state)), 0o600)
		case "save":
			plan, _ := os.ReadFile(argument)
			for _, arg := range os.Args {
				if out, ok := strings.CutPrefix(arg, "-out="); ok && out != "" {
					_ = os.WriteFile(out, plan, 0o600)
				}
			}
		default:
			address := backend("address")
			if strings.HasSuffix(name, "LOCK") {
				address = backend(strings.ToLower(name) + "_address")
			}
			if method, lock, ok := strings.Cut(name, ":"); ok {
				name, address = method, address+"?ID="+lock
			}
			if status := request(name, address, argument); status >= 300 && status != http.StatusNotFound {
				fmt.Println(name, "was answered", status) //nolint:forbidigo // a program of its own
				return 9
			}
		}
	}
	return 0
}

// large is a state with a secret and a text of this size.
func large(size int) string {
	text := `"outputs":{"x":{"type":"string","value":"` + canary + strings.Repeat("x", size) + `"}}`
	return strings.NewReplacer(`"outputs":{}`, text, `"serial":1`, `"serial":2`).Replace(state)
}

// pullFormer prints the state of a backend "http", which a module and variables describe.
func pullFormer() int {
	var module struct {
		Terraform struct {
			Backend map[string]struct{ Address string }
		}
	}
	text, _ := os.ReadFile("main.tf.json")
	_ = json.Unmarshal(text, &module)
	address := cmp.Or(module.Terraform.Backend["http"].Address, os.Getenv("TF_HTTP_ADDRESS"))
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, http.NoBody)
	if err != nil {
		return 99
	}
	req.SetBasicAuth(os.Getenv("TF_HTTP_USERNAME"), os.Getenv("TF_HTTP_PASSWORD"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return 98
	}
	defer resp.Body.Close()
	_, _ = io.Copy(os.Stdout, resp.Body)
	return 0
}

// wrapAgain is wrap as a program, for tests that kill it.
func wrapAgain(command []string) int {
	o, err := optionsOfProgram(command)
	if err != nil {
		return 99
	}
	code, _ := wrap.Run(context.Background(), o)
	return code
}

// restoreAgain is restore as a program.
func restoreAgain(version string) int {
	o, err := optionsOfProgram(nil)
	if err == nil {
		err = wrap.Restore(context.Background(), o, restoring(version, func(string) bool { return true }))
	}
	if err != nil {
		fmt.Println(err) //nolint:forbidigo // a program of its own
		return 1
	}
	return 0
}

func optionsOfProgram(command []string) (o wrap.Options, err error) {
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(cmp.Or(os.Getenv("WRAP_TEST_KEYS"), sealing), "test.hcl"))
	if err != nil {
		return o, err
	}
	o = wrap.Options{
		Keys: states.Keys{State: enc.State()}, Command: command, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: append(os.Environ(), "WRAP_TEST_SCRIPT="+os.Getenv("WRAP_TEST_CHILD_SCRIPT")),
	}
	if path := os.Getenv("WRAP_TEST_FILE"); path != "" {
		o.Where.Backend = fileBlock(path)
	}
	if repository := os.Getenv("WRAP_TEST_GIT"); repository != "" {
		o.Where.Backend = gitBlock(repository)
	}
	o.Wishes.Leave = slices.Contains(command, "-migrate-state")
	if url := os.Getenv("WRAP_TEST_S3"); url != "" {
		o.Where.Backend = s3Block(inStore(url))
	}
	if endpoint := os.Getenv("WRAP_TEST_GCS"); endpoint != "" {
		o.Where.Backend = gcsBlock(endpoint)
	}
	if address := os.Getenv("WRAP_TEST_AZURE"); address != "" {
		o.Where.Backend = azureBlock(address)
	}
	return o, nil
}

// hash is the hash of the block backend "http" {} of this program.
const hash = "4711"

// backend returns an argument of the backend that the record names, which is read once, as the CLIs do.
func backend(argument string) string {
	value, _ := recorded().Backend.Config[argument].(string)
	return value
}

type record struct {
	Backend struct{ Config map[string]any }
}

// recorded returns the record in the data directory.
var recorded = sync.OnceValue(func() (r record) {
	text, _ := os.ReadFile(filepath.Join(os.Getenv("TF_DATA_DIR"), "terraform.tfstate"))
	_ = json.Unmarshal(text, &r)
	return r
})

func request(method, address, body string) int {
	req, _ := http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body))
	req.SetBasicAuth(backend("username"), backend("password"))
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM([]byte(backend("client_ca_certificate_pem")))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 999
	}
	defer resp.Body.Close()
	content, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s %d %s\n", method, resp.StatusCode, content) //nolint:forbidigo // a program of its own
	return resp.StatusCode
}

// empty is the only backend that a module may have.
const empty = `backend "http" {}`

// scripted is a run of a child that plays a script, in a folder with a module.
func scripted(t *testing.T, s *store, script string, args ...string) (o wrap.Options, dir string, out *lines) {
	t.Helper()
	dir = t.TempDir()
	program := filepath.Join(t.TempDir(), "terraform")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, program); err != nil {
		t.Skip(err)
	}
	write(t, filepath.Join(dir, "main.tf"), inside(empty))
	out = &lines{}
	return wrap.Options{
		Keys: states.Keys{State: target(t, sealing)}, Command: append([]string{program, "-chdir=" + dir}, args...),
		Environ: append(append(os.Environ(), s.environ()...), "WRAP_TEST_SCRIPT="+script, "TF_ENCRYPTION="+canary),
		Stdin:   strings.NewReader(""), Stdout: out, Stderr: out,
	}, dir, out
}

// run runs, and returns what wrap itself says on the way.
func run(t *testing.T, o wrap.Options) (code int, err error, said string) { //nolint:staticcheck // in the order of Run
	t.Helper()
	told := &lines{}
	o.Stderr = told
	code, err = wrap.Run(t.Context(), o)
	return code, err, told.String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A child reads and writes through us, and its exit code comes back.
//
// Promise: Only encrypted states
func TestRun(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "run")
	for name, c := range map[string]struct {
		script string
		args   []string
		stored string // before
		held   bool   // someone has the lock
	}{
		"reads and writes":              {script: "GET LOCK={} POST=" + state + " UNLOCK={}", args: []string{"apply"}},
		"exit code":                     {script: "GET exit=3", args: []string{"plan"}},
		"killed":                        {script: "die", args: []string{"plan"}},
		"lock alone":                    {script: "LOCK={} UNLOCK={}", args: []string{"apply"}},
		"lock alone, code":              {script: "LOCK={} exit=4", args: []string{"apply"}},
		"nothing asked":                 {script: "ready", args: []string{"apply"}},
		"help":                          {script: "ready", args: []string{"apply", "-help"}},
		"lock denied":                   {script: "LOCK={}", args: []string{"apply"}, held: true},
		"unlocked":                      {script: "GET UNLOCK={}", args: []string{"force-unlock", "1"}},
		"plaintext":                     {script: "GET", args: []string{"plan"}, stored: state},
		"changed meanwhile":             {script: `GET reset={"backend":{"type":"s3"}}`, args: []string{"plan"}},
		"a state store meanwhile":       {script: `GET reset={"backend":{"type":"http"},"state_store":{}}`, args: []string{"plan"}},
		"no backend meanwhile":          {script: `GET reset={}`, args: []string{"plan"}},
		"init elsewhere":                {script: `GET reset={"backend":{"type":"http","config":{"address":"x"}}}`, args: []string{"init"}},
		"elsewhere, and failed":         {script: `GET reset={"backend":{"type":"s3"}} exit=3`, args: []string{"state", "rm", "x"}},
		"a file":                        {script: "GET leave=terraform.tfstate exit=5", args: []string{"taint", "x"}},
		"two files":                     {script: "GET leave=terraform.tfstate leave=terraform.tfstate.backup", args: []string{"taint", "x"}},
		"a sealed file, and another":    {script: "GET move=sealed,errored.tfstate leave=terraform.tfstate", args: []string{"apply"}},
		"a sealed file":                 {script: "GET move=sealed,terraform.tfstate", args: []string{"apply"}},
		"a file that was to be a state": {script: "GET leave=errored.tfstate exit=1", args: []string{"apply"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			if c.stored != "" {
				s.put([]byte(c.stored))
			}
			if name == "killed" {
				needSignals(t)
			}
			if c.held {
				s.hold([]byte(`{"ID":"1"}`))
			}
			o, dir, _ := scripted(t, s, c.script, c.args...)
			write(t, filepath.Join(dir, "sealed"), string(seal(t, sealing, state)))
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
		})
	}
}

// The keys, and the password of the backend, are not in the environment of the
// child, nor in anything that is printed.
//
// Promise: Only encrypted states
func TestEnvironment(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	o, _, out := scripted(t, s, "environ backend GET", "plan")
	o.Withhold = []string{"TF_VAR_key"}
	o.Environ = append(o.Environ, "TF_VAR_key="+canary, "TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE="+canary, "tf_http_password="+canary,
		"TF_HTTP_ADDRESS="+canary, "TF_HTTP_SKIP_CERT_VERIFICATION="+canary, "TF_HTTP_CLIENT_PRIVATE_KEY_PEM=",
		"STATECRYPT_HTTP_LOCK_METHOD="+canary,
		"TF_HTTP_SOMETHING_NEW="+canary, "AWS_PROFILE=kept", "TF_VAR_region=kept")
	var told strings.Builder
	o.Stderr = &told
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, out)
	}
	text := out.String()
	if strings.Contains(text+told.String(), canary) || strings.Contains(text, strings.TrimPrefix(s.url, "http://")) {
		t.Errorf("the child has this:\n%s", text)
	}
	if strings.Contains(text, "TF_HTTP_") {
		t.Errorf("the environment names a backend:\n%s", text)
	}
	for _, kept := range []string{
		"AWS_PROFILE=kept", "TF_VAR_region=kept", `"retry_max":0`, `"address":"https://127.0.0.1:`, "GET 404",
	} {
		if !strings.Contains(text, kept) {
			t.Errorf("%q is missing:\n%s", kept, text)
		}
	}
}

// TestEnvironmentInGit: a password that is for the repository alone is not for the child.
func TestEnvironmentInGit(t *testing.T) {
	t.Parallel()
	o, _, out := scripted(t, newStore(t), "environ", "plan")
	o.Where.Backend = gitBlock(newRepository(t, "").FileURL())
	o.Environ = append(o.Environ, "GIT_PASSWORD="+canary, "GIT_PASSWORD_FILE="+canary, "GITHUB_TOKEN=kept")
	o.Stderr = io.Discard
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, out)
	}
	if text := out.String(); strings.Contains(text, canary) || !strings.Contains(text, "GITHUB_TOKEN=kept") {
		t.Errorf("the child has this:\n%s", text)
	}
}

// A variable that the child does not get, and that its module declares, is named before
// the child fails for want of it.
func TestWithheldVariables(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "withheld")
	const variable = `variable "key" {}`
	for name, c := range map[string]struct {
		says  string
		files map[string]string
		noted bool
	}{
		"declared":                    {files: map[string]string{"more.tf": "variable \"key\" { type = string }\n"}, noted: true},
		"without quotation marks":     {files: map[string]string{"more.tf": "  variable  key{\n}\n"}, noted: true},
		"in JSON":                     {files: map[string]string{"more.tf.json": `{"variable":{"key":{}}}`}, noted: true},
		"others":                      {files: map[string]string{"more.tf": "variable \"keys\" {}\nvariable \"other\" {}\n"}},
		"in a comment":                {files: map[string]string{"more.tf": "# " + variable}},
		"in a text":                   {files: map[string]string{"more.tf": "locals {\n x = <<E\n" + variable + "\nE\n}\n"}},
		"Terraform, OpenTofu's file":  {says: "Terraform v1.11.4", files: map[string]string{"more.tofu": variable}},
		"OpenTofu, its file":          {says: "OpenTofu v1.12.6", files: map[string]string{"more.tofu": variable}, noted: true},
		"OpenTofu, its file in place": {says: "OpenTofu v1.12.6", files: map[string]string{"more.tf": variable, "more.tofu": "locals {}"}},
	} {
		o, dir, _ := scripted(t, newStore(t), "GET", "plan")
		for file, text := range c.files {
			write(t, filepath.Join(dir, file), text)
		}
		o.Withhold = []string{"TF_VAR_key", "TF_VAR_other"}
		o.Environ = append(o.Environ, "TF_VAR_key="+canary, "WRAP_TEST_VERSION="+c.says)
		code, err, told := run(t, o)
		mistakes.Ended(t, name, told, code, err)
		if strings.Contains(told, "TF_VAR_key") != c.noted {
			t.Errorf("%s: got %s", name, told)
		}
	}
}

// After a signal, the child still writes its state, and its exit code comes back.
// It is signalled once.
func TestSignals(t *testing.T) {
	needSignals(t)
	for name, interrupt := range map[string]func(cancel func()){
		"interrupt":  func(func()) { signalSelf(syscall.SIGINT) },
		"terminated": func(func()) { signalSelf(syscall.SIGTERM) },
		"given up":   func(cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			o, _, out := scripted(t, s, "GET ready signal POST="+state+" pending exit=7", "apply")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ready := out.expect("ready")
			go func() {
				<-ready
				interrupt(cancel)
			}()
			code, err := wrap.Run(ctx, o)
			if code != 7 || err != nil || !strings.Contains(out.String(), "pending signals: 0") {
				t.Errorf("%d, %v\n%s", code, err, out)
			}
			s.checkSealed(t, `"lineage":"l","outputs"`)
		})
	}
}

// If wrap is killed while it sends a state, the old one stays.
//
// Promise: Only encrypted states
func TestKilled(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	old := seal(t, sealing, state)
	s.put(old)
	o, _, out := scripted(t, s, "GET POSTLARGE", "apply")
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
	cmd.Env = append(o.Environ, "WRAP_TEST_SCRIPT=wrap="+strings.Join(o.Command, ","), "WRAP_TEST_CHILD_SCRIPT=GET POSTLARGE")
	cmd.Stdout, cmd.Stderr = out, out
	sent, killed := make(chan int, 1), make(chan struct{})
	s.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		n, _ := io.ReadFull(r.Body, make([]byte, 1<<20))
		sent <- n
		<-killed
		return false
	})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("it sent nothing: %v\n%s", err, out)
	case n := <-sent:
		_ = cmd.Process.Kill()
		close(killed)
		<-ended
		if n != 1<<20 || !bytes.Equal(s.stored(), old) {
			t.Errorf("after %d bytes, this is stored: %.300s\n%s", n, s.stored(), out)
		}
	}
}
