package sops_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	filippoage "filippo.io/age"
	"filippo.io/age/armor"
	getsops "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	"github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/shamir"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/method/sops"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

var (
	macPattern   = regexp.MustCompile(`"mac": "[^"]*"`)
	valuePattern = regexp.MustCompile(`"ENC\[[^"]*"`)
)

const plainState = `{"version":4,"terraform_version":"1.5.7","serial":3,"lineage":"11111111-2222-3333-4444-555555555555","outputs":{"secret":{"value":"canary-value","type":"string","sensitive":true},"n":{"value":1.5,"type":"number"},"empty":{"value":"","type":"string"}},"resources":[],"check_results":null}`

// environment is an environment of nothing but these variables.
func environment(pairs ...string) attr.LookupEnv {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

type attrs = testkit.Attrs

func texts(values ...string) cty.Value { return testkit.List(values...) }

// build makes the method with attributes and an environment, which may be nil.
func build(t *testing.T, a attrs, env attr.LookupEnv, services ...driver.Block[driver.KeyProvider]) driver.Method {
	t.Helper()
	m, err := tryBuild(a, env, services...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func tryBuild(a attrs, env attr.LookupEnv, services ...driver.Block[driver.KeyProvider]) (driver.Method, error) {
	return kindtest.TryBuild(sops.Block(services...), a, env)
}

func newAge(t *testing.T) (identity, recipient string) {
	t.Helper()
	id, err := filippoage.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id.String(), id.Recipient().String()
}

// sealed is a file in the making, with the library's own types.
type sealed struct {
	plain     string
	dataKey   []byte
	groups    []getsops.KeyGroup
	threshold int
	change    func(*getsops.Metadata) // before it is encrypted; may be nil
	store     getsops.Store           // how it is written; nil for JSON
}

// ageKey wraps part for a recipient.
func ageKey(t testing.TB, recipient string, part []byte) keys.MasterKey {
	t.Helper()
	k := &age.MasterKey{Recipient: recipient}
	if err := k.Encrypt(part); err != nil {
		t.Fatal(err)
	}
	return k
}

// file has the library encrypt and write it.
func (s sealed) file(t testing.TB) []byte {
	t.Helper()
	file, err := s.seal()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func (s sealed) seal() ([]byte, error) {
	if s.store == nil {
		s.store = jsonStore
	}
	branches, err := s.store.LoadPlainFile([]byte(s.plain))
	if err != nil {
		return nil, err
	}
	tree := getsops.Tree{Branches: branches, Metadata: getsops.Metadata{
		KeyGroups: s.groups, ShamirThreshold: s.threshold, Version: "3.13.3",
		LastModified: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
	}}
	if s.change != nil {
		s.change(&tree.Metadata)
	}
	cipher := aes.NewCipher()
	mac, err := tree.Encrypt(s.dataKey, cipher)
	if err != nil {
		return nil, err
	}
	if tree.Metadata.MessageAuthenticationCode, err = cipher.Encrypt(mac, s.dataKey,
		tree.Metadata.LastModified.Format(time.RFC3339)); err != nil {
		return nil, err
	}
	return s.store.EmitEncryptedFile(tree)
}

func groupOf(k ...keys.MasterKey) []getsops.KeyGroup { return []getsops.KeyGroup{k} }

func newDataKey() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return b
}

// sealAge is a file for one age recipient.
func sealAge(t *testing.T, recipient string) []byte {
	t.Helper()
	dataKey := newDataKey()
	return sealed{plain: plainState, dataKey: dataKey, groups: []getsops.KeyGroup{{ageKey(t, recipient, dataKey)}}}.file(t)
}

// opens fails unless the file opens to want, compared as JSON.
func opens(t *testing.T, m driver.Method, file []byte, want string) {
	t.Helper()
	if !sops.Block().OwnFormat(file) {
		t.Error("it does not recognize the file")
	}
	got, err := m.Decrypt(t.Context(), nil, bytes.Clone(file))
	if err != nil {
		t.Errorf("it does not open: %v", err)
		return
	}
	sameJSON(t, got, []byte(want))
}

func sameJSON(t *testing.T, got, want []byte) {
	t.Helper()
	parse := func(b []byte) any {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v: %.300s", err, b)
		}
		return v
	}
	if !reflect.DeepEqual(parse(got), parse(want)) {
		t.Errorf("got  %.2000s\nwant %.2000s", got, want)
	}
}

// fails returns the error of a file that must not open, and checks whether the
// next method may be tried.
func fails(t *testing.T, m driver.Method, file []byte, noKey bool) error {
	t.Helper()
	got, err := m.Decrypt(t.Context(), nil, bytes.Clone(file))
	if err == nil || got != nil {
		t.Errorf("it opens (%v): %.300s", err, got)
		return err
	}
	if errors.Is(err, driver.ErrNoKey) != noKey {
		t.Errorf("that there is no key: want %t, got %v", noKey, err)
	}
	if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "AGE-SECRET-KEY-1") {
		t.Errorf("the error shows a secret: %v", err)
	}
	return err
}

func TestAge(t *testing.T) {
	t.Parallel()
	identity, recipient := newAge(t)
	other, _ := newAge(t)
	file := sealAge(t, recipient)
	dir := t.TempDir()
	write := func(name, content string) string {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	keyFile := write("key.txt", "# created: today\n# public key: "+recipient+"\n"+identity+"\n")
	for name, m := range map[string]driver.Method{
		"attribute":          build(t, attrs{"age_identities": texts(identity)}, nil),
		"one of several":     build(t, attrs{"age_identities": texts(other, identity)}, nil),
		"content of a file":  build(t, attrs{"age_identities": texts("# a comment\n" + other + "\n" + identity + "\n")}, nil),
		"file":               build(t, attrs{"age_identity_files": texts(keyFile)}, nil),
		"variable":           build(t, nil, environment("SOPS_AGE_KEY", other+" "+identity)),
		"variable of a file": build(t, nil, environment("SOPS_AGE_KEY_FILE", keyFile)),
		"command":            build(t, attrs{"age_identity_command": texts("cat", keyFile)}, nil),
		"a broken file beside": build(t, attrs{"age_identities": texts(identity), "age_identity_files": texts(filepath.Join(dir, "missing"))},
			nil),
	} {
		t.Run(name, func(t *testing.T) { opens(t, m, file, plainState) })
	}
	says := kindtest.OpenMistakes(t, "sops, age")
	for name, c := range map[string]struct {
		attrs attrs
		env   attr.LookupEnv
		noKey bool
	}{
		"another identity":       {attrs{"age_identities": texts(other)}, nil, true},
		"none":                   {nil, nil, true},
		"none in an environment": {nil, environment(), true},
		"a command":              {nil, environment("SOPS_AGE_KEY_CMD", "touch "+filepath.Join(dir, "ran")), true},
		"not an identity":        {attrs{"age_identities": texts("canary")}, nil, false},
		"nothing in it":          {attrs{"age_identities": texts("# nothing")}, nil, false},
		"a plugin":               {attrs{"age_identities": texts("AGE-PLUGIN-CANARY-1QQQQ")}, nil, false},
		"a command that fails":   {attrs{"age_identity_command": texts("no-such-program")}, nil, false},
		"a command without keys": {attrs{"age_identity_command": texts("echo", "canary")}, nil, false},
		"a protected file":       {attrs{"age_identities": texts("-----BEGIN AGE ENCRYPTED FILE-----\n")}, nil, false},
		"no file":                {attrs{"age_identity_files": texts(filepath.Join(dir, "missing"))}, nil, false},
		"a folder":               {attrs{"age_identity_files": texts(dir)}, nil, false},
		"a placeholder":          {attrs{"age_identities": texts(" <identity>\n")}, nil, false},
		"a path":                 {attrs{"age_identities": texts("~/keys.txt")}, nil, false},
		"a file's name":          {attrs{"age_identities": texts(keyFile)}, nil, false},
		"no file of a variable":  {nil, environment("SOPS_AGE_KEY_FILE", filepath.Join(dir, "missing")), false},
		"no SSH key of another":  {nil, environment("SOPS_AGE_SSH_PRIVATE_KEY_FILE", filepath.Join(dir, "missing")), false},
		"wrong, and a file gone": {attrs{"age_identities": texts(other), "age_identity_files": texts(filepath.Join(dir, "missing"))}, nil, false},
	} {
		t.Run(name, func(t *testing.T) { says.Error(t, name, fails(t, build(t, c.attrs, c.env), file, c.noKey)) })
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a command of the environment was run")
	}
}

// TestAgeAtHome: sops's own key file belongs to the user, and not to the environment.
func TestAgeAtHome(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("sops has other folders here")
	}
	identity, recipient := newAge(t)
	other, _ := newAge(t)
	file := sealAge(t, recipient)
	home, xdg := t.TempDir(), t.TempDir()
	write := func(folder, content string) (name string) {
		folder = filepath.Join(folder, "sops", "age")
		name = filepath.Join(folder, "keys.txt")
		if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(name, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	strange := write(t.TempDir(), other+"\n")
	t.Setenv("HOME", home)
	t.Setenv("SEEN_BY_PROGRAMS", "x")
	command := attrs{"age_identity_command": texts("sh", "-c", `test -z "$SEEN_BY_PROGRAMS" && cat "$0"`, write(xdg, identity+"\n"))}
	opens(t, build(t, command, nil), file, plainState)
	fails(t, build(t, command, environment()), file, false)
	opens(t, build(t, nil, environment("XDG_CONFIG_HOME", xdg)), file, plainState)
	fails(t, build(t, nil, nil), file, true)
	write(filepath.Join(home, ".config"), other+"\n"+identity+"\n")
	for _, env := range []attr.LookupEnv{nil, environment()} {
		opens(t, build(t, nil, env), file, plainState)
		for _, given := range []attrs{
			{"age_identities": texts(other)}, {"age_identity_files": texts(strange)}, {"age_identity_command": texts("cat", strange)},
			{"age_identities": texts(other), "age_identity_files": texts(strange)},
			{"age_identities": texts(other), "age_identity_files": texts(strange), "age_identity_command": texts("cat", strange)},
		} {
			fails(t, build(t, given, env), file, true)
		}
	}
	fails(t, build(t, nil, environment("SOPS_AGE_SSH_PRIVATE_KEY_FILE", strange)), file, true)
}

// TestAgeSSH uses keys that ssh-keygen made.
func TestAgeSSH(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("there is no ssh-keygen")
	}
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(home, ".ssh", "id_ed25519")
	generate := func(path, passphrase string) string {
		if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f",
			path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		public, err := os.ReadFile(path + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(public))
	}
	file := sealAge(t, generate(key, ""))
	opens(t, build(t, attrs{"age_identity_files": texts(key)}, nil), file, plainState)
	opens(t, build(t, nil, environment("SOPS_AGE_SSH_PRIVATE_KEY_FILE", key)), file, plainState)
	// What is in the home directory is for other purposes: its public half may
	// be known to everybody.
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for _, env := range []attr.LookupEnv{nil, environment()} {
		fails(t, build(t, nil, env), file, true)
		opens(t, build(t, attrs{"use_ssh_keys": cty.True}, env), file, plainState)
	}
	locked := filepath.Join(home, "locked")
	file = sealAge(t, generate(locked, "canary"))
	fails(t, build(t, attrs{"age_identity_files": texts(locked)}, nil), file, false)
}

func TestKeyGroups(t *testing.T) {
	t.Parallel()
	var identities []string
	dataKey := newDataKey()
	parts, err := shamir.Split(dataKey, 4, 3)
	if err != nil {
		t.Fatal(err)
	}
	var groups []getsops.KeyGroup
	for i := range 4 {
		identity, recipient := newAge(t)
		_, foreign := newAge(t)
		identities = append(identities, identity)
		groups = append(groups, getsops.KeyGroup{ageKey(t, foreign, parts[i]), ageKey(t, recipient, parts[i])})
	}
	file := sealed{plain: plainState, dataKey: dataKey, groups: groups, threshold: 3}.file(t)
	says := kindtest.OpenMistakes(t, "sops, key groups")
	for n := range 5 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			a := attrs{}
			if n > 0 {
				a["age_identities"] = texts(identities[4-n:]...)
			}
			m := build(t, a, nil)
			if n >= 3 {
				opens(t, m, file, plainState)
				return
			}
			says.Error(t, fmt.Sprintf("%d of 4", n), fails(t, m, file, true))
		})
	}
}

