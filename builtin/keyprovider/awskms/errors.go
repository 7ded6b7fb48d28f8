package awskms

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/smithy-go"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
)

// explain says what an error of KMS means. The codes are those of
// https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html
func (p *provider) explain(operation string, err error) error {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return awsauth.Failure(p.service()+": "+awsauth.NoAnswer(err), err)
	}
	code := api.ErrorCode()
	text, advice, noKey := p.reason(operation, code)
	err = awsauth.Failure(fmt.Sprintf("%s: %s (%s)", p.service(), text, awsauth.Code(code)), err)
	if noKey {
		err = fmt.Errorf("%w: %w", driver.ErrNoKey, err)
	}
	return fact.Advise(err, advice)
}

// reason says what a code means, what to do about it, and whether the next method may be
// tried: if this key is denied, disabled, not found or the wrong one.
func (p *provider) reason(operation, code string) (text, advice string, noKey bool) {
	switch code {
	case "AccessDeniedException":
		return "access is denied" + p.otherRegion(), fmt.Sprintf("the credentials need kms:%s on this key, and its policy, with any "+
			"encryption context that this asks for, must allow it", operation), true
	case "NotFoundException":
		return "there is no such key" + p.otherRegion(), "check kms_key_id, region and the account of the credentials", true
	case "DisabledException":
		return "the key is disabled", "", true
	case "KMSInvalidStateException":
		return "the key cannot be used in its state, such as one that waits for its deletion", "", true
	case "InvalidCiphertextException":
		return "the file was not encrypted with this key and encryption context, or its metadata is damaged", "", true
	case "IncorrectKeyException":
		return "the file was encrypted with another key", "", true
	case "InvalidKeyUsageException":
		return "the key is not one to encrypt and decrypt with, or not a symmetric one; check kms_key_id", "", false
	case "ValidationException", "InvalidArnException":
		return "the request is refused; check kms_key_id" + p.otherRegion(), "", false
	case "KMSInternalException", "DependencyTimeoutException", "KeyUnavailableException", "InternalFailure", "ServiceUnavailable",
		"ServiceUnavailableException":
		return "the service is out of order; try again later", "", false
	}
	if text, ok := awsauth.CommonReason(code); ok {
		return text, "", false
	}
	return "the request failed", "", false
}

// otherRegion points out the most likely mistake if a key is not found.
func (p *provider) otherRegion() string {
	a, err := arn.Parse(p.keyID)
	if err != nil || a.Region == p.settings.Region {
		return ""
	}
	return fmt.Sprintf(": the ARN is of %s, and the request went to %s", awsauth.Code(a.Region), p.settings.Region)
}
