// Package gcs reads a state that Terraform's gcs backend has written to Google Cloud Storage. It sends one GET request
// for the object, using the JSON API, after the sign-in requests. It does not list, write or lock anything.
//
// https://github.com/opentofu/opentofu/tree/v1.12.6/internal/backend/remote-state/gcs
// https://cloud.google.com/storage/docs/json_api/v1/objects/get
package gcs

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Kind returns the gcs source.
func Kind() source.Kind {
	return source.Kind{Table: table(), Credentials: credentials(), Workspaces: true, Begin: start}
}

func table() attr.Table {
	return attr.Table{
		Name: "gcs",
		Doc: "Reads the state from a Google Cloud Storage bucket, as the `gcs` backend writes it: `<prefix>/<workspace>.tfstate`, with one " +
			"`GET`. The identity is set in `credentials`, in the provider block.",
		Attrs: []attr.Attr{
			{Name: "bucket", Type: cty.String, Required: true, Check: attr.Text(checkBucket), Doc: "The name of the bucket."},
			{Name: "prefix", Type: cty.String, Doc: "The folder of the states in the bucket. Defaults to none."},
			{Name: "generation", Type: cty.String, Form: attr.Version,
				Check: attr.Is(generationNumber.MatchString, `this is not the number of a generation; write a number like "1712345678901234"`),
				Doc:   "The generation of the object to read, in digits, if the bucket keeps old versions. Defaults to the live one."},
			source.ChoiceAttr("credentials_name", "gcs", "to sign in with"),
		},
	}
}

func credentials() attr.Table {
	return attr.Table{
		Name: "gcs",
		Doc: "Credentials for Google Cloud Storage, with the arguments of the `gcs` backend. Without `access_token` and `credentials`, the " +
			"application default credentials are used.",
		Attrs: slices.Concat([]attr.Attr{
			source.NameAttr("credentials_name"),
		}, googleauth.Attrs("GOOGLE_BACKEND_CREDENTIALS", "GOOGLE_CREDENTIALS", fileVar), []attr.Attr{
			{Name: "encryption_key", Type: cty.String, Secrecy: attr.Secret, Env: []string{"GOOGLE_ENCRYPTION_KEY"}, Harmless: harmless.Secret,
				Doc: "The customer-supplied key that Cloud Storage decrypts the object with: 32 bytes in base64, or the path of a file with that " +
					"text. A Cloud KMS key needs no argument."},
			{Name: "storage_custom_endpoint", Type: cty.String,
				Env: []string{"GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_STORAGE_CUSTOM_ENDPOINT"},
				Doc: "The URL of the JSON API in place of `https://storage.googleapis.com/storage/v1/`, for example that of a Private Service " +
					"Connect endpoint. The access token is sent there."},
			{Name: "universe_domain", Type: cty.String, Env: []string{"GOOGLE_BACKEND_UNIVERSE_DOMAIN"},
				Check:    attr.Is(syntax.IsDomain, "this is not the name of a domain; write a name like googleapis.com"),
				Harmless: "It is the default.", HarmlessIf: harmless.OneOf("googleapis.com"),
				Doc: "The domain of the cloud, for clouds other than Google's own. Defaults to `googleapis.com`."},
		}),
	}
}
