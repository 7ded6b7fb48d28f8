package kubestate

import (
	"strings"
	"unicode"
)

// snake returns the Terraform name of a field or a kind that follows the naming rules: private_network_uuid
// for privateNetworkUUID, and s3_bucket for S3Bucket. A run of capital letters is one word, and so is its
// plural with an s at the end. IPv4 and IPv6 are also words.
func snake(name string) string {
	// Kubeform appends an underscore to a kind if another Go type has the same name.
	runes := []rune(adjoining.Replace(strings.TrimSuffix(name, "_")))
	var b strings.Builder
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && begins(runes, i) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// adjoining separates adjacent abbreviations in Kubeform's types, because a name such as webACLID does not
// show where a word ends. It covers all such names among the 5,178 field names and 1,163 kinds in Kubeform's
// API packages, v1alpha1 of 2021.
var adjoining = strings.NewReplacer(
	"ACLID", "AclID", "APIID", "ApiID", "APIURL", "ApiURL", "DNSARecord", "DnsARecord", "DNSIPS", "DnsIPS", "URLHTTP", "UrlHTTP",
	"URLSSH", "UrlSSH", "WANID", "WanID", "XJSON", "XJson", "use32Bit", "use_32Bit",
)

// begins reports whether the capital letter at i starts a word.
func begins(runes []rune, i int) bool {
	if runes[i-1] == '_' {
		return false
	}
	if !unicode.IsUpper(runes[i-1]) {
		return true
	}
	rest := runes[i+1:]
	if len(rest) == 0 || !unicode.IsLower(rest[0]) {
		return false
	}
	afterwards := func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) }
	plural := rest[0] == 's' && (len(rest) == 1 || afterwards(rest[1]))
	ip := runes[i-1] == 'I' && runes[i] == 'P' && rest[0] == 'v' && len(rest) > 1 && unicode.IsDigit(rest[1])
	return !plural && !ip
}

// attribute returns the Terraform name of a field, or an empty string if the field is not an attribute.
func (o *Object) attribute(field string) string {
	if name, ok := o.fieldNames[field]; ok {
		return name
	}
	return snake(field)
}
