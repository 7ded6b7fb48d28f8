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

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

// stranger is a kind of file that users often name instead of a state.
type stranger struct {
	what, do string
	by       []string // file prefixes, or lists of JSON members; one of them must match
}

// strangers returns the kinds of files that are recognized by their first bytes. The first match wins.
func strangers() []stranger {
	return []stranger{
		{"it is a Git LFS pointer, not the file itself", "run git lfs pull, and read the file again",
			[]string{"version https://git-lfs.github.com/spec/"}},
		{"it is encrypted with Ansible Vault", "decrypt it with ansible-vault", []string{"$ANSIBLE_VAULT;"}},
		{"it is encrypted with git-crypt", "run git-crypt unlock, and read the file in the working tree",
			[]string{"\x00GITCRYPT\x00"}},
		{"it is encrypted with openssl enc", "decrypt it with openssl", []string{"Salted__", "U2FsdGVkX1"}},
		{"it is encrypted or signed with PGP", "decrypt it with gpg", []string{"-----BEGIN PGP "}},
		{"it begins with a byte order mark", "save it as UTF-8 without that mark",
			[]string{"\xef\xbb\xbf"}},
		{"it is compressed with gzip", "decompress it", []string{"\x1f\x8b"}},
		{"it is compressed with zstd", "decompress it", []string{"\x28\xb5\x2f\xfd"}},
		{"it is compressed with xz", "decompress it", []string{"\xfd7zXZ\x00"}},
		{"it is compressed with bzip2", "decompress it", []string{"BZh"}},
		{"it is compressed with gzip and encoded in base64", "decode and decompress it, or read the state with the source " +
			"kubernetes", []string{"H4sI"}},
		{"it is JSON in base64", "decode it", []string{"eyJ", "eyAi", "ewog", "ew0K"}},
		{"it is a zip archive, but not a plan",
			"if it contains a state, unzip it. If it is a truncated plan, create the plan again",
			[]string{"PK\x03\x04"}},
		{"it is an archive", "extract its content", []string{"7z\xbc\xaf\x27\x1c"}},
		{"it is an SQLite database", "check that this is the right file", []string{"SQLite format 3\x00"}},
		{"it is a program", "check that this is the right file", []string{"\x7fELF"}},
		{"it is a script", "check that this is the right file", []string{"#!"}},
		{"it is a certificate", "check that this is the right file", []string{"-----BEGIN CERTIFICATE"}},
		{"it is a public key", "check that this is the right file",
			[]string{"-----BEGIN PUBLIC KEY", "ssh-ed25519 ", "ssh-rsa ", "ecdsa-sha2-", "age1"}},
		{yaml, "give the file that Terraform or OpenTofu wrote", []string{"---", "version:"}},
		{kubernetesObject, ofObject, []string{"apiVersion:", "kind:"}},
		{conflict, "restore one of the two versions as a whole", []string{"<<<<<<< "}},
		{"it is a script that sets environment variables", "check that this is the right file", []string{"export "}},
	}
}

const (
	yaml             = "it is YAML, but a state is JSON"
	conflict         = "git left conflict markers in it"
	kubernetesObject = "it is a Kubernetes object"
	ofObject         = "for a Kubeform or Crossplane object, add an object block with its api_version, kind and name to the data " +
		"source. For a secret, use the source kubernetes, or decode and decompress its data.tfstate"
)

// Stranger is an error that names the kind of a file that is neither a state nor a plan.
type Stranger struct{ Err error }

// Is returns a [Stranger] error with the given kind and advice.
func Is(kind, advice string) error { return Stranger{fault.With(errors.New(kind), advice)} }

func (s Stranger) Error() string { return s.Err.Error() }

// Unwrap returns the reason with its advice.
func (s Stranger) Unwrap() error { return s.Err }

