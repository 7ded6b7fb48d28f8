package sops_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/method/sops"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// FuzzDecrypt reads documents that are like the ones that sops wrote. What opens
// is what was sealed, but for empty values, which the MAC of sops does not
// cover.
//
// The seeds are files of sops as they are: each worker of the fuzzer runs this
// function anew, and has to have the same data key.
func FuzzDecrypt(f *testing.F) {
	read := func(name string) []byte {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	var methods []driver.Method
	for _, partial := range []bool{false, true} {
		m := kindtest.Build(f, sops.Block(), attrs{
			"age_identities": texts(string(read("age_identity.txt"))), "allow_unencrypted_values": cty.BoolVal(partial),
		}, nil)
		methods = append(methods, m)
	}
	want := withoutEmpty(f, read("small.plain.json"))
	for _, name := range []string{"small.json", "small.yaml"} {
		file := read(name)
		f.Add(file)
		f.Add(bytes.ReplaceAll(file, []byte("3.13.3"), []byte("9.9.9")))
		f.Add(file[:len(file)/2])
	}
	for _, seed := range []string{
		"", "{}", "[]", `{"sops":{}}`, "sops: {}\n", "sops:\n    mac: ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]\n    version: 3.9.0\n",
		"a: &a [*a]\n", "? [a]\n: b\n", "--- 1\n--- 2\n", `{"sops":{"shamir_threshold":-1,"key_groups":[{}],"version":"3.0.0","mac":"x"}}`,
		`{"a":"ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:bytes]","sops":{"age":[{"recipient":"x","enc":"y"}],"version":"3.0.0","mac":"x","lastmodified":"2026-11-20T12:00:00Z"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		start := time.Now()
		for _, m := range methods {
			sops.Block().OwnFormat(file)
			got, err := m.Decrypt(t.Context(), nil, bytes.Clone(file))
			switch {
			case err != nil && got != nil:
				t.Errorf("it gives something and an error: %q", file)
			case err != nil:
			case !reflect.DeepEqual(withoutEmpty(t, got), want):
				t.Errorf("it opened to something else: %s: %q", got, file)
			}
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %v: %q", took, file)
		}
	})
}

// withoutEmpty decodes JSON and leaves out everything that is empty.
func withoutEmpty(tb testing.TB, text []byte) any {
	tb.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		tb.Fatalf("%v: %q", err, text)
	}
	return prune(value)
}

func prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, element := range v {
			if kept := prune(element); kept != nil {
				out[name] = kept
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case []any:
		var out []any
		for _, element := range v {
			if kept := prune(element); kept != nil {
				out = append(out, kept)
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case string:
		if v == "" {
			return nil
		}
	}
	return value
}
