package openbao_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/vaulttest"
)

func TestRealVault(t *testing.T) {
	t.Parallel()
	v := vaulttest.Start(t, "state", "other")
	roleID, secretID := v.AppRole(t, "state")
	admin := attrs{}.With("address", v.Address, "token", v.Token, "key_name", "state", "max_retries", 0)
	maker, ok := build(t, admin, nil).(driver.KeyMaker)
	if !ok {
		t.Fatal("it makes no keys")
	}
	key, stored, err := maker.NewKey(t.Context(), nil)
	if err != nil || len(key) != 32 {
		t.Fatalf("a new key: %d bytes, %v", len(key), err)
	}
	damaged, err := json.Marshal(map[string][]byte{"ciphertext": []byte("vault:v1:" + base64.StdEncoding.EncodeToString(make([]byte, 60)))})
	if err != nil {
		t.Fatal(err)
	}
	later, err := json.Marshal(map[string][]byte{"ciphertext": []byte("vault:v9:" + base64.StdEncoding.EncodeToString(make([]byte, 60)))})
	if err != nil {
		t.Fatal(err)
	}
	reader := admin.With("token", v.Reader(t, "state"))
	for name, c := range map[string]struct {
		attrs  attrs
		stored []byte
		noKey  bool
	}{
		"least privilege":       {reader, stored, false},
		"approle":               {admin.With("token", "", "auth_approle", attrs{}.With("role_id", roleID, "secret_id", secretID)), stored, false},
		"another key":           {admin.With("key_name", "other"), stored, true},
		"no such key":           {admin.With("key_name", "gone"), stored, true},
		"no such engine":        {admin.With("transit_engine_path", "elsewhere"), stored, true},
		"another reader":        {reader.With("token", v.Reader(t, "other")), stored, true},
		"unknown token":         {reader.With("token", "canary"), stored, true},
		"no token":              {reader.With("token", ""), stored, true},
		"damaged":               {reader, damaged, true},
		"a version yet to come": {reader, later, true},
	} {
		got, err := build(t, c.attrs, nil).Key(t.Context(), nil, c.stored)
		switch {
		case c.noKey && (!errors.Is(err, driver.ErrNoKey) || strings.Contains(err.Error(), "canary")):
			t.Errorf("%s: got %v", name, err)
		case !c.noKey && (err != nil || !bytes.Equal(got, key)):
			t.Errorf("%s: %v", name, err)
		}
	}

	// A version that the owner has retired.
	v.Do(t, http.MethodPost, "transit/keys/state/rotate", nil)
	v.Do(t, http.MethodPost, "transit/keys/state/config", map[string]any{"min_decryption_version": 2})
	if _, err := build(t, reader, nil).Key(t.Context(), nil, stored); !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("a retired version: %v", err)
	}
}

// TestRealVaultAssociatedData seals nothing with associated data, which Vault ignores for data
// keys, and opens a key that the engine has encrypted with it if the file stores the data. A
// file of OpenTofu's, which stores data that Vault ignored, opens too.
func TestRealVaultAssociatedData(t *testing.T) {
	t.Parallel()
	v := vaulttest.Start(t, "state")
	base := attrs{}.With("address", v.Address, "token", v.Token, "key_name", "state", "max_retries", 0)
	bound, other := base.With("associated_data", "YWFk"), base.With("associated_data", "b3RoZXI=")
	if _, _, err := build(t, bound, nil).(driver.KeyMaker).NewKey(t.Context(), nil); err == nil || errors.Is(err, driver.ErrNoKey) {
		t.Errorf("a key that is not bound to what it should be: %v", err)
	}
	key := bytes.Repeat([]byte{7}, 32)
	stored := func(data string, more map[string]any) []byte {
		t.Helper()
		body := map[string]any{"plaintext": base64.StdEncoding.EncodeToString(key)}
		if data != "" {
			body["associated_data"] = data
		}
		answer, _ := v.Do(t, http.MethodPost, "transit/encrypt/state", body)["data"].(map[string]any)
		ciphertext, _ := answer["ciphertext"].(string)
		m := map[string]any{"ciphertext": []byte(ciphertext)}
		maps.Copy(m, more)
		out, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	names := map[string]any{"associated_data": "YWFk"}
	for name, c := range map[string]struct {
		attrs  attrs
		stored []byte
		want   bool
	}{
		"stored":              {base, stored("YWFk", names), true},
		"stored, not ours":    {other, stored("YWFk", names), true},
		"not stored":          {bound, stored("YWFk", nil), false},
		"configured later":    {bound, stored("", nil), true},
		"stored, but ignored": {base, stored("", names), true},
	} {
		got, err := build(t, c.attrs, nil).Key(t.Context(), nil, c.stored)
		switch {
		case c.want && (err != nil || !bytes.Equal(got, key)):
			t.Errorf("%s: %v", name, err)
		case !c.want && !errors.Is(err, driver.ErrNoKey):
			t.Errorf("%s: got %v", name, err)
		}
	}
}
