package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// sshRun uses the ssh command that a user would have configured to trust the
// hosts of the file.
func sshRun(t *testing.T, server *gittest.SSHServer, knownHosts string, env vars, blocks ...vars) *run {
	t.Helper()
	r := newTestRun(t, env, blocks...)
	r.environ = append(r.environ, "GIT_SSH_COMMAND="+server.Command(knownHosts))
	return r
}

func sshOrigin(server *gittest.SSHServer) string { return "ssh://" + server.Host + ":" + server.Port }

func TestSSH(t *testing.T) {
	t.Parallel()
	repo := stateRepo(t)
	server := gittest.SSH(t, repo)
	origin := sshOrigin(server)
	at := place{repository: server.URL, ref: "main", path: "s"}
	withKey := vars{"url": origin, "ssh_private_key_file": server.KeyFile}

	t.Run("key of the block", func(t *testing.T) {
		before := server.Connections()
		r := sshRun(t, server, server.KnownHosts, nil, withKey)
		if s := mustRead(t, r, at, "state"); len(s.Warnings) != 0 {
			t.Errorf("warnings %q", s.Warnings)
		}
		if n := server.Connections() - before; n != 2 {
			t.Errorf("%d connections, want 2", n)
		}
	})
	t.Run("SSH_PRIVATE_KEY fills the block", func(t *testing.T) {
		mustRead(t, sshRun(t, server, server.KnownHosts, vars{"SSH_PRIVATE_KEY": server.KeyFile}, vars{"url": origin}), at, "state")
	})
	t.Run("SSH_PRIVATE_KEY without a block", func(t *testing.T) {
		before := server.Connections()
		_, err := read(t, sshRun(t, server, server.KnownHosts, vars{"SSH_PRIVATE_KEY": server.KeyFile}), at)
		mustFail(t, err, "SSH_PRIVATE_KEY is set, and nothing says that it is meant for "+origin)
		sourcetest.Lacks(t, err, "credentials.git", `url = "`+origin+`/acme/infra.git"`)
		if server.Connections() != before {
			t.Error("the server was still called")
		}
	})
	t.Run("missing file", func(t *testing.T) {
		_, err := read(t, sshRun(t, server, server.KnownHosts, nil, withKey), place{repository: server.URL, path: "none"})
		if m, ok := source.IsMissing(err); !ok || !m.CredentialsSent {
			t.Errorf("%v; want a MissingError, with credentials", err)
		}
	})
	says := openMistakes(t, "ssh")
	t.Run("no key", func(t *testing.T) {
		_, err := read(t, sshRun(t, server, server.KnownHosts, nil), at)
		says.Error(t, strings.SplitN(t.Name(), "/", 2)[1], err)
	})
	t.Run("key with a passphrase", func(t *testing.T) {
		_, err := read(t, sshRun(t, server, server.KnownHosts, nil, vars{"url": origin, "ssh_private_key_file": gittest.ProtectedKey(t)}), at)
		says.Error(t, strings.SplitN(t.Name(), "/", 2)[1], err)
	})
	whole, err := os.ReadFile(server.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(whole)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"half a key": string(whole[:200]), "of PuTTY": "PuTTY-User-Key-File-3: ssh-ed25519\n",
		"of age": "# created\nAGE-SECRET-KEY-1C4N4RY\n", "the public key": string(ssh.MarshalAuthorizedKey(key.PublicKey())),
		"no key": "c4n4ry", "nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := read(t, sshRun(t, server, server.KnownHosts, nil, vars{"url": origin, "ssh_private_key_file": file}), at)
			says.Error(t, "the file, "+name, err)
		})
	}
	t.Run("unknown host", func(t *testing.T) {
		_, err := read(t, sshRun(t, server, filepath.Join(t.TempDir(), "none"), nil, withKey), at)
		mustFail(t, err, "does not trust the server's host key")
	})
	t.Run("changed host key", func(t *testing.T) {
		for _, checking := range []string{"", "yes", "accept-new"} {
			block := with(withKey, vars{})
			if checking != "" {
				block["strict_host_key_checking"] = checking
			}
			_, err := read(t, sshRun(t, server, server.OtherHostKey(t), nil, block), at)
			mustFail(t, err, "does not trust the server's host key", "HOST IDENTIFICATION HAS CHANGED")
		}
	})
	t.Run("accept-new", func(t *testing.T) {
		r := sshRun(t, server, filepath.Join(t.TempDir(), "new"), nil, with(withKey, vars{"strict_host_key_checking": "accept-new"}))
		if s := mustRead(t, r, at, "state"); len(s.Warnings) != 0 {
			t.Errorf("warnings %q", s.Warnings)
		}
	})
	t.Run("StrictHostKeyChecking=no", func(t *testing.T) {
		env := vars{"StrictHostKeyChecking": "no", "SSH_PRIVATE_KEY": server.KeyFile}
		r := sshRun(t, server, filepath.Join(t.TempDir(), "new"), env, vars{"url": origin})
		if s := mustRead(t, r, at, "state"); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0].Text, "not verified") {
			t.Errorf("warnings %q", s.Warnings)
		}
	})
	t.Run("StrictHostKeyChecking=no is not for the key of a block", func(t *testing.T) {
		r := sshRun(t, server, filepath.Join(t.TempDir(), "new"), vars{"StrictHostKeyChecking": "no"}, withKey)
		_, err := read(t, r, at)
		mustFail(t, err, "StrictHostKeyChecking must not be combined with a secret of the configuration: ssh_private_key_file")
	})
	t.Run("StrictHostKeyChecking=no without a block", func(t *testing.T) {
		r := sshRun(t, server, filepath.Join(t.TempDir(), "new"), vars{"StrictHostKeyChecking": "no"})
		_, err := read(t, r, at)
		mustFail(t, err, "does not trust the server's host key")
	})
	t.Run("strict_host_key_checking of another word", func(t *testing.T) {
		_, err := read(t, sshRun(t, server, server.KnownHosts, nil, with(withKey, vars{"strict_host_key_checking": "maybe -o ProxyCommand=x"})),
			at)
		mustFail(t, err, `"yes", "accept-new" or "no" is required`)
	})
	t.Run("another path of the server", func(t *testing.T) {
		r := sshRun(t, server, server.KnownHosts, nil, vars{"url": origin + "/other", "ssh_private_key_file": server.KeyFile})
		_, err := read(t, r, at)
		says.Error(t, strings.SplitN(t.Name(), "/", 2)[1], err)
	})
}

