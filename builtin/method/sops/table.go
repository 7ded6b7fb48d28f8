package sops

import (
	"errors"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
)

const doc = "Files encrypted by [sops](https://getsops.io) as JSON, YAML or binary, also by terraform-backend-git. A key service is " +
	"called only for what the lists `allowed_…` name."

// Reasons for [attr.Attr.Harmless]. The only secret that is ever sent is vault_token.
const (
	identityHarmless = "It is used here and never sent."
	cloudHarmless    = "The clouds are asked with the identity of the environment, and get no secret of the code."
)

func table() attr.Table {
	return attr.Table{Name: "sops", Doc: doc, Example: []string{`age_identity_files = ["key.txt"]`}, Attrs: []attr.Attr{
		{Name: "age_identities", Type: cty.List(cty.String), Secrecy: attr.LocalSecret, Harmless: identityHarmless,
			Env: []string{"SOPS_AGE_KEY"},
			Doc: "age identities (`AGE-SECRET-KEY-…`): one in each element, or the content of a key file."},
		{Name: "age_identity_files", Type: cty.List(cty.String), Secrecy: attr.NamesLocalSecret, Harmless: identityHarmless,
			Env: []string{"SOPS_AGE_KEY_FILE"},
			Doc: "Paths of files with age identities, or of SSH private keys without a passphrase."},
		{Name: "age_identity_command", Type: cty.List(cty.String), Form: attr.Command, Check: attr.Whole(cty.List(cty.String), checkCommand),
			Doc: "A program that prints age identities, and its arguments. All programs for the keys of a file have a minute together. " +
				"It finds the recipient in `SOPS_AGE_RECIPIENT`. " +
				"`SOPS_AGE_KEY_CMD` is not read."},
		{Name: "use_ssh_keys", Type: cty.Bool, Default: cty.False, Doc: "Whether `~/.ssh/id_ed25519` and `~/.ssh/id_rsa` " +
			"are age identities, too, as they are for sops. Defaults to `false`."},
		{Name: "pgp_private_keys", Type: cty.List(cty.String), Secrecy: attr.LocalSecret, Harmless: identityHarmless, Doc: "PGP private " +
			"keys, armoured, as `gpg --export-secret-keys --armor` writes them."},
		{Name: "pgp_passphrase", Type: cty.String, Secrecy: attr.LocalSecret, Harmless: identityHarmless,
			Doc: "The passphrase of `pgp_private_keys`."},
		{Name: "use_gpg", Type: cty.Bool, Doc: "Whether the program `gpg` opens what is encrypted for PGP keys, " +
			"with the user's keyring and agent. Defaults to `true` if the environment may be read, otherwise to " +
			"`false`."},
		{Name: "gpg_command", Type: cty.String, Default: cty.StringVal("gpg"), Form: attr.Command,
			Check: attr.Is(isSet, "the command is empty; set the name or the path of a program"),
			Doc: "The program to run as `gpg`. `SOPS_GPG_EXEC` is not read: a command must be set in the configuration. Defaults to " +
				"`gpg`."},
		{Name: "vault_token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Harmless: harmless.Secret, Env: []string{"VAULT_TOKEN",
			"BAO_TOKEN"}, Doc: "The token for Vault or OpenBao. It is sent to allowed addresses only."},
		{Name: "vault_namespace", Type: cty.String, // not harmless: another namespace has its own engine
			Env: []string{"VAULT_NAMESPACE", "BAO_NAMESPACE"}, Doc: "The namespace of the transit engine."},
		{Name: "azure_use_msi", Type: cty.Bool, Default: cty.False, Harmless: cloudHarmless, Env: []string{"ARM_USE_MSI"}, Doc: "Whether to " +
			"sign in to Azure as the managed identity of this machine. Defaults to `false`."},
		{Name: "allowed_vault_addresses", Type: cty.List(cty.String), Check: attr.Text(checkVaults),
			Env: []string{"TF_BACKEND_HTTP_SOPS_HC_VAULT_URIS", "VAULT_ADDR", "BAO_ADDR"},
			Doc: "The Vault or OpenBao servers that a file may name, such as `https://vault.example.com:8200`, for the engine " +
				"`transit`; `https://vault.example.com:8200/v1/sops` is for `sops`. Defaults to none."},
		{Name: "allowed_aws_keys", Type: cty.List(cty.String), Harmless: cloudHarmless, Env: []string{"TF_BACKEND_HTTP_SOPS_AWS_KMS_ARNS"},
			Doc: "The ARNs of the AWS KMS keys that a file may name, or `[\"*\"]` for any. Without it, AWS is not called."},
		{Name: "allowed_aws_roles", Type: cty.List(cty.String), Harmless: cloudHarmless, Env: []string{"TF_BACKEND_HTTP_SOPS_AWS_KMS_ARNS"},
			Doc: "The ARNs of the IAM roles that a file may name, to be assumed before AWS KMS is called. Defaults to none."},
		{Name: "allowed_aws_profiles", Type: cty.List(cty.String), Harmless: cloudHarmless, Env: []string{"TF_BACKEND_HTTP_SOPS_AWS_PROFILE"},
			Doc: "The profiles of the shared AWS configuration files that a file may name. Defaults to none."},
		{Name: "allowed_gcp_keys", Type: cty.List(cty.String), Harmless: cloudHarmless, Env: []string{"TF_BACKEND_HTTP_SOPS_GCP_KMS_KEYS"},
			Doc: "The resource names of the Google Cloud KMS keys that a file may name, or `[\"*\"]` for any. Without it, " +
				"Google Cloud is not called."},
		{Name: "allowed_azure_vaults", Type: cty.List(cty.String),
			Check: attr.Is(isAzureVault, "this is not an https URL without a path; write a URL like https://example.vault.azure.net"),
			Doc: "The URLs of the vaults that a file may name, such as `https://example.vault.azure.net`, or `[\"*\"]` for any vault or " +
				"managed HSM under " +
				"Microsoft's own domains. Without it, Azure is not called."},
		{Name: "allow_unencrypted_values", Type: cty.Bool, Default: cty.False, Doc: "Whether a file may contain values that sops left " +
			"unencrypted, such as those of `unencrypted_suffix`. Whoever can write the file can exchange them. Defaults to `false`."},
	}}
}

func checkCommand(command cty.Value) error {
	if words := command.AsValueSlice(); len(words) > 0 && !words[0].IsNull() && isSet(words[0].AsString()) {
		return nil
	}
	return errors.New("the command is empty; set the name or the path of a program, and its arguments")
}

func isSet(text string) bool { return text != "" }