// File returns a [Stranger] error for a kind of file that users often name instead of a state. It returns nil for any
// other file.
func File(file []byte) error {
	start := startOf(file)
	switch {
	case keyFile.Match(start):
		return Is("it is a private key", "check that this is the right file")
	case IsTransit(start):
		return Is("it is encrypted with the transit secrets engine of Vault or OpenBao",
			"decrypt it with transit/decrypt, and decode the base64")
	case IsWebPage(start):
		return Is("it is a web page or XML", "check that this is the right file. If a server sent it, check the address and the credentials")
	case IsUTF16(start):
		return Is("it is UTF-16 text, perhaps from > in Windows PowerShell", "save it as UTF-8 without a byte order mark")
	}
	text := bytes.TrimLeft(start, space)
	for _, s := range strangers() {
		if slices.ContainsFunc(s.by, func(begin string) bool { return bytes.HasPrefix(text, []byte(begin)) }) {
			return Is(s.what, s.do)
		}
	}
	const tar = 257 // offset of the magic bytes in a tar header
	switch {
	case chunk.Match(start):
		return Is("it still contains the frames of a chunked upload (aws-chunked)", "restore an intact copy")
	case string(bytes.TrimSpace(start)) == "null":
		return Is("it contains only null",
			"check that the state exists. If OpenTofu sent the null to request a key, use statecrypt key-provider age instead")
	case len(file) > 0 && len(bytes.Trim(file, void)) == 0:
		return Is("it contains only blanks or zero bytes", "restore an earlier version")
	case bytes.HasPrefix(start[min(tar, len(start)):], []byte("ustar")):
		return Is("it is a tar archive", "extract its content")
	case settingsBlock.Match(start):
		return Is("it is HCL configuration, but a state is JSON", "give the state file, for example terraform.tfstate")
	case assignment.Match(start):
		return Is("it is HCL or the output of a command like terraform show, but a state is JSON",
			"give the output of terraform state pull")
	case member.Match(start):
		return Is(yaml, "give the file that Terraform or OpenTofu wrote")
	case bytes.Contains(file, []byte("\n<<<<<<< ")):
		return Is(conflict, "restore one of the two versions as a whole")
	case !utf8.Valid(file):
		return Is("it is not text", "if terraform-backend-git encrypted it with a passphrase, select a terraform_backend_git "+
			"method. Otherwise, decrypt or decompress it with the program that wrote it")
	case bytes.HasPrefix(file, []byte{0}):
		return Is("it begins with zero bytes", "restore an earlier version")
	case isWord(file):
		return Is("it is one long word", "if it is the status.state of a Kubeform object, select a kubeform method. If it is "+
			"encrypted_data, give the whole document that contained it")
	}
	if err := cmp.Or(besides(file), printed(file)); err != nil || !message.Match(start) {
		return err
	}
	return Is("it looks like the error message of a program", "check whether the program that should write the state failed")
}

// besides returns an error for a JSON object with other content before or after it, or inside a JSON string. It
// returns nil for any other file.
func besides(file []byte) error {
	if line := bytes.Index(file, []byte("\n{")); line >= 0 && json.Valid(file[line+1:]) && !bytes.HasPrefix(file, []byte("{")) {
		return Is(fmt.Sprintf("its JSON begins only at byte %d, after other text", line+2),
			"remove that text, or write the file again without other output")
	}
	var text string
	if beginsWith(file, `"`) && json.Unmarshal(file, &text) == nil && strings.HasPrefix(strings.TrimSpace(text), "{") {
		return Is("it is JSON inside a JSON string, so it was encoded twice", "decode it once, for example "+
			"with jq -r .")
	}
	if !beginsWith(file, "{") {
		return nil
	}
	wrong, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(file, new(struct{})))
	if !ok {
		return nil
	}
	object := bytes.TrimRight(file[:jsonwalk.Place(file, wrong)-1], space) // a stream decoder would copy the file
	switch {
	case !json.Valid(object) && bytes.HasSuffix(bytes.TrimRight(file, space), []byte{0}):
		return Is("it is truncated, and ends with zero bytes", "restore an earlier version")
	case !json.Valid(object):
		return nil
	case len(bytes.Trim(file[len(object):], void)) == 0:
		return Is(fmt.Sprintf("its JSON ends at byte %d, but zero bytes follow", len(object)),
			"compare its serial with that of an earlier version. Then remove the zero bytes, or restore that version")
	}
	return Is(fmt.Sprintf("its JSON ends at byte %d, but other data follows", len(object)),
		"remove that data, or fetch the file again")
}

