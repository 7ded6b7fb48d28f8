package recognize

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

// stranger is what people often have in place of a state.
type stranger struct {
	do   fact.Advice
	what string
	by   []string // how it begins, or which members its object has: one of these
}

// strangers are told from how they begin. The first that fits counts.
func strangers() []stranger {
	return []stranger{
		{fact.LFSPointer, "it is a pointer of Git LFS, which is not supported", []string{"version https://git-lfs.github.com/spec/"}},
		{fact.AnsibleVault, "it is encrypted by Ansible Vault, which is not supported", []string{"$ANSIBLE_VAULT;"}},
		{fact.GitCrypt, "it is encrypted by git-crypt, which is not supported", []string{"\x00GITCRYPT\x00"}},
		{fact.OpenSSL, "it is encrypted by openssl enc, which is not supported", []string{"Salted__", "U2FsdGVkX1"}},
		{fact.PGP, "it is encrypted or signed by PGP", []string{"-----BEGIN PGP "}},
		{fact.ByteOrderMark, "it begins with a byte order mark, as some editors and PowerShell write it", []string{"\xef\xbb\xbf"}},
		{fact.Compressed, "it is compressed with gzip", []string{"\x1f\x8b"}},
		{fact.Compressed, "it is compressed with zstd", []string{"\x28\xb5\x2f\xfd"}},
		{fact.Compressed, "it is compressed with xz", []string{"\xfd7zXZ\x00"}},
		{fact.Compressed, "it is compressed with bzip2", []string{"BZh"}},
		{fact.GzipInBase64, "it is gzip in base64, as the backend kubernetes keeps it", []string{"H4sI"}},
		{fact.JSONInBase64, "it is JSON in base64", []string{"eyJ", "eyAi", "ewog", "ew0K"}},
		{fact.ZipArchive, "it is a zip archive, and no plan", []string{"PK\x03\x04"}},
		{fact.Archive, "it is an archive", []string{"7z\xbc\xaf\x27\x1c"}},
		{fact.OtherFile, "it is a database of SQLite", []string{"SQLite format 3\x00"}},
		{fact.OtherFile, "it is a program", []string{"\x7fELF"}},
		{fact.OtherFile, "it is a script", []string{"#!"}},
		{fact.OtherFile, "it is a certificate", []string{"-----BEGIN CERTIFICATE"}},
		{fact.OtherFile, "it is a public key", []string{"-----BEGIN PUBLIC KEY", "ssh-ed25519 ", "ssh-rsa ", "ecdsa-sha2-", "age1"}},
		{fact.YAML, yaml, []string{"---", "version:"}},
		{fact.KubernetesObject, kubernetesObject, []string{"apiVersion:", "kind:"}},
		{fact.Conflict, conflict, []string{"<<<<<<< "}},
		{fact.OtherFile, "it is a script that sets variables of the environment", []string{"export "}},
	}
}

const (
	yaml             = "it is YAML, and a state is JSON"
	conflict         = "git left conflict markers in it"
	kubernetesObject = "it is an object of Kubernetes"
)

// File says what a file is that people often have in place of a state; it is zero if that
// is nothing known.
func File(file []byte) fact.Stranger {
	start := startOf(file)
	switch {
	case keyFile.Match(start):
		return fact.Stranger{What: "it is a private key", Do: fact.OtherFile}
	case IsTransit(start):
		return fact.Stranger{What: "it is encrypted by the secrets engine transit of Vault or OpenBao", Do: fact.Transit}
	case IsWebPage(start):
		return fact.Stranger{What: "it is a web page or XML", Do: fact.WebPage}
	case IsUTF16(start):
		return fact.Stranger{What: "it is UTF-16, as Windows PowerShell writes it with >", Do: fact.UTF16}
	}
	text := bytes.TrimLeft(start, space)
	for _, s := range strangers() {
		if slices.ContainsFunc(s.by, func(begin string) bool { return bytes.HasPrefix(text, []byte(begin)) }) {
			return fact.Stranger{What: s.what, Do: s.do}
		}
	}
	const tar = 257 // where its header says so
	switch {
	case chunk.Match(start):
		return fact.Stranger{What: "it has the frames of an upload in chunks (aws-chunked) around it, which the store has kept", Do: fact.Broken}
	case string(bytes.TrimSpace(start)) == "null":
		return fact.Stranger{What: "it is null, as OpenTofu sends it to the program of a key provider for a new file", Do: fact.NullFile}
	case bytes.HasPrefix(start[min(tar, len(start)):], []byte("ustar")):
		return fact.Stranger{What: "it is a tar archive", Do: fact.Archive}
	case settingsBlock.Match(start):
		return fact.Stranger{What: "it is configuration in HCL, and a state is JSON, such as terraform.tfstate"}
	case assignment.Match(start):
		return fact.Stranger{Do: fact.Printed,
			What: "it is HCL, such as values of variables or what terraform output and terraform show print, and a state is JSON"}
	case member.Match(start):
		return fact.Stranger{What: yaml, Do: fact.YAML}
	case bytes.Contains(file, []byte("\n<<<<<<< ")):
		return fact.Stranger{What: conflict, Do: fact.Conflict}
	case !utf8.Valid(file):
		return fact.Stranger{What: "it is not text", Do: fact.NotText}
	case isWord(file):
		return fact.Stranger{What: "it is one long word", Do: fact.LongWord}
	}
	var said fact.Stranger
	if message.Match(start) {
		said.What = "it is what a program printed, such as an error; did the program that was to write it fail?"
	}
	return cmp.Or(besides(file), printed(file), said)
}

