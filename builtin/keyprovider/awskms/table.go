package awskms

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
)

// keyHarmless is the value of [attr.Attr.Harmless] for attributes that describe a key.
const keyHarmless = "It says which key AWS KMS is asked for, and not where AWS KMS is."

const doc = "AWS KMS wraps the key of each file. Reading requires `kms:Decrypt` on the key, and nothing else. Without credentials " +
	"here, they come from where every AWS SDK looks."

func table() attr.Table {
	attrs := slices.Concat(keyAttrs(), awsauth.CredentialAttrs("KMS"), awsauth.NetworkAttrs("keys", attr.Attr{
		Name: "endpoints", Default: cty.EmptyObjectVal, Doc: "Endpoints to use instead of AWS's own.", Attrs: []attr.Attr{
			{Name: "kms", Type: cty.String, Env: []string{"AWS_ENDPOINT_URL_KMS", "AWS_ENDPOINT_URL"},
				Doc: "The URL of AWS KMS, which OpenTofu 1.12 does " +
					"not have. The variables count without an `endpoints` block as well."},
			{Name: "sts", Type: cty.String, Env: []string{"AWS_ENDPOINT_URL_STS"}, Doc: "The URL of AWS STS, which assumes roles."},
			{Name: "iam", Type: cty.String, Env: []string{"AWS_ENDPOINT_URL_IAM"}, Harmless: "AWS IAM is never called.", Doc: "Accepted as " +
				"in OpenTofu. AWS IAM is never called."},
		},
	}))
	example := []string{`kms_key_id = "alias/tf-state"`, `key_spec = "AES_256"`, `region = "eu-west-1"`}
	return attr.Table{Name: "aws_kms", OtherNames: []string{"kms", "aws"}, Doc: doc, Attrs: attrs, Example: example}
}

func keyAttrs() []attr.Attr {
	return []attr.Attr{
		{Name: "kms_key_id", Type: cty.String, Required: true, Harmless: keyHarmless, Check: attr.Text(checkKeyID),
			Doc: "The KMS key: its ID, its ARN, or an alias such as `alias/tf-state`."},
		{Name: "key_spec", Type: cty.String, Required: true, Harmless: keyHarmless,
			Check: attr.OneOf("AES_256", "AES_128"),
			Doc:   "The kind of data key for new files: `AES_256` or `AES_128`. A file that is read holds its own."},
		{Name: "encryption_context", Type: cty.Map(cty.String), Harmless: keyHarmless, Check: attr.Whole(cty.Map(cty.String), checkContext),
			Doc: "The encryption context for new keys, which key policies can require. It is stored in the file in plaintext. A file that is " +
				"read has its own. OpenTofu has it from 1.13 on."},
		{Name: "region", Type: cty.String, Required: true, Env: []string{"AWS_REGION", "AWS_DEFAULT_REGION"},
			Check:    attr.Is(isSet, "the region is empty; set a region like eu-west-1, or the environment variable AWS_REGION"),
			Harmless: awsauth.HarmlessRegion, HarmlessIf: awsauth.IsCommercial, Doc: "The region of the key, such as `eu-west-1`."},
	}
}

func checkKeyID(text string) error {
	switch {
	case text == "":
		return errors.New("the value is empty; set it to the ID, the ARN or an alias of a KMS key")
	case strings.HasPrefix(text, "arn:") && !strings.Contains(text, ":kms:"):
		return errors.New("this is not the ARN of a KMS key; set an ARN that begins with arn:aws:kms")
	}
	return nil
}

func checkContext(pairs cty.Value) error {
	size := 0
	for k, v := range pairs.AsValueMap() {
		if size += len(k); !v.IsNull() {
			size += len(v.AsString())
		}
	}
	if size > maxContext {
		return fmt.Errorf("the encryption context is longer than %d characters, but KMS accepts no more", maxContext)
	}
	return nil
}

func isSet(text string) bool { return text != "" }
