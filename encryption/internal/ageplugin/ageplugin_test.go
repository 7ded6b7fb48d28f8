//go:build unix

package ageplugin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/plugin"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// TestMain is also the program of all plugins here: links to this test in a folder of
// PATH. Which one it is, its name says.
func TestMain(m *testing.M) {
	if name, ok := strings.CutPrefix(filepath.Base(os.Args[0]), "age-plugin-"); ok {
		syscall.Exit(serve(name, os.Args[1:])) // without a second that the race detector waits
	}
	dir, err := os.MkdirTemp("", "plugins")
	if err == nil {
		err = os.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	}
	self, selfErr := os.Executable()
	for _, name := range append(slices.Collect(maps.Keys(faults)), "x25519", "environment", "hang") {
		err = errors.Join(err, selfErr, os.Symlink(self, filepath.Join(dir, "age-plugin-"+name)))
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// wire is the side of a plugin, written from the specification.
type wire struct{ stdin *bufio.Scanner }

// hears returns the next command of the client, with its arguments, and its body.
func (w wire) hears() (command, body string) {
	if !w.stdin.Scan() {
		return "the end", ""
	}
	command = strings.TrimPrefix(w.stdin.Text(), "-> ")
	var encoded strings.Builder
	for w.stdin.Scan() {
		if n, _ := encoded.WriteString(w.stdin.Text()); n < 64 {
			break
		}
	}
	text, _ := base64.RawStdEncoding.DecodeString(encoded.String())
	return command, string(text)
}

// says returns the answer of the client.
func (w wire) says(command, body string) string {
	text := base64.RawStdEncoding.EncodeToString([]byte(body))
	fmt.Printf("-> %s\n", command)
	for ; len(text) >= 64; text = text[64:] {
		fmt.Println(text[:64])
	}
	fmt.Println(text)
	answer, _ := w.hears()
	return answer
}

func (w wire) wants(command, body, answer string) {
	if got := w.says(command, body); got != answer {
		fmt.Fprintf(os.Stderr, "to %s, the answer is %q\n", command, got)
		os.Exit(1)
	}
}

// identity holds a secret of its own.
var (
	canary   = "canary: the identity of a plugin"
	identity = func(name string) string { return plugin.EncodeIdentity(name, []byte(canary)) }
	fileKey  = "0123456789abcdef"
)

const done = "-> done\n\n"

// fault is what a plugin does when it has been told everything.
type fault struct {
	does func(w wire)

	fails, none bool // it gives an error, or no key
}

var faults = map[string]fault{
	"right": {does: func(w wire) { w.wants("file-key 0", fileKey, "ok"); fmt.Print(done) }},
	"talks": {does: func(w wire) {
		w.wants("msg", "touch it", "ok")
		w.wants("grease-x 1 2", strings.Repeat("grease", 100), "unsupported")
		w.wants("file-key 0", fileKey, "ok")
		fmt.Print(done)
	}},
	"pieces": {does: func(wire) {
		for _, c := range []byte("-> file-key 0\n" + base64.RawStdEncoding.EncodeToString([]byte(fileKey)) + "\n" + done) {
			_, _ = os.Stdout.Write([]byte{c})
		}
	}},
	"lingers": {does: func(w wire) {
		w.wants("file-key 0", fileKey, "ok")
		fmt.Print(done)
		time.Sleep(time.Hour)
	}},
	"complains-at-the-end": {does: func(w wire) {
		w.wants("file-key 0", fileKey, "ok")
		fmt.Print(done)
		os.Exit(1)
	}},
	"none":       {does: func(wire) { fmt.Print(done) }, none: true},
	"fails":      {does: func(wire) { os.Exit(3) }, fails: true},
	"says-why":   {does: func(wire) { fmt.Fprint(os.Stderr, "why\x1b[31m"); os.Exit(3) }, fails: true},
	"leaves":     {does: func(wire) {}, fails: true},
	"garbage":    {does: func(wire) { fmt.Println("hello") }, fails: true},
	"no-command": {does: func(wire) { fmt.Println("-> ") }, fails: true},
	"bad-words":  {does: func(wire) { fmt.Println("-> msg \x1b[31m") }, fails: true},
	"bad-body":   {does: func(wire) { fmt.Println("-> msg\n%%%") }, fails: true},
	"loose-body": {does: func(wire) { fmt.Println("-> msg\nAB") }, fails: true},
	"long-body":  {does: func(wire) { fmt.Println("-> msg\n" + strings.Repeat("A", 68)) }, fails: true},
	"windows":    {does: func(wire) { fmt.Println("-> msg\nAAAA\r") }, fails: true},
	"endless": {does: func(w wire) {
		for w.says("msg", "hello") == "ok" {
		}
		time.Sleep(time.Hour)
	}, fails: true},
	"deaf": {does: func(wire) {
		for {
			fmt.Print("-> msg\n\n")
		}
	}, fails: true},
	"flood": {does: func(wire) {
		for {
			fmt.Print(strings.Repeat("x", 1<<16))
		}
	}, fails: true},
	"short-key":  {does: func(w wire) { w.says("file-key 0", "short") }, fails: true},
	"long-key":   {does: func(w wire) { w.says("file-key 0", fileKey+"0") }, fails: true},
	"other-file": {does: func(w wire) { w.says("file-key 1", fileKey) }, fails: true},
	"no-file":    {does: func(w wire) { w.says("file-key", fileKey) }, fails: true},
	"two-keys": {does: func(w wire) {
		w.wants("file-key 0", fileKey, "ok")
		w.says("file-key 0", fileKey)
	}, fails: true},
	"error": {does: func(w wire) {
		w.says("error identity 0", "the \x1b[31mkey "+identity("error")+" is not plugged in"+strings.Repeat("!", 1000))
	}, fails: true},
	"secret":  {does: func(w wire) { w.wants("request-secret", "Enter the PIN", "fail"); fmt.Print(done) }, fails: true},
	"public":  {does: func(w wire) { w.wants("request-public", "Who?", "fail"); fmt.Print(done) }, fails: true},
	"confirm": {does: func(w wire) { w.wants("confirm WWVz Tm8", "Plug it in", "fail"); fmt.Print(done) }, fails: true},
	"message": {does: func(w wire) { w.wants("msg", "Touch\x07 it", "ok"); os.Exit(1) }, fails: true},
	"key-and-fails": {does: func(w wire) {
		w.wants("file-key 0", fileKey, "ok")
		w.wants("msg", "gave "+fileKey, "ok")
		fmt.Fprintf(os.Stderr, "%s %x\n", fileKey, fileKey)
		os.Exit(1)
	}, fails: true},
	"key-and-error": {does: func(w wire) {
		w.wants("file-key 0", fileKey, "ok")
		w.says("error internal", "after "+fileKey)
	}, fails: true},
	"prints-it": {does: func(wire) { fmt.Fprintln(os.Stderr, identity("prints-it")); os.Exit(1) }, fails: true},

	// These are asked to encrypt.
	"wrap-right": {does: func(w wire) {
		w.wants("labels", "", "ok")
		w.wants("grease", "", "unsupported")
		w.wants("recipient-stanza 0 x y", strings.Repeat("z", 48), "ok")
		w.wants("recipient-stanza 0 z", "", "ok")
		fmt.Print(done)
	}},
	"wrap-nothing": {does: func(wire) { fmt.Print(done) }, fails: true},
	"wrap-refused": {does: func(w wire) { w.wants("request-secret", "PIN", "fail"); fmt.Print(done) }, fails: true},
	"wrap-other":   {does: func(w wire) { w.says("recipient-stanza 1 x", "") }, fails: true},
	"wrap-empty":   {does: func(w wire) { w.says("recipient-stanza 0", "") }, fails: true},
	"wrap-labels":  {does: func(w wire) { w.wants("labels a", "", "ok"); w.says("labels b", "") }, fails: true},
	"wrap-error":   {does: func(w wire) { w.says("error recipient 0", "no") }, fails: true},
	"wrap-key":     {does: func(w wire) { w.wants("file-key 0", fileKey, "unsupported"); fmt.Print(done) }, fails: true},
	"wrap-leaks":   {does: func(wire) { fmt.Fprintln(os.Stderr, fileKey); os.Exit(1) }, fails: true},
	"wrap-tells": {does: func(w wire) {
		w.wants("msg", "have "+fileKey, "ok")
		w.wants("request-secret", "PIN for "+base64.RawStdEncoding.EncodeToString([]byte(fileKey)), "fail")
		w.says("error recipient 0", fmt.Sprintf("no %s, %x", fileKey, fileKey))
	}, fails: true},
	"wrap-fails": {does: func(wire) { os.Exit(2) }, fails: true},
}

// serve is the program of the plugin called name.
func serve(name string, args []string) int {
	dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	switch name {
	case "x25519": // by age's own package for plugins; the data is a key of age as text
		p, _ := plugin.New(name)
		p.HandleRecipient(func(data []byte) (age.Recipient, error) { return age.ParseX25519Recipient(string(data)) })
		p.HandleIdentity(func(data []byte) (age.Identity, error) { return age.ParseX25519Identity(string(data)) })
		p.HandleIdentityAsRecipient(func(data []byte) (age.Recipient, error) {
			i, err := age.ParseX25519Identity(string(data))
			if err != nil {
				return nil, err
			}
			return i.Recipient(), nil
		})
		return p.Main()
	case "environment":
		text := strings.Join(append(args, os.Environ()...), "\n") + "\n"
		if os.WriteFile(filepath.Join(dir, "saw"), []byte(text), 0o600) != nil {
			return 1
		}
	case "hang":
		if os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600) != nil {
			return 1
		}
		time.Sleep(time.Hour)
	}
	w := wire{bufio.NewScanner(os.Stdin)}
	for command := ""; command != "done"; {
		if command, _ = w.hears(); command == "the end" {
			fmt.Fprintln(os.Stderr, "nothing more is said")
			return 1
		}
	}
	if name == "environment" {
		fmt.Print(done)
		return 0
	}
	faults[name].does(w)
	return 0
}

func parsed(t *testing.T, text string) *Plugin {
	t.Helper()
	p, err := Parse(text, world.World{})
	if err != nil {
		t.Fatal(err)
	}
	return p.In(t.Context())
}

// golden has the texts of a group of errors, in which there is neither a secret nor a control character.
func golden(t *testing.T, group string) *testkit.Golden {
	t.Helper()
	return testkit.OpenGolden(t, "../../testdata/mistakes.txt", "plugins of age, "+group, "\x1b", "\x07", fileKey, fmt.Sprintf("%x", fileKey),
		identity("x")[len("AGE-PLUGIN-X-1"):][:40])
}

func isError(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*Error](err); !ok {
		t.Errorf("got %v", err)
	}
}

