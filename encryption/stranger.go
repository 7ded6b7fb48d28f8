package encryption

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// strangers are what people often have in place of a state: by what it begins with, what
// it is and what to do about it.
func strangers() []struct{ begins, what string } {
	const webPage = "it is a web page or XML; check which file is read, or, if a server sent it, the address and the credentials"
	const encoded = "it is JSON in base64; decode it"
	const utf16 = "it is UTF-16, as Windows PowerShell writes it with >; save it as UTF-8 without a byte order mark"
	const openssl = "it is encrypted by openssl enc, which is not supported; decrypt it with openssl"
	const compressed = "; decompress it"
	return []struct{ begins, what string }{
		{"version https://git-lfs.github.com/spec/", "it is a pointer of Git LFS, which is not supported; run git lfs pull, and read " +
			"the file itself"},
		{"$ANSIBLE_VAULT;", "it is encrypted by Ansible Vault, which is not supported; decrypt it with ansible-vault"},
		{"\x00GITCRYPT\x00", "it is encrypted by git-crypt, which is not supported; run git-crypt unlock, and read the file in the working tree"},
		{"Salted__", openssl},
		{"U2FsdGVkX1", openssl},
		{"vault:v", "it is encrypted by the secrets engine transit of Vault or OpenBao; decrypt it there (transit/decrypt), and " +
			"decode the base64"},
		{"-----BEGIN PGP ", "it is encrypted or signed by PGP; decrypt it with gpg"},
		{"\xef\xbb\xbf", "it begins with a byte order mark, as some editors and PowerShell write it; save it as UTF-8 without that mark"},
		{"\xff\xfe", utf16},
		{"\xfe\xff", utf16},
		{"<!doctype", webPage},
		{"<html", webPage},
		{"<?xml", webPage},
		{"\x1f\x8b", "it is compressed with gzip" + compressed},
		{"\x28\xb5\x2f\xfd", "it is compressed with zstd" + compressed},
		{"\xfd7zXZ\x00", "it is compressed with xz" + compressed},
		{"BZh", "it is compressed with bzip2" + compressed},
		{"H4sI", "it is gzip in base64, as the backend kubernetes keeps it; decode and decompress it, or read it with that source"},
		{"eyJ", encoded},
		{"ewog", encoded},
		{"PK\x03\x04", "it is a zip archive, and no plan: if there is a state in it, as in an artifact of a pipeline, unzip it; a plan " +
			"that is cut off must be made again"},
		{"7z\xbc\xaf\x27\x1c", "it is an archive; extract what is in it"},
		{"SQLite format 3\x00", "it is a database of SQLite; check which file is read"},
		{"\x7fELF", "it is a program; check which file is read"},
		{"#!", "it is a script; check which file is read"},
		{"-----BEGIN CERTIFICATE", "it is a certificate; check which file is read"},
		{"-----BEGIN PUBLIC KEY", publicKey},
		{"---", yaml},
		{"version:", yaml},
		{"apiVersion:", kubernetesObject},
		{"kind:", kubernetesObject},
		{"<<<<<<< ", conflict},
		{"ssh-", publicKey},
		{"age1", publicKey},
		{"export ", "it is a script that sets variables of the environment; check which file is read"},
	}
}

const (
	yaml             = "it is YAML, and a state is JSON; give the file that Terraform or OpenTofu wrote"
	conflict         = "git left conflict markers in it; restore one of the two versions as a whole"
	publicKey        = "it is a public key; check which file is read"
	kubernetesObject = "it is an object of Kubernetes; for one of Kubeform or Crossplane, add an object block with its api_version, kind " +
		"and name to the data source; read a secret with the source kubernetes, or decode and decompress its data.tfstate"
)

// stranger says what a file is that people often have in place of a state, and what to
// do about it; "" if it is nothing known.
func stranger(file []byte) string {
	start := file[:min(len(file), 4<<10)]
	if syntax.HoldsPrivateKey(start) {
		return "it is a private key; check which file is read"
	}
	for _, s := range strangers() {
		if len(start) >= len(s.begins) && bytes.EqualFold(start[:len(s.begins)], []byte(s.begins)) {
			return s.what
		}
	}
	const tar = 257 // where its header says so
	switch {
	case string(bytes.TrimSpace(start)) == "null":
		return "it is null, as OpenTofu sends it to the program of a key provider for a new file: the command for that is statecrypt " +
			"key-provider age"
	case len(start) > tar && bytes.HasPrefix(start[tar:], []byte("ustar")):
		return "it is a tar archive; extract what is in it"
	case settingsBlock.Match(start):
		return "it is configuration in HCL, and a state is JSON, such as terraform.tfstate"
	case assignment.Match(file[:min(len(file), 100)]):
		return "it is HCL, such as values of variables or what terraform output and terraform show print, and a state is JSON; give the state " +
			"itself (terraform state pull)"
	case member.Match(start):
		return yaml
	case bytes.Contains(file, []byte("\n<<<<<<< ")):
		return conflict
	case !utf8.Valid(file):
		return `it is not text; if terraform-backend-git encrypted it with a passphrase, select a method "terraform_backend_git" for it; ` +
			"else, decrypt or decompress it with the program that wrote it, such as gpg"
	case isWord(file):
		return `it is one long word; if it is the status.state of an object of Kubeform, select a method "kubeform" for it; if it is ` +
			"encrypted_data, the whole document that it was in is required"
	}
	said := ""
	if message.Match(start) {
		said = "it is what a program printed, such as an error; did the program that was to write it fail?"
	}
	return cmp.Or(besides(file), printed(file), said)
}