// space lists the characters that may precede or follow a JSON value.
const space = " \t\r\n"

// void lists the characters that count as no content: white space and the zero byte.
const void = space + "\x00"

// beginsWith reports whether a file begins with the text in begin, after up to 4 KiB of white space.
func beginsWith(file []byte, begin string) bool {
	return bytes.HasPrefix(bytes.TrimLeft(startOf(file), space), []byte(begin))
}

// startOf returns the first 4 KiB of a file, which is enough to recognize its kind.
func startOf(file []byte) []byte { return file[:min(len(file), 4<<10)] }

// These patterns match files that users name by mistake. settingsBlock matches at the start of any line, the others
// only at the start of the file.
var (
	settingsBlock = lazyregexp.New(`(?m)^(key_provider|method|backend|terraform|encryption|provider|resource|data|variable|module|output|locals)\b` +
		`[^"\n]*("[^\n]*)?\{`)
	member     = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]*:[ \t]*\r?\n[ \t]*[-A-Za-z]`)
	chunk      = lazyregexp.New(`^[0-9A-Fa-f]+(;[^\r\n]*)?\r\n`)
	message    = lazyregexp.New(`^(\x1b\[|(?i)(error|fatal|traceback|panic|warning)\b)`)
	assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]* *= `)
)

// isWord reports whether a file is a single long word that does not begin like JSON, and is long enough to be
// a Kubeform state.
func isWord(file []byte) bool {
	const least, most = 49, 1000 // in bytes; the rest of the file is not examined
	word := bytes.TrimSpace(file[:min(len(file), most)])
	return len(word) >= least && !bytes.ContainsAny(word, " \t\r\n") && !bytes.ContainsAny(word[:1], `{["`)
}

// printed returns an error for a JSON object that users name instead of a state, such as a lock or the output of a
// command or server. It returns nil for other objects.
func printed(file []byte) error {
	var document map[string]json.RawMessage
	if !beginsWith(file, "{") || json.Unmarshal(file, &document) != nil || len(document) == 0 {
		return nil
	}
	var version string
	switch {
	case document["sops"] == nil && bytes.Contains(file, []byte("ENC[AES256_GCM,")):
		return Is("its values are encrypted with sops, but its member \"sops\" is missing, so it was edited or truncated",
			"restore an intact copy")
	case json.Unmarshal(document["version"], &version) == nil && document["lineage"] != nil:
		return Is("its \"version\" is a string instead of a number, so another program has rewritten it", "restore an intact copy")
	}
	missing := func(name string) bool { return document[name] == nil }
	for _, s := range []stranger{
		{"it is the output of terraform show -json, not a state or a plan",
			"give the output of terraform state pull, or the plan file",
			[]string{"format_version values", "format_version planned_values"}},
		{"it is the lock of a state, not the state", "give the file that is locked", []string{"ID Operation Who"}},
		{kubernetesObject, ofObject, []string{"apiVersion kind"}},
		{"it is a Pulumi stack, not a state", "check that this is the right file", []string{"version deployment"}},
		{"it is a response of the GitHub API about a file",
			"read it with the source git, or fetch it with the header Accept: application/vnd.github.raw",
			[]string{"content encoding path"}},
		{"it is a response of the GitLab API about a file", "read it with the source git, or from the address that ends in /raw",
			[]string{"content encoding file_path"}},
		{"it is an API response about a state, perhaps from HCP Terraform",
			"read the state with the source remote, or download it from the address in hosted-state-download-url",
			[]string{"data"}},
		{"it is an error from a server", "check the address and the credentials", []string{"errors", "error", "message"}},
	} {
		if slices.ContainsFunc(s.by, func(members string) bool { return !slices.ContainsFunc(strings.Fields(members), missing) }) {
			return Is(s.what, s.do)
		}
	}
	for _, value := range document {
		var output map[string]json.RawMessage
		if json.Unmarshal(value, &output) != nil || output["value"] == nil || output["type"] == nil || output["sensitive"] == nil {
			return nil
		}
	}
	return Is("it is the output of terraform output -json", "give the output of terraform state pull")
}