// A plugin may do anything. What it does wrong is an error that names it and the step,
// escaped, cut and without secrets; so is what it asks for, because nobody is there.
func TestFaults(t *testing.T) {
	t.Parallel()
	says := golden(t, "faults")
	for name, c := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			var err error
			if strings.HasPrefix(name, "wrap-") {
				var stanzas []*age.Stanza
				stanzas, _, err = parsed(t, plugin.EncodeRecipient(name, []byte("r"))).WrapWithLabels([]byte(fileKey))
				if !c.fails && (err != nil || len(stanzas) != 2 || stanzas[0].Type != "x" || stanzas[0].Args[0] != "y" ||
					string(stanzas[0].Body) != strings.Repeat("z", 48) || stanzas[1].Type != "z" || len(stanzas[1].Body) > 0) {
					t.Errorf("got %v, %v", stanzas, err)
				}
			} else {
				var key []byte
				p := parsed(t, identity(name))
				var shown []string
				p.ctx = notice.With(p.ctx, func(text string) { shown = append(shown, text) })
				key, err = p.Unwrap([]*age.Stanza{{Type: "X25519", Args: []string{"a"}, Body: bytes.Repeat([]byte("b"), 1<<20)}})
				if gives := !c.fails && !c.none; gives && (err != nil || string(key) != fileKey) || p.Gave() != gives {
					t.Errorf("got %q, %v", key, err)
				}
				if name == "message" && !slices.Equal(shown, []string{`"age-plugin-message" says "Touch\u0007 it"`}) {
					t.Errorf("it showed %q", shown)
				}
			}
			if c.none && (!errors.Is(err, age.ErrIncorrectIdentity) || errors.As(err, new(*Error))) {
				t.Errorf("got %v", err)
			}
			if c.fails {
				isError(t, err)
				says.Error(t, name, err)
			}
			if took := time.Since(begin); name == "lingers" && took > 45*time.Second { // and not until its time is over
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A plugin that age's own package makes, which sends grease at random.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity := plugin.EncodeIdentity("x25519", []byte(key.String()))
	for range 3 {
		for _, text := range []string{plugin.EncodeRecipient("x25519", []byte(key.Recipient().String())), identity} {
			var file bytes.Buffer
			w, err := age.Encrypt(&file, parsed(t, text))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = io.WriteString(w, "hello"); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			for _, identity := range []age.Identity{key, parsed(t, identity)} {
				r, err := age.Decrypt(bytes.NewReader(file.Bytes()), identity)
				if err != nil {
					t.Fatal(err)
				}
				if text, err := io.ReadAll(r); err != nil || string(text) != "hello" {
					t.Errorf("got %q, %v", text, err)
				}
			}
		}
	}
}

// A plugin that hangs is stopped with the context, and when its time is over.
func TestHang(t *testing.T) {
	t.Parallel()
	dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	pid := func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "pid"))
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
	p := parsed(t, identity("hang"))
	for p.program.Patience = time.Second / 8; pid() == 0; p.program.Patience *= 2 { // until it is enough to start
		_, err := p.Unwrap(nil)
		isError(t, err)
	}
	waitForEnd(t, pid())
	if err := os.Remove(filepath.Join(dir, "pid")); err != nil {
		t.Fatal(err)
	}
	p.program.Patience = 10 * time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for pid() == 0 && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	for name, ask := range map[string]func(*Plugin) error{
		"unwrap": func(p *Plugin) error { _, err := p.Unwrap(nil); return err },
		"wrap":   func(p *Plugin) error { _, err := p.Wrap([]byte(fileKey)); return err },
	} { // the second does not start
		if err := ask(p.In(ctx)); !errors.Is(err, context.Canceled) || errors.Is(err, age.ErrIncorrectIdentity) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	waitForEnd(t, pid())
}

