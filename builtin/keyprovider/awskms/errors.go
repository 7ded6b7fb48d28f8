package awskms

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/smithy-go"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// explain translates a KMS error. The error codes are documented in
// https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html.
func (p *provider) explain(operation string, err error) error {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return awsauth.Failure(p.service()+": "+awsauth.NoAnswer(err), err)
	}
	code := api.ErrorCode()
	row := answers.Find([]answers.Row{
		// Errors that wrap ErrNoKey let the next method try: the key is denied, disabled, missing or not the
		// right one.
		{Code: "AccessDeniedException", Wraps: driver.ErrNoKey, Text: "access is denied" + p.otherRegion(),
			Advice: "allow kms:" + operation + " in the policies of the credentials and of the key. If the key policy asks for an encryption " +
				"context, check the encryption context too"},
		{Code: "NotFoundException", Wraps: driver.ErrNoKey, Text: "there is no such key" + p.otherRegion(),
			Advice: "check the arguments kms_key_id and region, and the account of the credentials"},
		{Code: "DisabledException", Wraps: driver.ErrNoKey, Text: "the key is disabled"},
		{Code: "KMSInvalidStateException", Wraps: driver.ErrNoKey,
			Text: "the key cannot be used now, perhaps because its deletion is scheduled"},
		{Code: "InvalidCiphertextException", Wraps: driver.ErrNoKey,
			Text: "the file was not encrypted with this key and encryption context, or its metadata is damaged"},
		{Code: "IncorrectKeyException", Wraps: driver.ErrNoKey, Text: "the file was encrypted with another key"},

		{Code: "InvalidKeyUsageException", Text: "the key is not a symmetric key for encryption and decryption; check kms_key_id"},
		{Code: "ValidationException InvalidArnException", Text: "the request was rejected; check kms_key_id" + p.otherRegion()},
		{Code: "KMSInternalException DependencyTimeoutException KeyUnavailableException InternalFailure ServiceUnavailable " +
			"ServiceUnavailableException", Text: "the service is unavailable; try again later"},
		{Text: cmp.Or(awsauth.CommonReason(code), "the request failed")},
	}, 0, code, "")
	err = awsauth.Failure(p.service()+": "+answers.Coded(row.Text, awsauth.Code(code)), err)
	if row.Wraps != nil {
		err = fmt.Errorf("%w: %w", row.Wraps, err)
	}
	return fault.With(err, row.Advice)
}

// otherRegion returns text to append to an error if the key's ARN names another region, or else an empty
// string.
func (p *provider) otherRegion() string {
	a, err := arn.Parse(p.keyID)
	if err != nil || a.Region == p.settings.Region {
		return ""
	}
	return fmt.Sprintf(": the ARN is in %s, but the request went to %s", awsauth.Code(a.Region), p.settings.Region)
}
