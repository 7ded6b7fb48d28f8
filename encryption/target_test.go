package encryption_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// plan has what makes it one.
var plan = archive("tfplan", "tfstate")

const (
	// What Terraform 1.11 and OpenTofu, and what older versions of Terraform write.
	record = `{"version":3,"terraform_version":"1.11.4","backend":{"type":"local","config":{"path":"x.tfstate"},"hash":1}}`
	store  = `{"version":3,"terraform_version":"1.15.0","state_store":{"type":"x","config":{},"hash":1}}`
	oldRec = `{"version":3,"serial":1,"lineage":"l","backend":{"type":"local","config":{},"hash":1},` +
		`"modules":[{"path":["root"],"outputs":{},"resources":{},"depends_on":[]}]}`

	// What must not be taken for that.
	oldState = `{"version":3,"serial":1,"lineage":"l","modules":[{"path":["root"],"outputs":{},"resources":{},"depends_on":[]}]}`
	oldCopy  = `{"version":3,"serial":1,"lineage":"l","backend":{"type":"s3","config":{}},` +
		`"modules":[{"path":["root"],"outputs":{"a":{"sensitive":false,"type":"string","value":"b"}},"resources":{}}]}`
	newState = `{"version":4,"serial":1,"lineage":"l","backend":{},"outputs":{}}`
)

// all is a configuration with every target.
const all = keys + `
state { method = method.aes_gcm.a }
plan { method = method.aes_gcm.a }
remote_state_data_sources {
	default { method = method.aes_gcm.a }
	remote_state_data_source "network" { method = method.aes_gcm.b }
}`

var reasons = map[string]error{
	"no key": encryption.ErrNoKey, "not configured": encryption.ErrNotConfigured,
	"plaintext": encryption.ErrPlaintext, "damaged": encryption.ErrDamaged, "record": encryption.ErrBackendRecord,
}

// reason names the one reason that err wraps, "other" if it wraps none.
func reason(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	got := "other"
	for name, is := range reasons {
		if !errors.Is(err, is) {
			continue
		}
		if got != "other" {
			t.Errorf("%v is %s and %s", err, got, name)
		}
		got = name
	}
	if failed := (*encryption.Error)(nil); !errors.As(err, &failed) {
		t.Errorf("%v is a %T", err, err)
	}
	return got
}

// Promise: Reasons
func TestReasons(t *testing.T) {
	t.Parallel()
	enc, says := newEncryption(t, withBox(), boxes), golden(t, "reasons")
	sealed := string(seal(t, all, state))
	flipped := strings.Replace(sealed, `"encrypted_data":"`, `"encrypted_data":"AAAA`, 1)
	none := []string{}
	serial := strings.Replace(sealed, `"serial":7`, `"serial":8`, 1)
	for name, c := range map[string]struct {
		file    string
		methods []string // method.aes_gcm.a if nil
		want    string
	}{
		"opened":                   {file: sealed, want: ""},
		"another key":              {file: sealed, methods: []string{"method.aes_gcm.b"}, want: "no key"},
		"changed ciphertext":       {file: flipped, want: "no key"},
		"no method":                {file: sealed, methods: none, want: "not configured"},
		"only plaintext":           {file: sealed, methods: []string{"unencrypted"}, want: "not configured"},
		"another format":           {file: "BOX 1\n", want: "not configured"},
		"sops":                     {file: `{"sops":{"mac":"x","version":"3"},"data":"x"}`, want: "not configured"},
		"a layer without a method": {file: "BOX 1\n" + sealed, methods: []string{"method.box.plain"}, want: "not configured"},
		"plaintext":                {file: state, want: "plaintext"},
		"plaintext in an envelope": {file: "BOX 1\n" + state, methods: []string{"method.box.outer"}, want: "plaintext"},
		"a plan in an envelope":    {file: "BOX 1\n" + plan, methods: []string{"method.box.outer"}, want: "plaintext"},
		"a plan":                   {file: plan, want: "plaintext"},
		"cut off":                  {file: sealed[:len(sealed)/2], want: "damaged"},
		"empty":                    {file: "", methods: []string{"method.aes_gcm.a", "unencrypted"}, want: "damaged"},
		"empty, a broken method":   {file: "", methods: []string{"method.box.broken"}, want: "damaged"},
		"another serial":           {file: serial, want: "damaged"},
		"another serial, fallback": {file: serial, methods: []string{"method.aes_gcm.b", "method.aes_gcm.a"}, want: "damaged"},
		"another lineage":          {file: strings.Replace(sealed, `"l-1"`, `"l-2"`, 1), want: "damaged"},
		"meta of another type":     {file: strings.Replace(sealed, `"meta":`, `"meta":1,"x":`, 1), want: "damaged"},
		"no base64":                {file: strings.Replace(sealed, `"encrypted_data":"`, `"encrypted_data":"%`, 1), want: "damaged"},
		"inside is damaged": {file: "BOX 1\n" + strings.Replace(sealed, `"meta":`, `"meta":1,"x":`, 1), methods: []string{"method.box.outer"},
			want: "damaged"},
		"nothing inside":            {file: "BOX 1\n", methods: []string{"method.box.plain"}, want: "damaged"},
		"some text":                 {file: "hello", want: "damaged"},
		"a later version":           {file: `{"encryption_version":"v9"}`, want: "other"},
		"a record":                  {file: record, methods: []string{"method.aes_gcm.a", "unencrypted"}, want: "record"},
		"no such method":            {file: sealed, methods: []string{"method.aes_gcm.gone"}, want: "other"},
		"a broken method, fallback": {file: "BOX 1\n", methods: []string{"method.box.wrong", "method.box.broken"}, want: "other"},
	} {
		if c.methods == nil {
			c.methods = []string{"method.aes_gcm.a"}
		}
		target, err := enc.Use(c.methods...)
		if err == nil {
			_, err = target.Decrypt(t.Context(), []byte(c.file))
		}
		if got := reason(t, err); got != c.want {
			t.Errorf("%s: got %q, want %q: %v", name, got, c.want, err)
		}
		if err != nil {
			says.Error(t, name, err)
		}
	}
}

