package gittest

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Agent serves the keys in keyFiles as an ssh agent. It returns the agent's socket, or an empty string if
// there are no keys.
func Agent(tb testing.TB, keyFiles ...string) string {
	tb.Helper()
	if len(keyFiles) == 0 {
		return ""
	}
	keys := agent.NewKeyring()
	for _, path := range keyFiles {
		text, err := os.ReadFile(path)
		var key any
		if err == nil {
			key, err = ssh.ParseRawPrivateKey(text)
		}
		if err != nil {
			tb.Fatal(err)
		}
		if err := keys.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			tb.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "agent") // a socket's path must be short
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = agent.ServeAgent(keys, conn) // until ssh disconnects
			}()
		}
	}()
	return filepath.Join(dir, "s")
}
