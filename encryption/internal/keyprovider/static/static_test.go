package static_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/static"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	write := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	setting := func(name, value string) map[string]cty.Value { return map[string]cty.Value{name: cty.StringVal(value)} }
	key := setting("key", "00112233445566778899aabbccddeeff")
	raw, err := hex.DecodeString("00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]map[string]cty.Value{
		"hex":    key,
		"base64": setting("key_base64", "ABEiM0RVZneImaq7zN3u/w=="),
		"file":   setting("key_file", write("key", string(raw))),
	}
	for name, form := range forms {
		encryptiontest.KeyProvider{
			Block:    static.Block(),
			Constant: true,
			Attrs:    form,
			Other:    setting("key", "ffeeddccbbaa99887766554433221100"),
			Bad: []map[string]cty.Value{
				{},
				setting("key", ""),
				setting("key", "canary"),
				setting("key", "0"),
				setting("key_base64", "canary!"),
				setting("key_base64", strings.Repeat("c0ffee00", 8)),
				setting("key_base64", ""),
				setting("key_file", filepath.Join(t.TempDir(), "missing")),
				setting("key_file", t.TempDir()),
				setting("key_file", write("empty", "")),
				setting("key_file", write("text", "canary00112233445566778899aabbcc\n")),
				setting("key_file", write("long", string(make([]byte, 1025)))),
				{"key": key["key"], "key_base64": forms["base64"]["key_base64"]},
				{"key": key["key"], "key_file": forms["file"]["key_file"]},
			},
			Secrets: []string{"canary"},
		}.Run(t)

		provider := encryptiontest.Build(t, static.Block(), form)
		// A file that stores nothing may still have been sealed with the key.
		if got, err := provider.Key(t.Context(), nil, nil); err != nil || string(got) != string(raw) {
			t.Errorf("%s: got %x, %v", name, got, err)
		}
		if _, err := provider.Key(t.Context(), nil, []byte(`{"magic":"other"}`)); err == nil {
			t.Errorf("%s: foreign metadata is accepted", name)
		}
	}
}