// TestSSHAsTerraformBackendGit: its variables mean what they mean there. An
// address without a user is git's own, and the agent comes before the key.
func TestSSHAsTerraformBackendGit(t *testing.T) {
	long(t)
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("agents are no sockets on Windows")
	}
	server := gittest.SSH(t, stateRepo(t))
	theirs, other := fingerprint(t, server.KeyFile), gittest.NewKey(t)
	origin := sshOrigin(server)
	bare := origin + "/acme/infra.git"
	for name, c := range testkit.Some(map[string]struct {
		agent      []string // key files
		env, block vars
		repository string
		own        bool // the user has an ssh command
		want       []gittest.Offer
		fails      bool
	}{
		"the agent": {agent: []string{server.KeyFile}, repository: bare, want: []gittest.Offer{{User: "git", Key: theirs}}},
		"the agent before the key": {
			agent: []string{server.KeyFile}, env: vars{"SSH_PRIVATE_KEY": other}, block: vars{"url": origin}, repository: bare,
			want: []gittest.Offer{{User: "git", Key: theirs}},
		},
		"the key after the agent": {
			agent: []string{other}, env: vars{"SSH_PRIVATE_KEY": server.KeyFile}, block: vars{"url": origin}, repository: bare,
			want: []gittest.Offer{{User: "git", Key: fingerprint(t, other)}, {User: "git", Key: theirs}},
		},
		"the key without an agent": {
			env: vars{"SSH_PRIVATE_KEY": server.KeyFile}, block: vars{"url": origin}, repository: bare,
			want: []gittest.Offer{{User: "git", Key: theirs}},
		},
		"a user in the address": {
			agent: []string{server.KeyFile}, repository: "ssh://deploy@" + strings.TrimPrefix(bare, "ssh://"),
			want: []gittest.Offer{{User: "deploy", Key: theirs}},
		},
		"the key of a block is alone": {
			agent: []string{server.KeyFile}, block: vars{"url": origin, "ssh_private_key_file": other}, repository: server.URL,
			want: []gittest.Offer{{User: "git", Key: fingerprint(t, other)}}, fails: true,
		},
		"the user's own ssh command": {
			agent: []string{server.KeyFile}, repository: bare, own: true, want: []gittest.Offer{{User: "configured", Key: theirs}},
		},
	}) {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(t, c.env, slices.DeleteFunc([]vars{c.block}, func(v vars) bool { return v == nil })...)
			r.environ = append(r.environ, "SSH_AUTH_SOCK="+gittest.Agent(t, c.agent...), "HOME="+t.TempDir())
			config := []string{"IdentitiesOnly no"}
			if c.own {
				r.environ = append(r.environ, "GIT_SSH_COMMAND=ssh -F '"+server.Config(server.KnownHosts, "User configured", "IdentitiesOnly no")+"'")
			} else {
				r.environ = append(r.environ, "PATH="+sshWith(t, server.Config(server.KnownHosts, config...))+":"+os.Getenv("PATH"))
			}
			server.Offers()
			if _, err := read(t, r, place{repository: c.repository, ref: "main", path: "s"}); (err != nil) != c.fails {
				t.Errorf("got %v", err)
			}
			if got := server.Offers(); !reflect.DeepEqual(got[:min(len(c.want), len(got))], c.want) {
				t.Errorf("offered %v, want %v", got, c.want)
			}
		})
	}
}