// severalfold is a data key that is encrypted for one recipient, n times.
func severalfold(t *testing.T, identity string, n int) string {
	t.Helper()
	id, err := filippoage.ParseX25519Identity(identity)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	armored := armor.NewWriter(&text)
	w, err := filippoage.Encrypt(armored, slices.Repeat([]filippoage.Recipient{id.Recipient()}, n)...)
	if err != nil || w.Close() != nil || armored.Close() != nil {
		t.Fatal("age does not encrypt")
	}
	return text.String()
}

// Numbers and names of a file are checked before any key is used.
func TestHostileMetadata(t *testing.T) {
	t.Parallel()
	identity, recipient := newAge(t)
	dataKey := newDataKey()
	k := func() keys.MasterKey { return &age.MasterKey{Recipient: recipient, EncryptedKey: "-----BEGIN AGE"} }
	many := func(n int) (g getsops.KeyGroup) {
		for range n {
			g = append(g, k())
		}
		return g
	}
	var groups []getsops.KeyGroup
	for range 65 {
		groups = append(groups, many(1))
	}
	m, says := build(t, attrs{"age_identities": texts(identity)}, nil), kindtest.OpenMistakes(t, "sops, hostile metadata")
	for name, c := range map[string]struct {
		sealed sealed
	}{
		"many groups":         {sealed{groups: groups}},
		"many keys":           {sealed{groups: []getsops.KeyGroup{many(129)}}},
		"as many as may be":   {sealed{groups: slices.Repeat([]getsops.KeyGroup{many(2)}, 64), threshold: 2}},
		"65 groups":           {sealed{groups: slices.Repeat([]getsops.KeyGroup{many(1)}, 65), threshold: 2}},
		"all in the error":    {sealed{groups: []getsops.KeyGroup{many(20)}}},
		"longest wrapped key": {sealed{groups: []getsops.KeyGroup{{&age.MasterKey{EncryptedKey: strings.Repeat("A", 32<<10)}}}}},
		"threshold of 1":      {sealed{groups: groups[:3], threshold: 1}},
		"threshold too high":  {sealed{groups: groups[:3], threshold: 4}},
		"threshold negative":  {sealed{groups: groups[:3], threshold: -1}},
		"long wrapped key":    {sealed{groups: []getsops.KeyGroup{{&age.MasterKey{EncryptedKey: strings.Repeat("A", 1<<20)}}}}},
		"age key for many":    {sealed{groups: []getsops.KeyGroup{{&age.MasterKey{EncryptedKey: severalfold(t, identity, 129)}}}}},
		"PGP key for many":    {sealed{groups: []getsops.KeyGroup{{pgpKey("AAAA", forMany(t, 129))}}}},
		"long name":           {sealed{groups: []getsops.KeyGroup{{&age.MasterKey{EncryptedKey: "x", Recipient: strings.Repeat("A", 64<<10)}}}}},
		"version of tomorrow": {sealed{groups: groups[:1], change: func(m *getsops.Metadata) { m.Version = "4.0.0" }}},
		"no version":          {sealed{groups: groups[:1], change: func(m *getsops.Metadata) { m.Version = "" }}},
	} {
		t.Run(name, func(t *testing.T) {
			c.sealed.plain, c.sealed.dataKey = plainState, dataKey
			file := c.sealed.file(t)
			shortOnly(t, file)
			says.Error(t, name, fails(t, m, file, false))
		})
	}
}

