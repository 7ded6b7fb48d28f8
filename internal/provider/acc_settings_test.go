package provider

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/zclconf/go-cty/cty"
)

const (
	mainKey = "key_provider \"pbkdf2\" \"main\" {\npassphrase = \"the example's passphrase\"\niterations = 200000\n}"
	oldKey  = "key_provider \"pbkdf2\" \"old\" {\npassphrase = \"an older passphrase\"\niterations = 200000\n}"
)

// TestAccSettingsExamples: the modules of the guide on settings read their states, as
// they are printed.
func TestAccSettingsExamples(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	network := cty.StringVal("vpc-1")
	for name, c := range map[string]struct {
		folder string
		want   map[string]cty.Value
	}{
		"text":             {folder: "text", want: map[string]cty.Value{"vpc_id": network}},
		"a key per state":  {folder: "key-per-state", want: map[string]cty.Value{"vpc_id": network, "archived_vpc_id": network}},
		"a file in a file": {folder: "then", want: map[string]cty.Value{"vpc_id": network}},
		"plaintext":        {folder: "unencrypted", want: map[string]cty.Value{"vpc_id": network}},
		"encrypted soon":   {folder: "encrypted-soon", want: map[string]cty.Value{"vpc_id": network}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, completeExample(t, filepath.Join("settings", c.folder)))
			p.write("network.tfstate", sealedWith(t, mainKey))
			switch c.folder {
			case "then":
				inAge(t, p, "network.tfstate", "key.txt")
			case "unencrypted":
				p.write("network.tfstate", guideState)
			}
			p.write("archive.tfstate", sealedWith(t, oldKey))
			p.setenv("TF_VAR_state_passphrase=the example's passphrase", "TF_VAR_old_passphrase=an older passphrase",
				`TF_VAR_passphrases={"network":"the example's passphrase","archive":"an older passphrase"}`)
			p.wantOutputs(c.want)
		})
	}
}

// The guide on moving from terraform_remote_state goes in small steps: after each, a plan has no change.
func TestAccSmallSteps(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	const old = "data \"terraform_remote_state\" \"network\" {\nbackend = \"local\"\nconfig = { path = \"network.tfstate\" }\n}\n"
	input := func(from string) string {
		return "resource \"terraform_data\" \"reader\" {\ninput = data." + from + ".network.outputs.vpc_id\n}\n"
	}
	files := completeExample(t, filepath.Join("settings", "unencrypted")) // with the new data source
	p := newProject(t, map[string]string{"network.tfstate": guideState, "old.tf": old, "reader.tf": input("terraform_remote_state")})
	p.setenv("TF_VAR_state_passphrase=the example's passphrase")
	p.mustRun("init")
	p.mustRun("apply", "-auto-approve")
	for _, step := range []func(){
		func() {
			for name, text := range files {
				p.write(name, strings.Split(text, "output ")[0])
			}
		},
		func() { p.write("reader.tf", input("statecrypt_remote_state")) },
		func() { p.write("old.tf", "") },
		func() {
			p.write("provider.tf", completeExample(t, filepath.Join("settings", "encrypted-soon"))["provider.tf"])
		},
	} {
		step()
		if out := p.mustRun("plan"); !strings.Contains(out, "No changes.") {
			t.Errorf("got %s", out)
		}
	}
}

// The first example of the guide on OpenTofu's state.
func TestAccReadsOpenTofusState(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	p := storeFirst(t, []byte(sealedWith(t, mainKey))).
		project(t, completeExample(t, filepath.Join("guides", "terraform-reading-opentofu-state")))
	p.wantOutputs(map[string]cty.Value{"vpc_id": cty.StringVal("vpc-1")})
}

// inAge encrypts a file with age, for an identity that it writes to the file key.
func inAge(t *testing.T, p *project, name, key string) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var sealed strings.Builder
	w, err := age.Encrypt(&sealed, identity.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, readText(t, filepath.Join(p.dir, name))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p.write(name, sealed.String())
	p.write(key, identity.String())
}

// completeExample has the files of a folder of examples; as they say themselves,
// variables are only sensitive if the CLI has no ephemeral ones.
func completeExample(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, path := range glob(t, filepath.Join("..", "..", "examples", folder, "*.*")) {
		text := readText(t, path)
		if !knowsEphemeral() {
			text = strings.ReplaceAll(text, "ephemeral = true", "sensitive = true")
		}
		files[filepath.Base(path)] = text
	}
	return files
}

func sealedWith(t *testing.T, key string) string {
	t.Helper()
	kind, _, _ := strings.Cut(strings.TrimPrefix(key, `key_provider "pbkdf2" "`), `"`)
	return string(sealedAs(t, key+`
method "aes_gcm" "main" { keys = key_provider.pbkdf2.`+kind+` }
state { method = method.aes_gcm.main }`, guideState))
}