// besides is about a JSON object with something before it or behind it, or inside a JSON
// string; it is zero if there is none.
func besides(file []byte) fact.Stranger {
	if line := bytes.Index(file, []byte("\n{")); line >= 0 && json.Valid(file[line+1:]) && !bytes.HasPrefix(file, []byte("{")) {
		return fact.Stranger{Do: fact.TextBefore,
			What: fmt.Sprintf("there is text before its JSON, which begins at byte %d, such as what a program printed", line+2)}
	}
	var text string
	if beginsWith(file, `"`) && json.Unmarshal(file, &text) == nil && strings.HasPrefix(strings.TrimSpace(text), "{") {
		return fact.Stranger{What: "it is JSON inside a JSON string, so it was encoded twice, as by jsonencode", Do: fact.EncodedTwice}
	}
	if !beginsWith(file, "{") {
		return fact.Stranger{}
	}
	wrong, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(file, new(struct{})))
	if !ok {
		return fact.Stranger{}
	}
	object := bytes.TrimRight(file[:jsonwalk.Place(file, wrong)-1], space) // a decoder of streams would copy the file
	if !json.Valid(object) {
		return fact.Stranger{}
	}
	return fact.Stranger{Do: fact.TextBehind,
		What: fmt.Sprintf("something follows its JSON, which ends at byte %d, as if it was appended with >>", len(object))}
}

// space is the set of characters that may stand before and behind a value of JSON.
const space = " \t\r\n"

// beginsWith reports whether a file begins with a text, behind a little space.
func beginsWith(file []byte, begin string) bool {
	return bytes.HasPrefix(bytes.TrimLeft(startOf(file), space), []byte(begin))
}

// startOf returns as much of a file as tells its kind.
func startOf(file []byte) []byte { return file[:min(len(file), 4<<10)] }