var (
	keyFile    = lazyregexp.New(`(?m)^\s*(AGE-SECRET-KEY-|AGE-PLUGIN-|-----BEGIN [A-Z ]*PRIVATE KEY)`)
	privateKey = lazyregexp.New(`(?i:AGE-SECRET-KEY-\w|-----BEGIN [A-Z ]*PRIVATE KEY)|AGE-PLUGIN-\w`)
)

// HoldsPrivateKey reports whether text contains a private key, or the beginning of one: an identity for age or an age
// plugin, or a PEM private key. Errors must not repeat such a text.
func HoldsPrivateKey(text string) bool { return privateKey.MatchString(text) }

// IsPEM reports whether text begins like a PEM block, such as a key, a certificate or a message.
func IsPEM(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN ") }

// IsAge reports whether a file begins like an age file, armored or not.
func IsAge(file []byte) bool {
	return bytes.HasPrefix(file, []byte("age-encryption.org/")) || IsArmored(file)
}

// IsArmored reports whether a file begins like an armored age file, after optional white space.
func IsArmored(file []byte) bool {
	return beginsWith(file, "-----BEGIN AGE ENCRYPTED FILE-----")
}

// IsRecipient reports whether text begins like a public key that age can encrypt to: an age, plugin or SSH key. No
// other kind of key begins like this.
func IsRecipient(text string) bool {
	return strings.HasPrefix(text, "age1") || strings.HasPrefix(text, "ssh-")
}

const transitPrefix = `^vault:v[0-9]+:`

var transit = lazyregexp.New(transitPrefix)

// IsTransit reports whether text begins like a ciphertext from the transit secrets engine: vault:, the key
// version and a colon.
func IsTransit(text []byte) bool { return transit.Match(text) }

var page = lazyregexp.New(`^(\x{feff}|[ \t\r\n])*(?i)<(!doctype|html|\?xml|!--)`)

// IsWebPage reports whether a file begins like a web page or other XML.
func IsWebPage(file []byte) bool { return page.Match(file) }

// IsKubeconfig reports whether text is the content of a kubeconfig, possibly in base64, instead of its path.
func IsKubeconfig(text string) bool {
	const encoded = "YXBpVmVyc2lvbj" // base64 of apiVersion
	return strings.Contains(text, "apiVersion") || strings.HasPrefix(text, encoded) || IsContent(text)
}

// NoSSHKey returns a description of a file that is not an SSH private key, with advice. It returns an empty string for
// any PEM key, and does not check the key's type or passphrase.
func NoSSHKey(file []byte) string {
	switch text := strings.TrimSpace(string(file)); {
	case strings.HasPrefix(text, "PuTTY-User-Key-File"):
		return "the file contains a PuTTY key; run puttygen KEY.ppk -O private-openssh -o KEY to convert it for ssh"
	case strings.Contains(text, "AGE-SECRET-KEY-"):
		return "the file contains an age identity, not an SSH key"
	case text == "":
		return "the file of the private key is empty"
	case !IsPEM(text):
		return "the file is not a private key: it does not begin with -----BEGIN"
	}
	return ""
}

// NotText returns a description of content that is not UTF-8 text, or an empty string for text.
func NotText(content []byte) string {
	switch {
	case IsUTF16(content):
		return "this is UTF-16 text, perhaps from > in PowerShell; save it as UTF-8, for example with Set-Content -Encoding utf8"
	case bytes.HasPrefix(content, []byte("PK\x03\x04")):
		return "this is a plan or another zip archive; check that this is the right file"
	case bytes.HasPrefix(content, []byte("\x1f\x8b")):
		return "this is compressed with gzip; decompress it"
	case bytes.IndexByte(content, 0) >= 0, !utf8.Valid(content):
		return "this is not UTF-8 text; check that this is the right file"
	}
	return ""
}

// IsUTF16 reports whether content is UTF-16 text. It looks for a byte order mark, or for zeros in every other byte at
// the beginning.
func IsUTF16(content []byte) bool {
	if bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")) {
		return true
	}
	const least, most = 4, 16 // in bytes
	start := content[:min(len(content)&^1, most)]
	for i := 1; i < len(start); i++ {
		if (start[i] == 0) == (start[i-1] == 0) {
			return false
		}
	}
	return len(start) >= least
}
