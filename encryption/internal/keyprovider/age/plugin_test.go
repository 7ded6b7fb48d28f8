//go:build unix

package age_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"filippo.io/age"
	"filippo.io/age/plugin"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	agekeys "github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/age"
)

// TestMain is also the plugin x25519, which age's own package for plugins makes: a link
// to this test in a folder of PATH.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "age-plugin-x25519" {
		syscall.Exit(x25519()) // without a second that the race detector waits
	}
	dir, err := os.MkdirTemp("", "plugins")
	self, selfErr := os.Executable()
	err = errors.Join(err, selfErr, os.Symlink(self, filepath.Join(dir, "age-plugin-x25519")),
		os.Setenv("PATH", dir+":"+os.Getenv("PATH")))
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// x25519 is a plugin whose data are keys of age as text.
func x25519() int {
	p, err := plugin.New("x25519")
	if err != nil {
		return 1
	}
	p.HandleRecipient(func(data []byte) (age.Recipient, error) { return age.ParseX25519Recipient(string(data)) })
	p.HandleIdentity(func(data []byte) (age.Identity, error) { return age.ParseX25519Identity(string(data)) })
	return p.Main()
}

// A key that a plugin has is as good as any.
func TestSuiteOfPlugins(t *testing.T) {
	t.Parallel()
	pair := func() (identity, recipient string) {
		key, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		return plugin.EncodeIdentity("x25519", []byte(key.String())), plugin.EncodeRecipient("x25519", []byte(key.Recipient().String()))
	}
	own, toOwn := pair()
	other, toOther := pair()
	cut := own[:len(own)-1]
	encryptiontest.KeyProvider{
		Block: agekeys.Block(),
		Attrs: attrs("identities", []string{own}, "recipients", []string{toOwn}),
		Other: attrs("identities", []string{other}, "recipients", []string{toOther}),
		Bad: []map[string]cty.Value{
			attrs("identities", []string{cut}),
			attrs("identities", []string{plugin.EncodeIdentity("nowhere", []byte(own))}),
			attrs("recipients", []string{own[:len(own)-1]}),
			attrs("recipients", []string{toOwn}), // which open nothing
		},
		Secrets: []string{own[40:70], other[40:70], plugin.EncodeIdentity("nowhere", []byte(own))[40:70]},
	}.Run(t)
}
