package testkit

import (
	"regexp"
	"strings"
)

// CanaryOfPaths is part of every value in [InPlaceOfPaths].
const CanaryOfPaths = "c4n4ry"

// InPlaceOfPaths returns texts that users set by mistake instead of the path of a file: the file's content.
// No error may show them.
func InPlaceOfPaths() map[string]string {
	const begin, line, end = "-----BEGIN PRIVATE KEY-----\n", "MIIEvQIBADANBgkqc4n4ry0\n", "-----END PRIVATE KEY-----\n"
	return map[string]string{
		"a key in PEM": begin + line + end,
		"a long key":   begin + strings.Repeat(line, 300) + end, // longer than any file name
		"a token":      "eyJhbGciOiJub25lIn0.eyJzdWIiOiJjNG40cnkifQ.c4n4ry",
		"a document":   `{"type":"service_account","private_key":"c4n4ry","url":"https://a/b"}`,
		"a kubeconfig": "apiVersion: v1\nusers:\n- name: u\n  user:\n    token: c4n4ry\n",
	}
}

// NamesPath reports whether an attribute with this name and documentation is the path of a file. The
// attribute address does not count, because it is always shown.
func NamesPath(name, doc string) bool {
	byName := regexp.MustCompile(`(_file|_files|_file_path|_certificate_path|^config_paths?|_dir|_bundle)$`)
	byDoc := regexp.MustCompile(`(?i)\bpaths? of\b`)
	return name != "address" && (byName.MatchString(name) || byDoc.MatchString(doc))
}
