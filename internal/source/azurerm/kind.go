// Package azurerm reads a state that Terraform's azurerm backend has written to Azure Storage. The state is in one
// blob, which is read with one request. Keys, signatures and tokens are only sent to Azure's own hosts, or to the
// blob_endpoint in the same block.
//
// https://github.com/opentofu/opentofu/tree/v1.12.6/internal/backend/remote-state/azure
// https://github.com/hashicorp/terraform/tree/main/internal/backend/remote-state/azure
package azurerm

import (
	"math"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Kind returns the azurerm source.
func Kind() source.Kind {
	return source.Kind{Table: table(), Credentials: credentials(), Workspaces: true, Begin: start}
}

func table() attr.Table {
	return attr.Table{
		Name: "azurerm",
		Doc: "Reads the state from a blob of Azure Storage, as the `azurerm` backend writes it, with one `GET`. How to sign in is set in " +
			"`credentials`, in the provider block.",
		Attrs: []attr.Attr{
			{Name: "storage_account_name", Type: cty.String, Required: true, Check: attr.Text(checkAccount),
				Doc: "The name of the storage account: 3 to 24 lowercase letters and digits."},
			{Name: "container_name", Type: cty.String, Required: true, Check: attr.Text(checkContainer), Doc: "The name of the container."},
			{Name: "key", Type: cty.String, Required: true,
				Doc: "The name of the blob that holds the state of the default workspace."},
			{Name: "version_id", Type: cty.String, Form: attr.Version,
				Check: attr.Is(isVersion, "this is not the ID of a version; an ID looks like 2026-01-31T12:00:00.0000000Z"),
				Doc: "Reads this version of the blob, if the storage account keeps versions, such as `2026-01-31T12:00:00.0000000Z`. Without " +
					"it, the current one is read."},
			{Name: "resource_group_name", Type: cty.String,
				Check: attr.Is(isGroup, "this is not the name of a resource group; use 1 to 90 letters, digits, underscores, parentheses, hyphens "+
					"and dots, without a dot at the end"),
				Doc: "The resource group of the storage account, to look up the access key as the backend does. This requires the permission to list " +
					"keys. Without this argument, the identity itself reads the blob."},
			{Name: "subscription_id", Type: cty.String,
				Doc: "The ID of the subscription of `resource_group_name`. Defaults to `subscription_id` of the credentials, or to the subscription " +
					"of the Azure CLI if it signs in."},
			{Name: "timeout_seconds", Type: cty.Number, Default: cty.NumberIntVal(defaultTimeout), Env: []string{"ARM_TIMEOUT_SECONDS"},
				Check: attr.Between(1, math.MaxInt32),
				Doc:   "How many seconds the read may take, with signing in and further tries. Defaults to 300."},
			source.ChoiceAttr("credentials_name", "azurerm", "to sign in with"),
		},
	}
}

// credentials returns a table with two groups: "key", for secrets that authenticate a request by themselves,
// and "client", for the credentials of an identity. If the block sets an identity, a key or a signature from
// the environment is ignored.
func credentials() attr.Table {
	return attr.Table{
		Name: "azurerm",
		Doc: "How to sign in to Azure Storage, with the arguments of the `azurerm` backend: `access_key`, else `sas_token`, else an " +
			"identity. The variables `ARM_*` fill only the block without a name.",
		Attrs: append([]attr.Attr{
			source.NameAttr("credentials_name"),
			{Name: "access_key", Type: cty.String, Secrecy: attr.Secret, Group: "key", UnlessGroup: "client",
				Env: []string{"ARM_ACCESS_KEY"}, Harmless: harmless.Secret, Check: attr.Text(checkAccessKey),
				Doc: "An access key of the storage account. It may do everything there; a reader needs less."},
			{Name: "sas_token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Group: "key", UnlessGroup: "client",
				Env: []string{"ARM_SAS_TOKEN"}, Harmless: harmless.Secret,
				Doc: "A shared access signature, with the permission to read blobs (`sp=r`)."},
			{Name: "use_azuread_auth", Type: cty.Bool, Group: "key", Env: []string{"ARM_USE_AZUREAD"},
				Harmless: "It chooses between ways to prove to the same storage account who asks.",
				Doc:      "Whether the identity itself reads the blob, even if `resource_group_name` is set. Defaults to `false`."},
			{Name: "customer_provided_key", Type: cty.String, Secrecy: attr.Secret, Env: []string{"ARM_CUSTOMER_PROVIDED_KEY"},
				Harmless: harmless.Secret, Check: source.CustomerKeyCheck(),
				Doc: "The AES-256 key that the blob was encrypted with on the server, in base64, if the writer provides one."},
			{Name: "blob_endpoint", Type: cty.String, Check: attr.Text(checkEndpoint),
				Doc: "The URL of the blob service, for a private cloud, a DNS zone endpoint or Azurite. It must belong to the storage account, and " +
					"begin with `https` unless the service is on this machine."},
			{Name: "ado_service_connection_id", Type: cty.String, UnlessGroup: "client", Env: []string{"ARM_ADO_PIPELINE_SERVICE_CONNECTION_ID",
				"ARM_OIDC_AZURE_SERVICE_CONNECTION_ID", "AZURESUBSCRIPTION_SERVICE_CONNECTION_ID"},
				Harmless: "It is a name that the address of Azure Pipelines is asked with.",
				Doc:      "The ID of the service connection in Azure Pipelines, where the job signs in with `use_oidc`."},
		}, azureauth.Attrs(variables())...),
	}
}

// variables maps attributes to the backend's environment variables. They replace the common variables of
// [azureauth.Attrs].
func variables() map[string][]string {
	return map[string][]string{
		"use_oidc":                  {"ARM_USE_OIDC"},
		"oidc_token_file_path":      {"ARM_OIDC_TOKEN_FILE_PATH", "AZURE_FEDERATED_TOKEN_FILE"},
		"oidc_request_url":          {"ARM_OIDC_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_URL", "SYSTEM_OIDCREQUESTURI"},
		"oidc_request_token":        {"ARM_OIDC_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "SYSTEM_ACCESSTOKEN"},
		"use_msi":                   {"ARM_USE_MSI"},
		"msi_endpoint":              {"ARM_MSI_ENDPOINT"},
		"use_aks_workload_identity": {"ARM_USE_AKS_WORKLOAD_IDENTITY"},
		"use_cli":                   {"ARM_USE_CLI"},
	}
}