// TestTargets: each target opens and seals its own kind of file, plaintext only
// without any settings, and nothing that is not what it looks like.
//
// Promise: Kinds of files
func TestTargets(t *testing.T) {
	t.Parallel()
	none, says := newEncryption(t, lighttest.Registry(), ""), golden(t, "targets")
	blank := newEncryption(t, lighttest.Registry(), "encryption {}")
	strict := newEncryption(t, lighttest.Registry(), all)
	plain := newEncryption(t, lighttest.Registry(), `state { method = "unencrypted" }`)
	sealedState, sealedPlan := string(seal(t, all, state)), sealPlan(t)
	const sops = `{"version":4,"outputs":{},"sops":{"mac":"ENC[AES256_GCM,data:x]","version":"3.9.0","lastmodified":"2026-01-01T00:00:00Z"}}`
	for name, c := range map[string]struct {
		target encryption.Target
		file   string
		want   string // the reason of the error, "other", or "" if it opens
	}{
		"no settings, state":                {target: none.State(), file: state, want: ""},
		"no settings, plan":                 {target: none.Plan(), file: plan, want: ""},
		"no settings, old state":            {target: none.State(), file: oldState, want: ""},
		"no settings, copy of an old state": {target: none.State(), file: oldCopy, want: ""},
		"no settings, backend in a state":   {target: none.State(), file: newState, want: ""},
		"empty settings":                    {target: blank.State(), file: state, want: ""},
		"no settings, enforced":             {target: none.State().Enforce(), file: state, want: "plaintext"},
		"no settings, methods by name":      {target: use(t, none), file: state, want: "plaintext"},
		"no settings, plan as state":        {target: none.State(), file: plan, want: "other"},
		"no settings, state as plan":        {target: none.Plan(), file: state, want: "other"},
		"no settings, record":               {target: none.State(), file: record, want: "record"},
		"no settings, record of a store":    {target: none.State(), file: store, want: "record"},
		"no settings, old record":           {target: none.State(), file: oldRec, want: "record"},
		"no settings, encrypted state":      {target: none.State(), file: sealedState, want: "not configured"},
		"no settings, encrypted plan":       {target: none.Plan(), file: sealedPlan, want: "not configured"},
		"no settings, sops":                 {target: none.State(), file: sops, want: "not configured"},
		"no settings, empty":                {target: none.State(), file: "", want: "damaged"},
		"no settings, text":                 {target: none.State(), file: "hello", want: "damaged"},
		"settings, state":                   {target: strict.State(), file: state, want: "plaintext"},
		"settings, plan":                    {target: strict.Plan(), file: plan, want: "plaintext"},
		"settings, remote state":            {target: strict.RemoteState(""), file: state, want: "plaintext"},
		"settings for another target":       {target: plain.Plan(), file: plan, want: "plaintext"},
		"settings, encrypted state":         {target: strict.State(), file: sealedState, want: ""},
		"settings, encrypted plan":          {target: strict.Plan(), file: sealedPlan, want: ""},
		"settings, state as plan":           {target: strict.Plan(), file: sealedState, want: "other"},
		"settings, plaintext plan as state": {target: strict.State(), file: plan, want: "other"},
		"settings, plan as state":           {target: strict.State(), file: sealedPlan, want: "other"},
		"unencrypted, state":                {target: plain.State(), file: state, want: ""},
		"unencrypted, plan as state":        {target: plain.State(), file: plan, want: "other"},
		"unencrypted, enforced":             {target: plain.State().Enforce(), file: state, want: "other"},
		"unencrypted, record":               {target: plain.State(), file: record, want: "record"},
	} {
		opened, err := c.target.Decrypt(t.Context(), []byte(c.file))
		if err != nil {
			says.Error(t, name, err)
		}
		if got := reason(t, err); got != c.want {
			t.Errorf("%s: got %q, want %q: %v", name, got, c.want, err)
			continue
		}
		if err != nil {
			continue
		}
		kind := encryption.KindState
		if strings.HasSuffix(name, "plan") {
			kind = encryption.KindPlan
		}
		isSealed := strings.Contains(c.file, "encryption_version")
		if opened.Kind != kind || opened.Encrypted != isSealed || !isSealed && string(opened.Data) != c.file {
			t.Errorf("%s: got %+v", name, opened)
		}
	}
}

