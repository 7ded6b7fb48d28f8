package encryption

import (
	"bytes"
	"unicode/utf8"
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
	case begins("<<<<<<< "), bytes.Contains(file, []byte("\n<<<<<<< ")):
		return "git left conflict markers in it; restore one of the two versions as a whole"
	case !utf8.Valid(file):
		return `it is not text; if terraform-backend-git encrypted it with a passphrase, select a method "terraform_backend_git" for it`
	}
	return ""
}
