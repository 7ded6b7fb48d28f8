package encryption

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// stranger says what a file is that people often have in place of a state, and what to
// do about it; "" if it is nothing known.
func stranger(file []byte) string {
	begins := func(texts ...string) bool {
		for _, text := range texts {
			if len(file) >= len(text) && bytes.EqualFold(file[:len(text)], []byte(text)) {
				return true
			}
		}
		return false
	}
	start := file[:min(len(file), 4<<10)]
	switch {
	case begins("version https://git-lfs.github.com/spec/"):
		return "it is a pointer of Git LFS, which is not supported; run git lfs pull, and read the file itself"
	case begins("$ANSIBLE_VAULT;"):
		return "it is encrypted by Ansible Vault, which is not supported; decrypt it with ansible-vault"
	case begins("\xef\xbb\xbf"):
		return "it begins with a byte order mark, as some editors and PowerShell write it; save it as UTF-8 without that mark"
	case begins("\xff\xfe", "\xfe\xff"):
		return "it is UTF-16, as Windows PowerShell writes it with >; save it as UTF-8 without a byte order mark"
	case begins("<!doctype", "<html", "<?xml"):
		return "it is a web page or XML; check the address and the credentials"
	case begins("\x1f\x8b"):
		return "it is compressed with gzip; decompress it"
	case begins("-----BEGIN PGP "):
		return "it is encrypted or signed by PGP; decrypt it with gpg"
	case begins("H4sI"):
		return "it is gzip in base64, as the backend kubernetes keeps it; decode and decompress it, or read it with that source"
	case begins("eyJ", "ewog"):
		return "it is JSON in base64; decode it"
	case syntax.HoldsPrivateKey(start):
		return "it is a private key; check which file is read"
	case settingsBlock.Match(start):
		return "it is configuration in HCL, and a state is JSON, such as terraform.tfstate"
	case assignment.Match(file[:min(len(file), 100)]):
		return "it is configuration in HCL, such as values of variables, and a state is JSON, such as terraform.tfstate"
	case begins("---", "version:", "apiVersion:", "kind:"):
		return "it is YAML, and a state is JSON"
	case begins("<<<<<<< "), bytes.Contains(file, []byte("\n<<<<<<< ")):
		return "git left conflict markers in it; restore one of the two versions as a whole"
	case begins("PK\x03\x04"):
		return "it is a zip archive, and no plan: it is cut off, or there is no plan in it; plan again, or check which file is read"
	case !utf8.Valid(file):
		return `it is not text; if terraform-backend-git encrypted it with a passphrase, select a method "terraform_backend_git" for it`
	case isWord(file):
		return `it is one long word; if it is the status.state of an object of Kubeform, select a method "kubeform" for it`
	}
	return shown(file)
}

// What begins a line of files that are named by mistake.
var (
	settingsBlock = lazyregexp.New(`(?m)^(key_provider|method|backend|terraform|encryption|provider|resource|data|variable|module|output|locals)\b` +
		`[^"\n]*("[^\n]*)?\{`)
	assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]* *= `)
)

// isWord reports whether a file is text without spaces that does not begin as JSON, and is
// long enough for what Kubeform writes.
func isWord(file []byte) bool {
	const least, most = 49, 1000 // bytes; what follows them is not looked at
	word := bytes.TrimSpace(file[:min(len(file), most)])
	return len(word) >= least && !bytes.ContainsAny(word, " \t\r\n") && !bytes.ContainsAny(word[:1], `{["`)
}

// shown says what a JSON document is that Terraform and OpenTofu make beside a state: the
// lock of one, or what a command printed. It is "" for nothing.
func shown(file []byte) string {
	var document map[string]json.RawMessage
	if json.Unmarshal(file, &document) != nil || len(document) == 0 {
		return ""
	}
	if document["format_version"] != nil && (document["values"] != nil || document["planned_values"] != nil) {
		return "it is what terraform show -json prints, which nothing reads back; give the state (terraform state pull) or the plan itself"
	}
	if document["ID"] != nil && document["Operation"] != nil && document["Who"] != nil {
		return "it is the lock of a state, in which there is no state; give the file that was locked"
	}
	for _, value := range document {
		var output map[string]json.RawMessage
		if json.Unmarshal(value, &output) != nil || output["value"] == nil || output["type"] == nil || output["sensitive"] == nil {
			return ""
		}
	}
	return "it is what terraform output -json prints; give the state itself (terraform state pull)"
}