func sealPlan(t *testing.T) string {
	t.Helper()
	file, err := newEncryption(t, lighttest.Registry(), all).Plan().Encrypt(t.Context(), []byte(plan))
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

// TestEncryptRefuses what could not be opened again as what it is.
//
// Promise: Kinds of files
func TestEncryptRefuses(t *testing.T) {
	t.Parallel()
	strict, none := newEncryption(t, withBox(), boxes+all[len(keys):]), newEncryption(t, lighttest.Registry(), "")
	says := golden(t, "sealing")
	for name, c := range map[string]struct {
		target  encryption.Target
		plain   string
		refused bool
	}{
		"state":              {target: strict.State(), plain: state},
		"plan":               {target: strict.Plan(), plain: plan},
		"state by methods":   {target: use(t, strict, "method.aes_gcm.a"), plain: state},
		"plan by methods":    {target: use(t, strict, "method.aes_gcm.a"), plain: plan},
		"plan as state":      {target: strict.State(), plain: plan, refused: true},
		"state as plan":      {target: strict.Plan(), plain: state, refused: true},
		"sealed":             {target: strict.State(), plain: string(seal(t, all, state)), refused: true},
		"sealed plan":        {target: strict.Plan(), plain: sealPlan(t), refused: true},
		"a broken seal":      {target: strict.State(), plain: `{"encryption_version":"v0","meta":1}`, refused: true},
		"sops":               {target: strict.State(), plain: `{"version":4,"sops":{"mac":"x","version":"3"}}`, refused: true},
		"another format":     {target: strict.State(), plain: "BOX 1\n" + state, refused: true},
		"nothing":            {target: strict.State(), plain: "", refused: true},
		"text":               {target: strict.State(), plain: "hello", refused: true},
		"an object":          {target: use(t, strict, "method.aes_gcm.a"), plain: "{}", refused: true},
		"a record":           {target: strict.State(), plain: record, refused: true},
		"no settings":        {target: none.State(), plain: state, refused: true},
		"a serial twice":     {target: strict.State(), plain: `{"version":4,"serial":7,"lineage":"l","serial":8}`, refused: true},
		"a lineage twice":    {target: strict.State(), plain: `{"version":4,"lineage":"l","lineage":"l"}`, refused: true},
		"a version twice":    {target: strict.State(), plain: `{"version":"x","version":4}`, refused: true},
		"a capital":          {target: strict.State(), plain: `{"version":4,"Serial":7}`, refused: true},
		"a version capital":  {target: strict.State(), plain: `{"VERSION":4,"serial":7}`, refused: true},
		"a long s":           {target: strict.State(), plain: "{\"version\":4,\"\u017ferial\":7}", refused: true},
		"a capital in a box": {target: use(t, strict, "method.box.outer"), plain: `{"version":4,"Lineage":"l"}`, refused: true},
	} {
		file, err := c.target.Encrypt(t.Context(), []byte(c.plain))
		switch {
		case c.refused:
			if says.Error(t, name, err); file != nil {
				t.Errorf("%s: got %s", name, file)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		}
		if got := reason(t, err); (got == "not configured") != (name == "no settings") {
			t.Errorf("%s: got the reason %q", name, got)
		}
	}
}

// TestDecryptLeavesItsInput: the same bytes can be tried with other settings.
//
// Promise: Input
func TestDecryptLeavesItsInput(t *testing.T) {
	t.Parallel()
	enc := newEncryption(t, withBox(), boxes)
	sealed := seal(t, all, state)
	for name, c := range map[string]struct {
		file           []byte
		wrong, correct string
	}{
		"envelope":   {file: sealed, wrong: "method.aes_gcm.b", correct: "method.aes_gcm.a"},
		"plaintext":  {file: []byte(state), wrong: "method.aes_gcm.b", correct: "unencrypted"},
		"whole file": {file: append([]byte("BOX 1\n"), sealed...), wrong: "method.box.other", correct: "method.box.outer"},
	} {
		file := bytes.Clone(c.file)
		for _, method := range []string{c.wrong, c.correct, c.wrong, c.correct} {
			opened, err := use(t, enc, method).Decrypt(t.Context(), file)
			if (err == nil) != (method == c.correct) || err == nil && string(opened.Data) != state {
				t.Errorf("%s, %s: %v", name, method, err)
			}
			if err == nil {
				clear(opened.Data)
			}
			if !bytes.Equal(file, c.file) {
				t.Fatalf("%s: %s changed the file", name, method)
			}
		}
		opened, err := use(t, enc, c.correct).DecryptInPlace(t.Context(), file)
		if err != nil || string(opened.Data) != state {
			t.Errorf("%s, in place: %v", name, err)
		}
	}
}

// TestInPlaceIsInPlace: otherwise it would not help with large files.
func TestInPlaceIsInPlace(t *testing.T) {
	t.Parallel()
	file := seal(t, all, state)
	before := bytes.Clone(file)
	if _, err := newEncryption(t, lighttest.Registry(), all).State().DecryptInPlace(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(file, before) {
		t.Error("the memory of the file was not used")
	}
}

// TestInto: the copy is made in the memory that is given, if there is room, and the file stays as it is.
func TestInto(t *testing.T) {
	t.Parallel()
	file := seal(t, all, state)
	before := bytes.Clone(file)
	target := newEncryption(t, lighttest.Registry(), all).State()
	for size, isUsed := range map[int]bool{len(state) + 64: true, len(state): false, 0: false} {
		memory := make([]byte, size)
		opened, err := target.DecryptInto(t.Context(), file, memory)
		if err != nil || string(opened.Data) != state || !bytes.Equal(file, before) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if bytes.Contains(memory, []byte(state)) != isUsed {
			t.Errorf("%d bytes: used: %t", size, !isUsed)
		}
	}
}

// moduleOf is a record whose modules take so many bytes.
func moduleOf(size int) string {
	modules := fmt.Sprintf(`[{"path":[%q]}]`, strings.Repeat("x", size-len(`[{"path":[""]}]`)))
	return `{"version":3,"backend":{},"modules":` + modules + `}`
}

func TestKindsOfRecords(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]encryption.FileKind{
		record: encryption.KindBackendRecord, store: encryption.KindBackendRecord, oldRec: encryption.KindBackendRecord,
		oldState: encryption.KindState, oldCopy: encryption.KindState, newState: encryption.KindState,
		`{"version":null}`:                                                encryption.KindUnknown,
		`{"version":4}`:                                                   encryption.KindState,
		`{"version":4,"check_results":null}`:                              encryption.KindState,
		`{"version":4,"later":1,"Serial":1}`:                              encryption.KindState,
		`{"version":3,"deployment":{}}`:                                   encryption.KindUnknown,
		`{"version":3,"backend":null}`:                                    encryption.KindState,
		`{"version":3,"backend":"s3"}`:                                    encryption.KindState,
		`{"version":3,"backend":{},"modules":1}`:                          encryption.KindState,
		`{"version":3,"backend":{},"modules":[{"resources":{"a.b":{}}}]}`: encryption.KindState,
		moduleOf(1001):                                                    encryption.KindState,
		moduleOf(1000):                                                    encryption.KindBackendRecord,
		`{"version":3,"backend":{},"modules":null}`:                       encryption.KindBackendRecord,
	} {
		if info, err := encryption.Inspect([]byte(file)); err != nil || info.Kind != want {
			t.Errorf("%s: %v, %v", file, info.Kind, err)
		}
	}
}

// TestRemoteState: as in OpenTofu, a name that is not configured is the default.
func TestRemoteState(t *testing.T) {
	t.Parallel()
	none, strict := newEncryption(t, lighttest.Registry(), ""), newEncryption(t, lighttest.Registry(), all)
	noDefault := newEncryption(t, lighttest.Registry(), keys+`remote_state_data_sources {
		remote_state_data_source "network" { method = method.aes_gcm.b }
	}`)
	says := golden(t, "remote states")
	for name, c := range map[string]struct {
		enc          *encryption.Encryption
		name, method string
		refused      bool // plaintext is
	}{
		"named":                  {enc: strict, name: "network", method: "method.aes_gcm.b", refused: true},
		"the default":            {enc: strict, method: "method.aes_gcm.a", refused: true},
		"another":                {enc: strict, name: "other", method: "method.aes_gcm.a", refused: true},
		"named, without default": {enc: noDefault, name: "network", method: "method.aes_gcm.b", refused: true},
		"no default":             {enc: noDefault, name: "other", refused: true},
		"no settings":            {enc: none, name: "network"},
		"no settings, no name":   {enc: none},
	} {
		target := c.enc.RemoteState(c.name)
		_, err := target.Decrypt(t.Context(), []byte(state))
		if c.refused {
			says.Error(t, name, err)
		}
		if got := strings.Join(target.Methods(), " "); got != c.method || (err != nil) != c.refused {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// TestZero: what nobody made gives errors.
//
// Promise: Mistakes of programs
func TestZero(t *testing.T) {
	t.Parallel()
	var enc encryption.Encryption
	for _, methods := range [][]string{nil, {"unencrypted"}, {"method.a.b"}} {
		if target, err := enc.Use(methods...); reason(t, err) != "not configured" || target.Methods() != nil {
			t.Errorf("%q: got %v, %v", methods, target.Methods(), err)
		}
	}
	for _, target := range []encryption.Target{{}, enc.State(), enc.Plan(), enc.RemoteState("x")} {
		for _, file := range []string{"", state, plan, record, string(seal(t, all, state))} {
			if opened, err := target.Decrypt(t.Context(), []byte(file)); reason(t, err) != "not configured" {
				t.Errorf("%q: %v, %v", file, opened, err)
			}
			if sealed, err := target.Encrypt(t.Context(), []byte(file)); reason(t, err) != "not configured" {
				t.Errorf("%q: %s, %v", file, sealed, err)
			}
		}
		_, _ = target.Methods(), target.Enforce().Enforced()
	}
	if found := enc.Check(); len(found) != 1 || !errors.Is(found[0].Err, encryption.ErrNotConfigured) {
		t.Errorf("%v", found)
	}
	if _, err := enc.DeriveKey(context.Background(), "key_provider.a.b", encryption.Derivation{Info: "x", Length: 32}); err == nil {
		t.Error("a key was derived from nothing")
	}
	enc.Close()

	for _, text := range []string{
		(&encryption.Error{}).Error(), (&attr.Error{}).Error(), attr.Pos{}.String(),
		encryption.FileKind(-1).String(), encryption.FileKind(99).String(),
	} {
		if strings.Contains(text, "nil") {
			t.Errorf("got %q", text)
		}
	}
	for _, layer := range []encryption.Layer{nil, encryption.Code("", "", encryption.AllowCommands(), encryption.Variables(nil))} {
		if loaded, err := encryption.Load(encryption.Registry{}, layer); err != nil {
			t.Errorf("a layer of nothing: %v, %v", loaded, err)
		}
	}
	if _, _, ok := (&config.Config{}).Literal("key_provider.a.b"); ok {
		t.Error("no settings are some")
	}
	blank, err := encryption.Load(encryption.Registry{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := blank.State().Decrypt(t.Context(), []byte(state)); err != nil || opened.Kind != encryption.KindState {
		t.Errorf("without kinds and layers: %v", err)
	}
	if _, err := blank.State().Encrypt(t.Context(), []byte(state)); reason(t, err) != "not configured" {
		t.Errorf("without kinds and layers: %v", err)
	}
	blank.Close()
}
