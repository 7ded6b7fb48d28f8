package provider

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/missing"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// advised is the text of an error. If the library says what is missing, it adds what
// users of the provider write about that.
func advised(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*missing.Method](err); ok {
		return insert(text, e, adviseMethod(e))
	}
	if e, ok := errors.AsType[*missing.Variable](err); ok {
		return insert(text, e, adviseVariable(e))
	}
	if errors.Is(err, attr.ErrCommand) {
		return insert(text, attr.ErrCommand, ", or with allow_external = true")
	}
	return text
}

// insert puts advice after the text of err.
func insert(text string, err error, advice string) string {
	return strings.Replace(text, err.Error(), err.Error()+advice, 1)
}

func adviseVariable(e *missing.Variable) string {
	if e.Name == "" {
		return "; set the values of var.* in encryption_variables, in the provider block"
	}
	return fmt.Sprintf("; in the provider block, let encryption_variables have it, as in encryption_variables = { %s = var.%[1]s }, where "+
		"var.%[1]s is a variable of your configuration", e.Name)
}

func adviseMethod(e *missing.Method) string {
	switch {
	case len(e.Methods) > 0 && len(e.Selected) == 1:
		if selected := e.Selected[0]; e.InText && strings.Contains(selected, ".") {
			return fmt.Sprintf("; in place of method = %s, write method = %s", selected,
				strings.Join(e.Methods, " or "))
		}
		return fmt.Sprintf("; in place of method = %q, set method = %s where that stands (on the data source, or in the default block), or "+
			"remove it from the data source if there is a default block that has it",
			e.Selected[0], join(e.Methods, strconv.Quote))
	case len(e.Methods) > 0:
		if e.InText {
			return "; add to the settings: " + join(e.Methods, func(method string) string { return fmt.Sprintf("state { method = %s }", method) })
		}
		add := "; add to the provider block: " + join(e.Methods, func(method string) string {
			return fmt.Sprintf("default { method = %q }", method)
		})
		if len(e.Methods) > 1 {
			add += ", whichever has the key of this file"
		}
		return add
	case e.ByKind:
		return fmt.Sprintf("%s; set method = %q on the data source; if it requires settings, set method = \"method.%[2]s.main\" there, "+
			"and add its block to the provider block%s", notOfFiles(e), e.Format, syntax.Remedy("method."+e.Format, firstArguments(e.Format)...))
	case e.Format != "":
		return fmt.Sprintf("%s; set method = \"method.%s.main\" on the data source, and add its block, with its settings, to the "+
			"provider block%s", notOfFiles(e), e.Format, syntax.Remedy("method."+e.Format, firstArguments(e.Format)...))
	case len(e.KeyProviders) == 0 && e.InText:
		kind := knownKind(e.StoredKind)
		return fmt.Sprintf("; where the settings are (TF_ENCRYPTION, or encryption in the provider block), add key_provider %q \"main\" with "+
			"its settings in braces, such as %s, and method \"aes_gcm\" \"main\" { keys = key_provider.%s.main }, and let state have "+
			"method = method.aes_gcm.main", kind, firstArguments(kind)[0], kind)
	case len(e.KeyProviders) == 0:
		return adviseKeyProvider(e)
	case e.InText:
		return fmt.Sprintf("; where the settings are (TF_ENCRYPTION, or encryption in the provider block), add method \"aes_gcm\" \"main\" "+
			"{ keys = %s } and state { method = method.aes_gcm.main }", e.KeyProviders[0])
	}
	others := ""
	for _, k := range e.KeyProviders[1:] {
		others += fmt.Sprintf(", or one with keys = %q", k)
	}
	return fmt.Sprintf("; add this method to the provider block%s%s", others,
		syntax.Remedy("method.aes_gcm", fmt.Sprintf("keys = %q", e.KeyProviders[0])))
}

// notOfFiles says that a key provider with the name of the method is none for this file.
func notOfFiles(e *missing.Method) string {
	for _, address := range e.KeyProviders {
		if strings.HasPrefix(address, "key_provider.age.") {
			return fmt.Sprintf("; %s is for files in the format of OpenTofu, so the identities in it belong in a method here", address)
		}
	}
	return ""
}

// adviseKeyProvider is for a file whose metadata names a key provider. Its block is
// enough, unless another method is selected.
func adviseKeyProvider(e *missing.Method) string {
	kind, place := knownKind(e.StoredKind), " to the provider block"
	if len(e.Selected) > 0 {
		place = fmt.Sprintf(" and a method to the provider block, and set method = \"method.aes_gcm.main\" on the data source, because %s is "+
			"not for this file", join(e.Selected, func(s string) string { return s }))
	}
	with := ", with its settings,"
	if kind == "pbkdf2" {
		with = ""
	}
	blocks := syntax.Remedy("key_provider."+kind, firstArguments(kind)...)
	if len(e.Selected) > 0 {
		blocks += strings.TrimPrefix(syntax.Remedy("method.aes_gcm"), ":\n")
	}
	if kind == "age" { // and another name in OpenTofu, which runs a program for it
		return "; a recipient of age can open it: add a key provider of the kind age" + place + blocks
	}
	return "; add its key provider" + with + place + blocks
}

// knownKind is a kind of key provider that there is: the file may come from anywhere, and
// an alias names none.
func knownKind(stored string) string {
	known := func(b encryption.Block[encryption.KeyProvider]) bool { return b.Name == stored }
	if slices.ContainsFunc(builtin.Registry().KeyProviders, known) {
		return stored
	}
	return "pbkdf2"
}

// firstArguments are those that a key provider or method cannot do without.
func firstArguments(kind string) []string {
	return map[string][]string{
		"age":                   {`identity_files = ["key.txt"]`},
		"aws_kms":               {`kms_key_id = "alias/tf-state"`, `key_spec = "AES_256"`, `region = "eu-west-1"`},
		"azure_vault":           {`vault_uri = "https://example.vault.azure.net"`, `vault_key_name = "tf-state"`, "key_length = 32"},
		"external":              {`command = ["./get-key.sh"]`},
		"gcp_kms":               {"kms_encryption_key = var.kms_encryption_key", "key_length = 32"},
		"kubeform":              {"key = var.kubeform_key"},
		"openbao":               {`address = "https://bao.example.com:8200"`, `key_name = "tf-state"`},
		"pbkdf2":                {"passphrase = var.passphrase"},
		"sops":                  {`age_identity_files = ["key.txt"]`},
		"static":                {"key = var.key"},
		"terraform_backend_git": {"passphrase = var.passphrase"},
		"xor":                   {`a = "key_provider.pbkdf2.main"`, `b = "key_provider.static.main"`},
	}[kind]
}

// aKeyProvider is the one to begin with.
var aKeyProvider = syntax.Remedy("key_provider.pbkdf2", firstArguments("pbkdf2")...)

// join lists what to choose from.
func join(choices []string, text func(string) string) string {
	out := make([]string, len(choices))
	for i, c := range choices {
		out[i] = text(c)
	}
	return strings.Join(out, " or ")
}