// What begins a line of files that are named by mistake.
var (
	settingsBlock = lazyregexp.New(`(?m)^(key_provider|method|backend|terraform|encryption|provider|resource|data|variable|module|output|locals)\b` +
		`[^"\n]*("[^\n]*)?\{`)
	member     = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]*:[ \t]*\r?\n[ \t]*[-A-Za-z]`)
	chunk      = lazyregexp.New(`^[0-9A-Fa-f]+(;[^\r\n]*)?\r\n`)
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
// lock of one, or what a command or a server printed. It is zero for nothing.
func printed(file []byte) fact.Stranger {
	var document map[string]json.RawMessage
	if !beginsWith(file, "{") || json.Unmarshal(file, &document) != nil || len(document) == 0 {
		return fact.Stranger{}
	}
	var version string
	switch {
	case document["sops"] == nil && bytes.Contains(file, []byte("ENC[AES256_GCM,")):
		return fact.Stranger{Do: fact.Broken,
			What: "its values are encrypted by sops, and its member \"sops\" is missing, so it was edited or cut off"}
	case json.Unmarshal(document["version"], &version) == nil && document["lineage"] != nil:
		return fact.Stranger{What: "its \"version\" is a text, and a number is required, so a program wrote it anew", Do: fact.Broken}
	}
	missing := func(name string) bool { return document[name] == nil }
	for _, s := range []stranger{
		{fact.ShownAsJSON, "it is what terraform show -json prints, which nothing reads back",
			[]string{"format_version values", "format_version planned_values"}},
		{fact.LockFile, "it is the lock of a state, in which there is no state", []string{"ID Operation Who"}},
		{fact.KubernetesObject, kubernetesObject, []string{"apiVersion kind"}},
		{fact.OtherFile, "it is a stack of Pulumi, which is not supported", []string{"version deployment"}},
		{fact.AnswerOfGitHub, "it is an answer of the API of GitHub about a file", []string{"content encoding path"}},
		{fact.AnswerOfGitLab, "it is an answer of the API of GitLab about a file", []string{"content encoding file_path"}},
		{fact.AnswerOfAPI, "it is an answer of an API, such as that of HCP Terraform about a state", []string{"data"}},
		{fact.ServerError, "it is the error of a server", []string{"errors", "error", "message"}},
	} {
		if slices.ContainsFunc(s.by, func(members string) bool { return !slices.ContainsFunc(strings.Fields(members), missing) }) {
			return fact.Stranger{What: s.what, Do: s.do}
		}
	}
	for _, value := range document {
		var output map[string]json.RawMessage
		if json.Unmarshal(value, &output) != nil || output["value"] == nil || output["type"] == nil || output["sensitive"] == nil {
			return fact.Stranger{}
		}
	}
	return fact.Stranger{What: "it is what terraform output -json prints", Do: fact.Printed}
}

var (
	keyFile    = lazyregexp.New(`(?m)^\s*(AGE-SECRET-KEY-|AGE-PLUGIN-|-----BEGIN [A-Z ]*PRIVATE KEY)`)
	privateKey = lazyregexp.New(`(?i:AGE-SECRET-KEY-\w|-----BEGIN [A-Z ]*PRIVATE KEY)|AGE-PLUGIN-\w`)
)

// HoldsPrivateKey reports whether there is a private key in a text, or the beginning of one,
// which errors must not repeat: an identity of age or of one of its plugins, or a key in PEM.
func HoldsPrivateKey(text string) bool { return privateKey.MatchString(text) }

// IsPEM reports whether text begins as a key, a certificate or a message in PEM does.
func IsPEM(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN ") }

// IsAge reports whether a file begins as those that age encrypts, armored or not.
func IsAge(file []byte) bool {
	return bytes.HasPrefix(file, []byte("age-encryption.org/")) || IsArmored(file)
}

// IsArmored reports whether a file begins as those that age writes as text: there may be
// white space before it.
func IsArmored(file []byte) bool {
	return beginsWith(file, "-----BEGIN AGE ENCRYPTED FILE-----")
}

// IsRecipient reports whether a text begins as a public key does for which age encrypts, of
// age, of its plugins, or of ssh. No key of another kind does.
func IsRecipient(text string) bool {
	return strings.HasPrefix(text, "age1") || strings.HasPrefix(text, "ssh-")
}

const transitPrefix = `^vault:v[0-9]+:`

var transit = lazyregexp.New(transitPrefix)

// IsTransit reports whether text is how the secrets engine transit writes a ciphertext: the
// version of the key, and data.
func IsTransit(text []byte) bool { return transit.Match(text) }

var page = lazyregexp.New(`^(\x{feff}|[ \t\r\n])*(?i)<(!doctype|html|\?xml|!--)`)

// IsWebPage reports whether a file begins as a web page does, or other XML.
func IsWebPage(file []byte) bool { return page.Match(file) }

// IsKubeconfig reports whether text in the place of the path of a kubeconfig is what belongs
// in it, in base64 or not.
func IsKubeconfig(text string) bool {
	const encoded = "YXBpVmVyc2lvbj" // apiVersion
	return strings.Contains(text, "apiVersion") || strings.HasPrefix(text, encoded) || IsContent(text)
}

// NoSSHKey says what is in the place of a private key of ssh, and what to do about it: "" for
// one in PEM, whose type and passphrase are for whoever parses it.
func NoSSHKey(file []byte) string {
	switch text := strings.TrimSpace(string(file)); {
	case strings.HasPrefix(text, "PuTTY-User-Key-File"):
		return "the file holds a key of PuTTY; puttygen KEY.ppk -O private-openssh -o KEY writes one that ssh reads"
	case strings.Contains(text, "AGE-SECRET-KEY-"):
		return "the file holds an identity of age, and no ssh key"
	case text == "":
		return "the file of the private key is empty"
	case !IsPEM(text):
		return "the file does not hold a private key, which begins with -----BEGIN"
	}
	return ""
}

// NotText says what is in the place of text in UTF-8, "" for text.
func NotText(content []byte) string {
	switch {
	case IsUTF16(content):
		return "this is UTF-16, as PowerShell writes it with >; save it as UTF-8, as Set-Content -Encoding utf8 does"
	case bytes.HasPrefix(content, []byte("PK\x03\x04")):
		return "this is a plan or another zip archive; check which file is read"
	case bytes.HasPrefix(content, []byte("\x1f\x8b")):
		return "this is compressed with gzip; decompress it"
	case bytes.IndexByte(content, 0) >= 0, !utf8.Valid(content):
		return "this is not text in UTF-8; check which file is read"
	}
	return ""
}

// IsUTF16 reports whether content is text in UTF-16: it has the mark of one, or every
// other byte of its beginning is 0.
func IsUTF16(content []byte) bool {
	if bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")) {
		return true
	}
	const least, most = 4, 16 // bytes
	start := content[:min(len(content)&^1, most)]
	for i := 1; i < len(start); i++ {
		if (start[i] == 0) == (start[i-1] == 0) {
			return false
		}
	}
	return len(start) >= least
}