// sshWith returns a folder with an ssh that reads this configuration.
func sshWith(t *testing.T, config string) (dir string) {
	t.Helper()
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\nexec "+ssh+" -F '"+config+"' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func fileText(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func fingerprint(t *testing.T, keyFile string) string {
	t.Helper()
	signer, err := ssh.ParsePrivateKey(fileText(t, keyFile))
	if err != nil {
		t.Fatal(err)
	}
	return ssh.FingerprintSHA256(signer.PublicKey())
}

// TestNothingIsRemembered: an unverified key that is written to known_hosts is
// trusted from then on, and so is a connection that is kept for later.
//
// Promise: Reading changes nothing
func TestNothingIsRemembered(t *testing.T) {
	long(t)
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for ssh is a shell script")
	}
	server := gittest.SSH(t, stateRepo(t))
	at := place{repository: server.URL, ref: "main", path: "s"}
	for _, checking := range []string{"no", "accept-new", "yes"} {
		for name, environ := range map[string]func(config string) string{
			"the user's command": func(config string) string { return "GIT_SSH_COMMAND=ssh -F '" + config + "'" },
			"ssh of PATH": func(config string) string {
				return "PATH=" + sshWith(t, config) + ":" + os.Getenv("PATH")
			},
		} {
			t.Run(name+", "+checking, func(t *testing.T) {
				home := t.TempDir()
				known, socket := filepath.Join(home, "known_hosts"), filepath.Join(home, "socket")
				config := server.Config(known, "ControlMaster auto", "ControlPath "+socket, "ControlPersist 3")
				r := newTestRun(t, nil, vars{"url": sshOrigin(server), "ssh_private_key_file": server.KeyFile, "strict_host_key_checking": checking})
				r.environ = append(r.environ, environ(config))
				if s, err := read(t, r, at); checking == "yes" {
					mustFail(t, err, "does not trust the server's host key")
				} else if err != nil || string(s.Data) != "state" {
					t.Fatalf("%v, %v", s, err)
				}
				// accept-new is there to remember, and the user's own ssh keeps
				// verified connections as the user likes.
				if remembers := checking == "accept-new"; exists(known) != remembers || exists(socket) != remembers {
					t.Errorf("left behind: known_hosts: %v, connection: %v", exists(known), exists(socket))
				}
			})
		}
	}
}

// A path may hold what a shell, or ssh itself, takes for something else.
func TestSSHKeyPaths(t *testing.T) {
	long(t)
	t.Parallel()
	server := gittest.SSH(t, stateRepo(t))
	key, err := os.ReadFile(server.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"with space", "it's", `dou"ble`, "$(touch pwned)", "`x`", "%h%%d", "-dash", `back\slash`, "semi;colon",
		"$HOME"}
	if testing.Short() {
		names = names[:3]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.ContainsAny(name, `"\`) {
				t.Skip("Windows has no such names")
			}
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, key, 0o600); err != nil {
				t.Fatal(err)
			}
			r := sshRun(t, server, server.KnownHosts, nil, vars{"url": sshOrigin(server), "ssh_private_key_file": path})
			mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
		})
	}
	says := openMistakes(t, "ssh_private_key_file")
	for name, path := range map[string]string{
		"its content":      "-----BEGIN OPENSSH PRIVATE KEY-----\n" + canary,
		"perhaps a secret": "nonexistent/" + canary,
		"a folder":         "/etc",
	} {
		r := sshRun(t, server, server.KnownHosts, nil, vars{"url": sshOrigin(server), "ssh_private_key_file": path})
		_, err := read(t, r, place{repository: server.URL, path: "s"})
		says.Error(t, name, err)
		mustNotHold(t, "the error", err.Error(), canary)
	}
	nobody := filepath.Join(t.TempDir(), "id_ed25519")
	_, err = read(t, sshRun(t, server, server.KnownHosts, nil, vars{"url": sshOrigin(server), "ssh_private_key_file": nobody}),
		place{repository: server.URL, path: "s"})
	says.Error(t, "no file", err)
	braces := filepath.Join(t.TempDir(), "${x}")
	if err := os.WriteFile(braces, key, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = read(t, sshRun(t, server, server.KnownHosts, nil, vars{"url": sshOrigin(server), "ssh_private_key_file": braces}),
		place{repository: server.URL, path: "s"})
	says.Error(t, "braces", err)
}

// TestWhichSSH: whatever the user has set up is what runs; without that, ssh
// runs so that it never asks.
func TestWhichSSH(t *testing.T) {
	long(t)
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-ins for ssh are shell scripts")
	}
	server := gittest.SSH(t, stateRepo(t))
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	options := strings.TrimPrefix(server.Command(server.KnownHosts), "ssh ")
	standIn := func(t *testing.T) (program, log string) {
		dir := t.TempDir()
		program, log = filepath.Join(dir, "ssh"), filepath.Join(dir, "log")
		script := "#!/bin/sh\nprintf '%s ' \"$@\" >> '" + log + "'\nexec " + ssh + " " + options + " \"$@\"\n"
		if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		return program, log
	}
	block := vars{"url": sshOrigin(server), "ssh_private_key_file": server.KeyFile, "strict_host_key_checking": "yes"}
	for name, environ := range testkit.Some(map[string]func(t *testing.T, program string) []string{
		"GIT_SSH_COMMAND": func(_ *testing.T, program string) []string {
			return []string{"GIT_SSH_COMMAND='" + program + "' -o User=git", "GIT_SSH=/nonexistent"}
		},
		"GIT_SSH": func(_ *testing.T, program string) []string { return []string{"GIT_SSH=" + program} },
		"core.sshCommand": func(t *testing.T, program string) []string {
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\tsshCommand = "+program+" -o User=git\n"),
				0o600); err != nil {
				t.Fatal(err)
			}
			return []string{"HOME=" + home, "GIT_SSH=/nonexistent"}
		},
		"ssh of PATH": func(_ *testing.T, program string) []string {
			return []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH")}
		},
	}) {
		t.Run(name, func(t *testing.T) {
			program, log := standIn(t)
			r := newTestRun(t, nil, block)
			r.environ = append(r.environ, environ(t, program)...)
			mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
			text, _ := os.ReadFile(log)
			for _, want := range []string{"-i " + server.KeyFile, "IdentitiesOnly=yes", "StrictHostKeyChecking=yes"} {
				if !strings.Contains(string(text), want) {
					t.Errorf("ssh was not given %q: %s", want, text)
				}
			}
			if ours := strings.Contains(string(text), "BatchMode=yes"); ours != (name == "ssh of PATH") {
				t.Errorf("BatchMode=yes among the arguments: %v: %s", ours, text)
			}
		})
	}
	t.Run("nothing to add", func(t *testing.T) {
		r := newTestRun(t, nil)
		r.environ = append(r.environ, "GIT_SSH_COMMAND=x")
		if command, err := (&repository{run: r, access: &access{}}).sshCommand(t.Context()); command != "" || err != nil {
			t.Errorf("the user's command is replaced by %q, %v", command, err)
		}
	})
}

// Terraform runs inside some repository, whose own configuration says nothing
// about others.
func TestSurroundingRepository(t *testing.T) {
	here := t.TempDir()
	for _, args := range [][]string{{"init", "-q", here}, {"-C", here, "config", "core.sshCommand", "touch pwned"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Chdir(here)
	if command, err := (&repository{run: newTestRun(t, nil), access: &access{}}).sshCommand(t.Context()); command != defaultSSH || err != nil {
		t.Errorf("%q, %v", command, err)
	}
}

// TestSCPAddress runs with a Host alias in place of the port, for which the
// short form has no place.
func TestSCPAddress(t *testing.T) {
	long(t)
	t.Parallel()
	server := gittest.SSH(t, stateRepo(t))
	r := newTestRun(t, nil, vars{"url": "ssh://git.example.invalid/acme", "ssh_private_key_file": server.KeyFile})
	r.environ = append(r.environ, "GIT_SSH_COMMAND="+server.Command(server.KnownHosts)+" -o HostName="+server.Host+" -p "+server.Port)
	mustRead(t, r, place{repository: "git@git.example.invalid:acme/infra.git", path: "s"}, "state")
	// 2222 is a folder, which the block does not cover; its key is not offered.
	_, err := read(t, r, place{repository: "git@git.example.invalid:2222/acme/infra.git", path: "s"})
	mustFail(t, err, "the ssh server accepted no key")
}

// TestShellOfSSH: the configuration of ssh has commands, which ssh has the shell of SHELL run. With the
// environment off, the variable chooses no program.
//
// Promise: use_environment = false
func TestShellOfSSH(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	server := gittest.SSH(t, stateRepo(t))
	at := place{repository: server.URL, ref: "main", path: "s"}
	dir, home := t.TempDir(), t.TempDir()
	ran, shell := filepath.Join(dir, "ran"), filepath.Join(dir, "shell")
	command := "ssh -F '" + server.Config(server.KnownHosts, `Match exec "exit 0"`, `IdentityFile "`+server.KeyFile+`"`) + "'"
	for path, text := range map[string]string{
		shell:                             "#!/bin/sh\necho x >>'" + ran + "'\nexec /bin/sh \"$@\"\n",
		filepath.Join(home, ".gitconfig"): "[core]\n\tsshCommand = \"" + command + "\"\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("SHELL", shell)
	mustRead(t, newTestRun(t, nil), at, "state")
	if err := os.Remove(ran); err != nil {
		t.Errorf("with the environment on, the user's shell does not run: %v", err)
	}
	off := newReader(source.Settings{Credentials: source.Credentials{Table: credentialsTable()}}.For(Kind()))
	off.tempDir = t.TempDir()
	mustRead(t, off, at, "state")
	if _, err := os.Stat(ran); err == nil {
		t.Error("SHELL chooses the program that runs a command")
	}
}
