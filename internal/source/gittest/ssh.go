package gittest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// SSHServer serves one repository over ssh, at every path. It accepts one key and any user name. It runs in
// this process.
type SSHServer struct {
	URL        string // ssh://git@127.0.0.1:12345/acme/infra.git
	Host, Port string
	KnownHosts string // path of a known_hosts file with the server's key
	KeyFile    string // path of the client's private key

	tb          testing.TB
	repo        *Repo
	connections atomic.Int64
	offers      nettest.Log[Offer]
}

// Offer is a key that a client offered, with the user name.
type Offer struct {
	User string
	Key  string // the fingerprint
}

// SSH starts a server. It skips the test if no ssh client is installed.
func SSH(tb testing.TB, repo *Repo) *SSHServer {
	tb.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		tb.Skip("ssh is not installed")
	}
	host, _ := newKey(tb, "")
	client, keyFile := newKey(tb, "")
	listener := nettest.Listen(tb)
	tb.Cleanup(func() { listener.Close() })

	s := &SSHServer{tb: tb, repo: repo, KeyFile: keyFile}
	s.Host, s.Port, _ = net.SplitHostPort(listener.Addr().String())
	s.URL = "ssh://git@" + s.Host + ":" + s.Port + "/acme/infra.git"
	s.KnownHosts = s.knownHosts(tb, host)

	config := &ssh.ServerConfig{PublicKeyCallback: func(conn ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		s.offers.Note(Offer{User: conn.User(), Key: ssh.FingerprintSHA256(key)})
		if string(key.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	go s.accept(listener, config)
	return s
}

// OtherHostKey returns the path of a known_hosts file with a wrong key for the server.
func (s *SSHServer) OtherHostKey(tb testing.TB) string {
	tb.Helper()
	key, _ := newKey(tb, "")
	return s.knownHosts(tb, key)
}

func (s *SSHServer) knownHosts(tb testing.TB, key ssh.Signer) (path string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "known_hosts")
	writeFile(tb, path, []byte("["+s.Host+"]:"+s.Port+" "+string(ssh.MarshalAuthorizedKey(key.PublicKey()))))
	return path
}

// Command returns a GIT_SSH_COMMAND that reads its own configuration instead of the user's. It trusts only
// the hosts in knownHosts and has no key.
func (s *SSHServer) Command(knownHosts string) string {
	return "ssh -F '" + filepath.ToSlash(s.Config(knownHosts)) + "'"
}

// Config writes an ssh configuration file. Tests pass its path to ssh, because ssh does not look for
// ~/.ssh/config in $HOME.
func (s *SSHServer) Config(knownHosts string, more ...string) (path string) {
	lines := append(slices.Clone(more), // for each keyword, ssh uses the first line
		"BatchMode yes", "IdentitiesOnly yes", "IdentityFile /dev/null", "GlobalKnownHostsFile /dev/null",
		`UserKnownHostsFile "`+filepath.ToSlash(knownHosts)+`"`,
	)
	path = filepath.Join(s.tb.TempDir(), "config")
	writeFile(s.tb, path, []byte(strings.Join(lines, "\n")+"\n"))
	return path
}

// Connections returns the number of successful logins.
func (s *SSHServer) Connections() int64 { return s.connections.Load() }

// Offers returns the keys that clients offered since the last call, in order.
func (s *SSHServer) Offers() []Offer { return s.offers.Requests() }

// NewKey writes a private key that the server does not accept.
func NewKey(tb testing.TB) (path string) {
	tb.Helper()
	_, path = newKey(tb, "")
	return path
}

// ProtectedKey writes a private key with a passphrase.
func ProtectedKey(tb testing.TB) (path string) {
	tb.Helper()
	_, path = newKey(tb, "passphrase")
	return path
}

// newKey writes a private key. If passphrase is not empty, it protects the key.
func newKey(tb testing.TB, passphrase string) (key ssh.Signer, path string) {
	tb.Helper()
	_, private, _ := ed25519.GenerateKey(rand.Reader) // never fails
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		tb.Fatal(err)
	}
	path = filepath.Join(tb.TempDir(), "id_ed25519")
	writeFile(tb, path, pem.EncodeToMemory(block))
	if key, err = ssh.NewSignerFromKey(private); err != nil {
		tb.Fatal(err)
	}
	return key, path
}

func (s *SSHServer) accept(listener net.Listener, config *ssh.ServerConfig) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go s.connection(conn, config)
	}
}

func (s *SSHServer) connection(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	s.connections.Add(1)
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err == nil {
			go s.session(channel, requests)
		}
	}
}

func (s *SSHServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	protocol := ""
	for r := range requests {
		switch r.Type {
		case "env":
			var env struct{ Name, Value string }
			if ssh.Unmarshal(r.Payload, &env) == nil && env.Name == "GIT_PROTOCOL" {
				protocol = env.Value
			}
			_ = r.Reply(true, nil)
		case "exec":
			var exec struct{ Command string }
			ok := ssh.Unmarshal(r.Payload, &exec) == nil
			service, _, _ := strings.Cut(strings.TrimPrefix(exec.Command, "git-"), " ")
			ok = ok && (service == "upload-pack" || service == "receive-pack" && s.repo.push)
			_ = r.Reply(ok, nil)
			if ok {
				go s.serve(channel, service, protocol)
			}
		default:
			_ = r.Reply(false, nil)
		}
	}
}

func (s *SSHServer) serve(channel ssh.Channel, service, protocol string) {
	defer channel.Close()
	cmd := exec.Command("git", "-c", "safe.directory=*", service, s.repo.Dir)
	cmd.Env = append(Environ(s.repo.home), "GIT_PROTOCOL="+protocol)
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	stdin, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return
	}
	go func() {
		_, _ = io.Copy(stdin, channel)
		stdin.Close()
	}()
	status := struct{ Code uint32 }{}
	if cmd.Wait() != nil {
		status.Code = 1
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
}