// besides is about a JSON object with something before it or behind it, or inside a JSON
// string; "" if there is none.
func besides(file []byte) string {
	if line := bytes.Index(file, []byte("\n{")); line >= 0 && json.Valid(file[line+1:]) && !bytes.HasPrefix(file, []byte("{")) {
		return fmt.Sprintf("there is text before its JSON, which begins at byte %d, such as what a program printed; remove that text, "+
			"or write the file again, with nothing else on standard output", line+2)
	}
	var text string
	if json.Unmarshal(file, &text) == nil && strings.HasPrefix(strings.TrimSpace(text), "{") {
		return "it is JSON inside a JSON string, so it was encoded twice, as by jsonencode; decode it once, as jq -r . does"
	}
	decoder := json.NewDecoder(bytes.NewReader(file))
	var object struct{}
	if json.Valid(file) || decoder.Decode(&object) != nil {
		return ""
	}
	return fmt.Sprintf("something follows its JSON, which ends at byte %d, as if it was appended with >>; remove that, or fetch the file "+
		"again", decoder.InputOffset())
}

// What begins a line of files that are named by mistake.
var (
	settingsBlock = lazyregexp.New(`(?m)^(key_provider|method|backend|terraform|encryption|provider|resource|data|variable|module|output|locals)\b` +
		`[^"\n]*("[^\n]*)?\{`)
	member     = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]*:[ \t]*\r?\n[ \t]*[-A-Za-z]`)
	message    = lazyregexp.New(`^(\x1b\[|(?i)(error|fatal|traceback|panic|warning)\b)`)
	assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]* *= `)
)

// isWord reports whether a file is text without spaces that does not begin as JSON, and is
// long enough for what Kubeform writes.
func isWord(file []byte) bool {
	const least, most = 49, 1000 // bytes; what follows them is not looked at
	word := bytes.TrimSpace(file[:min(len(file), most)])
	return len(word) >= least && !bytes.ContainsAny(word, " \t\r\n") && !bytes.ContainsAny(word[:1], `{["`)
}

// printed says what a JSON object is that programs make in place of a state, such as the
// lock of one, or what a command or a server printed. It is "" for nothing.
func printed(file []byte) string {
	var document map[string]json.RawMessage
	if json.Unmarshal(file, &document) != nil || len(document) == 0 {
		return ""
	}
	var version string
	switch {
	case document["sops"] == nil && bytes.Contains(file, []byte("ENC[AES256_GCM,")):
		return "its values are encrypted by sops, and its member \"sops\" is missing, so it was edited or cut off; restore an intact copy"
	case json.Unmarshal(document["version"], &version) == nil && document["lineage"] != nil:
		return "its \"version\" is a text, and a number is required, so a program wrote it anew; restore an intact copy"
	}
	for _, s := range []struct{ members, what string }{
		{"format_version values", terraformShow},
		{"format_version planned_values", terraformShow},
		{"ID Operation Who", "it is the lock of a state, in which there is no state; give the file that was locked"},
		{"apiVersion kind", kubernetesObject},
		{"version deployment", "it is a stack of Pulumi, which is not supported; check which file is read"},
		{"content encoding path", "it is an answer of the API of GitHub about a file; read it with the source git, or fetch it with the header " +
			"Accept: application/vnd.github.raw"},
		{"content encoding file_path", "it is an answer of the API of GitLab about a file; read it with the source git, or from the " +
			"address that ends in /raw"},
		{"data", "it is an answer of an API, such as that of HCP Terraform about a state; read the state with the source remote, or " +
			"download it from the address in hosted-state-download-url"},
		{"errors", serverError},
		{"error", serverError},
		{"message", serverError},
	} {
		missing := func(name string) bool { return document[name] == nil }
		if !slices.ContainsFunc(strings.Fields(s.members), missing) {
			return s.what
		}
	}
	for _, value := range document {
		var output map[string]json.RawMessage
		if json.Unmarshal(value, &output) != nil || output["value"] == nil || output["type"] == nil || output["sensitive"] == nil {
			return ""
		}
	}
	return "it is what terraform output -json prints; give the state itself (terraform state pull)"
}

const (
	terraformShow = "it is what terraform show -json prints, which nothing reads back; give the state (terraform state pull) or " +
		"the plan itself"
	serverError = "it is the error of a server; check the address and the credentials"
)