func waitForEnd(t *testing.T, pid int) {
	t.Helper()
	for try := 0; syscall.Kill(pid, 0) == nil; try++ {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && bytes.Contains(stat, []byte(") Z ")) {
			return // it only waits to be collected
		}
		if try == 6000 {
			t.Fatalf("process %d is still there", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestAgePluginsGetNoEnvironment: a plugin gets what its world allows, none of our secrets, and no identity but on its
// standard input.
//
// Promise: use_environment = false
func TestAgePluginsGetNoEnvironment(t *testing.T) {
	for name, value := range map[string]string{"THEIRS": "theirs", "TF_ENCRYPTION": "canary", "STATE_PASSPHRASE": "canary",
		"GITHUB_TOKEN": "canary", "AGEDEBUG": "theirs"} {
		t.Setenv(name, value)
	}
	dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	for name, w := range map[string]world.World{"off": {}, "on": world.Here()} {
		p, err := Parse(identity("environment"), w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.In(t.Context()).Unwrap(nil); !errors.Is(err, age.ErrIncorrectIdentity) || errors.As(err, new(*Error)) {
			t.Errorf("%s: %v", name, err)
		}
		saw, err := os.ReadFile(filepath.Join(dir, "saw"))
		if err != nil || !strings.HasPrefix(string(saw), "--age-plugin=identity-v1\n") || strings.Contains(string(saw), "canary") ||
			strings.Contains(string(saw), "AGE-PLUGIN-") || strings.Contains(string(saw), "theirs") != (name == "on") {
			t.Errorf("%s: the plugin saw\n%s, %v", name, saw, err)
		}
	}
}

// TestPluginsAreInPath: the program is looked up in PATH, whatever the current directory has.
//
// Promise: Files of age
func TestPluginsAreInPath(t *testing.T) {
	says := golden(t, "not in PATH")
	t.Chdir(t.TempDir())
	const mark = "it ran"
	for _, name := range []string{"age-plugin-here", "age-plugin-here.sh"} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\ntouch '"+mark+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := os.Getenv("PATH")
	for name, path := range map[string]string{
		"alone": path, "before nothing": path + ":", "behind nothing": ":" + path, "before .": path + ":.",
	} {
		t.Setenv("PATH", path)
		_, err := parsed(t, identity("here")).Unwrap(nil)
		isError(t, err)
		says.Error(t, name, err)
		_, err = parsed(t, plugin.EncodeRecipient("here", nil)).Wrap([]byte(fileKey))
		isError(t, err)
		says.Error(t, name+", sealing", err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("what is in the current directory ran")
	}
}

// Names are those that age allows.
func TestParse(t *testing.T) {
	t.Parallel()
	good, says := identity("yubikey"), golden(t, "names")
	for i, text := range []string{
		good[:len(good)-1], good + "Q", strings.ToLower(good), "AGE-PLUGIN-YUBIKEY-1CANARY", "AGE-PLUGIN-", "AGE-PLUGIN--1", "age1yubikey1canary",
		"age1../x1" + "qqqqqqqq", "age11qqqqqqqq", good + "\n", good + " " + good,
	} {
		_, err := Parse(text, world.World{})
		says.Error(t, fmt.Sprintf("%d, %.18q", i, text), err)
	}
	for text, want := range map[string]string{
		good: `"age-plugin-yubikey"`, plugin.EncodeRecipient("Se", []byte("x")): `"age-plugin-se"`,
		plugin.EncodeIdentity("..", nil): `"age-plugin-.."`,
	} {
		if p, err := Parse(text, world.World{}); err != nil || p.Name() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