// shortOnly skips large files with -short: the race detector finds nothing in them.
func shortOnly(t *testing.T, file []byte) {
	t.Helper()
	if testing.Short() && len(file) > 1<<20 {
		t.Skip("the file is large")
	}
}

// A file that is no document of sops, or one that would be expensive.
func TestHostileText(t *testing.T) {
	t.Parallel()
	identity, recipient := newAge(t)
	m := build(t, attrs{"age_identities": texts(identity)}, nil)
	file := string(sealAge(t, recipient))
	meta := file[strings.Index(file, `"sops"`):]
	says := kindtest.OpenMistakes(t, "sops, hostile text")
	for name, c := range map[string]struct{ file string }{
		"deep":                {`{"a":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + "," + meta},
		"twice":               {strings.Replace(file, `"outputs"`, `"outputs": {}, "outputs"`, 1)},
		"twice, other case":   {strings.Replace(file, `"resources"`, `"Outputs": {}, "resources"`, 1)},
		"value null":          {strings.Replace(file, `"sensitive"`, `"VALUE": null, "sensitive"`, 1)},
		"metadata twice":      {strings.Replace(file, `"sops"`, `"sops": {}, "sops"`, 1)},
		"plaintext beside":    {strings.Replace(file, `"resources"`, `"extra": "canary", "resources"`, 1)},
		"number beside":       {strings.Replace(file, `"resources"`, `"extra": 1, "resources"`, 1)},
		"bytes":               {strings.Replace(file, "type:str]", "type:bytes]", 1)},
		"no MAC":              {macPattern.ReplaceAllString(file, `"mac": ""`)},
		"twice in a list":     {`{"l":[{"a":null},{"b":null,"B":null}],` + meta},
		"plaintext in a list": {`{"l":[null,"canary"],` + meta},
		"deep objects":        {strings.Repeat(`{"a":`, 1002) + "null" + strings.Repeat("}", 1001) + "," + meta},
		"deep in YAML":        {"a: " + strings.Repeat("[", 1002) + strings.Repeat("]", 1002) + "\nsops:\n  lastmodified: x\n"},
		"deep maps in YAML":   {"a: " + strings.Repeat("{a: ", 1002) + strings.Repeat("}", 1002) + "\nsops:\n  lastmodified: x\n"},
		"an empty group": {`{"sops":{"mac":"ENC[x]","lastmodified":"2026-01-01T00:00:00Z","version":"3.0.0","key_groups":[` +
			`{"age":[{"recipient":"x","enc":"x"}]},{}]}}`},
		"huge number":        {`{"n": 1e999,` + meta},
		"two documents":      {file + file},
		"alias bomb":         {yamlBomb()},
		"two in YAML":        {"a: b\n---\nsops:\n  lastmodified: x\n"},
		"number keys":        {"1: b\nsops:\n  lastmodified: x\n"},
		"large YAML":         {"sops:\n  lastmodified: x\n" + strings.Repeat("a", 17<<20)},
		"many keys of none":  {`{"sops":{"mac":"ENC[x]","version":"3.0.0","kms":[` + strings.Repeat("null,", 1<<20) + `null]}}`},
		"long metadata":      {`{"sops":{"mac":"ENC[x]","version":"3.0.0","x":"` + strings.Repeat("x", 9<<20) + `"}}`},
		"no metadata":        {`{"sops":null,"a":"mac lastmodified"}`},
		"metadata of a text": {`{"sops":{"lastmodified":"x","mac":"ENC[x]","version":"3.0.0","age":[{"enc":"x"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			shortOnly(t, []byte(c.file))
			start := time.Now()
			says.Error(t, name, fails(t, m, []byte(c.file), false))
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func yamlBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x]\n")
	for i := range 40 {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	b.WriteString("sops:\n    lastmodified: x\n    mac: ENC[x]\n")
	return b.String()
}

// TestMAC: values that decrypt one by one, and yet are not what was sealed.
//
// Promise: Authentication
func TestMAC(t *testing.T) {
	t.Parallel()
	identity, recipient := newAge(t)
	m := build(t, attrs{"age_identities": texts(identity)}, nil)
	dataKey := newDataKey()
	file := func(plain string) []byte {
		return sealed{plain: plain, dataKey: dataKey, groups: []getsops.KeyGroup{{ageKey(t, recipient, dataKey)}}}.file(t)
	}
	one, two := file(`{"a":"1","l":["x","y"]}`), file(`{"a":"2","l":["x","y"]}`)
	value := func(file []byte) []byte { return valuePattern.Find(file) }
	mixed := bytes.Replace(one, value(one), value(two), 1)
	says := kindtest.OpenMistakes(t, "sops, values")
	says.Error(t, "of another file", fails(t, m, mixed, false))
	list := valuePattern.FindAll(one, 3)
	swapped := []byte(strings.NewReplacer(string(list[1]), string(list[2]), string(list[2]), string(list[1])).Replace(string(one)))
	says.Error(t, "swapped", fails(t, m, swapped, false))
	removed := bytes.Replace(one, []byte(`"a": `+string(value(one))+","), nil, 1)
	says.Error(t, "removed", fails(t, m, removed, false))
	opens(t, m, one, `{"a":"1","l":["x","y"]}`)
}

// TestPartlyEncrypted: sops can leave values as they are, and then anyone can
// exchange them.
//
// Promise: Plaintext
func TestPartlyEncrypted(t *testing.T) {
	t.Parallel()
	identity, recipient := newAge(t)
	strict, says := build(t, attrs{"age_identities": texts(identity)}, nil), kindtest.OpenMistakes(t, "sops, partly encrypted")
	allowed := build(t, attrs{"age_identities": texts(identity), "allow_unencrypted_values": cty.True}, nil)
	for name, change := range map[string]func(*getsops.Metadata){
		"unencrypted_regex":  func(m *getsops.Metadata) { m.UnencryptedRegex = "^(version|serial|lineage)$" },
		"encrypted_regex":    func(m *getsops.Metadata) { m.EncryptedRegex = "^(outputs|resources)$" },
		"unencrypted_suffix": func(m *getsops.Metadata) { m.UnencryptedSuffix = "sion" },
		"encrypted_suffix":   func(m *getsops.Metadata) { m.EncryptedSuffix = "puts" },
		"mac_only_encrypted": func(m *getsops.Metadata) { m.EncryptedRegex, m.MACOnlyEncrypted = "^outputs$", true },
	} {
		t.Run(name, func(t *testing.T) {
			dataKey := newDataKey()
			file := sealed{plain: plainState, dataKey: dataKey, groups: []getsops.KeyGroup{{ageKey(t, recipient, dataKey)}}, change: change}.file(t)
			opens(t, allowed, file, plainState)
			says.Error(t, name, fails(t, strict, file, false))
		})
	}
	dataKey := newDataKey()
	seal := func(plain string, change func(*getsops.Metadata)) []byte {
		return sealed{plain: plain, dataKey: dataKey, groups: []getsops.KeyGroup{{ageKey(t, recipient, dataKey)}}, change: change}.file(t)
	}
	// Nothing is left out here, and the MAC is of another kind.
	file := seal(plainState, func(m *getsops.Metadata) { m.MACOnlyEncrypted = true })
	opens(t, strict, file, plainState)
	says.Error(t, "the MAC is of all", fails(t, strict, bytes.Replace(file, []byte(`"mac_only_encrypted": true`),
		[]byte(`"mac_only_encrypted": false`), 1), false))
	// The MAC covers what is not encrypted, too.
	file = seal(plainState, func(m *getsops.Metadata) { m.UnencryptedRegex = "^terraform_version$" })
	says.Error(t, "a value in plaintext was changed", fails(t, allowed, bytes.Replace(file, []byte(`"1.5.7"`), []byte(`"1.5.8"`), 1), false))
	// A rule that the file has by itself does not make plaintext of ciphertext.
	file = bytes.Replace(seal(plainState, nil), []byte(`"lastmodified"`), []byte(`"unencrypted_regex": "secret", "lastmodified"`), 1)
	opens(t, strict, bytes.Replace(file, []byte(`"unencrypted_suffix": "_unencrypted",`), nil, 1), plainState)
	says.Error(t, "a rule of comments",
		fails(t, allowed, seal(plainState, func(m *getsops.Metadata) { m.EncryptedCommentRegex = "x" }), false))
	for name, rule := range map[string]struct {
		name    int // its length
		pattern string
	}{
		"a slow rule":        {100_000, "(a{1,30}){1,30}"},
		"a long rule":        {100_000, strings.Repeat("a", 60)},
		"a long rule, once":  {100_000, "(" + strings.Repeat("a", 60) + "){1}"},
		"a rule of millions": {1, "(" + strings.Repeat("ab?", 200) + "){1000}"},
	} {
		file := bytes.Replace(seal(`{"l":["x"]}`, nil), []byte(`"l"`), []byte(`"`+strings.Repeat("a", rule.name)+`"`), 1)
		file = bytes.Replace(file, []byte(`"lastmodified"`), []byte(`"encrypted_regex": "`+rule.pattern+`", "lastmodified"`), 1)
		says.Error(t, name, fails(t, allowed, bytes.Replace(file, []byte(`"unencrypted_suffix": "_unencrypted",`), nil, 1), false))
	}
}

// TestBinary: sops takes a file as one value unless its name ends in .json,
// which that of a state does not.
func TestBinary(t *testing.T) {
	t.Parallel()
	identity, recipient := newAge(t)
	dataKey := newDataKey()
	wrapped, err := json.Marshal(map[string]string{"data": plainState})
	if err != nil {
		t.Fatal(err)
	}
	file := sealed{plain: string(wrapped), dataKey: dataKey, groups: []getsops.KeyGroup{{ageKey(t, recipient, dataKey)}}}.file(t)
	m := build(t, attrs{"age_identities": texts(identity)}, nil)
	got, err := m.Decrypt(t.Context(), nil, file)
	if err != nil || string(got) != plainState {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestRecognizes: what the method takes for a file of sops.
func TestRecognizes(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{
		"":                                      false,
		`{"sops":{"mac":"x"}}`:                  true,
		` {"sops":{"lastmodified":"x"}}`:        true,
		`{"sops":{"mac":"x","lastmodified":1}}`: true,
		`{"sops":{"mac":"x"}`:                   false,
		`{"sops":{}}`:                           false,
		`{"sops":1}`:                            false,
		`{"mac":"sops"}`:                        false,
		"sops:\n  lastmodified: x\n":            true,
		"a: b\n\"sops\" :\n lastmodified:\n":    true,
		"sops:\n  mac: x\n":                     false,
		"sops: lastmodified\n":                  false,
		"  sops:\n  lastmodified: x\n":          false,
	} {
		if got := sops.Block().OwnFormat([]byte(file)); got != want {
			t.Errorf("%q: got %t", file, got)
		}
	}
}

func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	says := kindtest.OpenMistakes(t, "sops, settings")
	for name, values := range map[string][]string{
		"allowed_vault_addresses": {"vault.example.com", "https://", "https://a/b", "https://user@a", "https://a?x", "ftp://a"},
		"allowed_azure_vaults":    {"http://example.vault.azure.net", "example.vault.azure.net"},
	} {
		for _, v := range values {
			_, err := tryBuild(attrs{name: texts(v)}, nil)
			says.Error(t, name+" "+v, err)
		}
	}
	_, err := tryBuild(attrs{"gpg_command": cty.StringVal("")}, nil)
	says.Error(t, "an empty command", err)
	for name, command := range map[string]cty.Value{"no words": cty.ListValEmpty(cty.String), "an empty word": texts("", "x")} {
		_, err := tryBuild(attrs{"age_identity_command": command}, nil)
		says.Error(t, "age_identity_command of "+name, err)
	}
}
