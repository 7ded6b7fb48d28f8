package azurerm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// lookupError is an error from looking up an access key.
type lookupError struct{ error }

func (e lookupError) Unwrap() error { return e.error }

// Frozen is the error message for a blob that cannot be changed.
const Frozen = "an immutability policy or a legal hold keeps the blob, or its container, from being changed, so that neither a lock nor " +
	"a state can be written; keep the state in another container"

var (
	errNoSAS = errors.New("a shared access signature for blobs is required, such as sv=...&sp=r&sig=..., as the " +
		"portal shows it; a URL or a connection string is not one")
	errEndpoint  = errors.New("an https URL is required; http is for this machine itself only")
	errNoStorage = web.Final("the answer is not from Azure Storage; check the proxy and blob_endpoint")
	errBrokeOff  = errors.New(netfail.BrokeOff)
)

// explain returns an error that does not repeat any text from the service.
func (l *location) explain(limited context.Context, err error) error {
	asked := "storage account " + l.account.name
	_, lookup := errors.AsType[lookupError](err)
	if lookup {
		asked = "resource manager"
	}
	if limited.Err() != nil {
		return fmt.Errorf("%s from the %s within %s; timeout_seconds can be raised", netfail.NoAnswer, asked, l.timeout)
	}
	if own := web.Own(err); own != nil {
		return own
	}
	if missing, ok := source.IsMissing(err); ok {
		return missing
	}
	if noToken := azureauth.Explain(err); noToken != nil {
		return noToken
	}
	refused, answered := errors.AsType[*azcore.ResponseError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case answered && lookup:
		return l.lookupRefused(refused.StatusCode)
	case answered:
		return l.refused(refused)
	case isDNS && !lookup:
		return fmt.Errorf("%s: there is no account %s in this cloud, or only a private "+
			"network leads to it", azureauth.Reason(err), l.account.name)
	case errors.Is(err, errBrokeOff):
		return fmt.Errorf("%w (after %d tries); try again", errBrokeOff, maxTries)
	default:
		return fmt.Errorf("no usable answer from the %s: %s", asked, azureauth.Reason(err))
	}
}

// refused translates a storage account error. It explains known error codes, and does not show any others.
// https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
func (l *location) refused(answered *azcore.ResponseError) error {
	code := codeOf(answered)
	if code == "BlobNotFound" && answered.StatusCode == http.StatusNotFound {
		if l.version != "" {
			return fmt.Errorf("there is no version %s of the blob %q (404 BlobNotFound); it may have been deleted", l.version, l.blob)
		}
		detail := fmt.Sprintf("the container %s holds no blob %q (404 BlobNotFound)", l.container, l.blob)
		if strings.HasPrefix(l.blob, "/") {
			detail += "; the slash at its beginning is a part of the name"
		}
		return &source.MissingError{Detail: detail, CredentialsSent: true}
	}
	status, account := answered.StatusCode, "the storage account "+l.account.name
	if advice := l.advice(code); advice != "" {
		request := "read"
		if l.writes {
			request = "request"
		}
		return fmt.Errorf("%s refuses the %s (%d %s): %s", account, request, status, code, advice)
	}
	return answers.Find([]answers.Row{
		{Status: "429 503", Text: account + " gets too many requests or is overloaded (" + web.Status(status) + "); try again later"},
		{Status: "401 403",
			Text: account + " refuses the credentials (" + web.Status(status) + "); check them, and whether they have expired"},
		{Wraps: web.Unexpected(account, status)},
	}, status, "", "").Err()
}

func (l *location) advice(code string) string {
	isSAS, isKey := l.grant.sas != "", l.grant.accessKey != "" || l.looksUp()
	act, acting, permission, role := "read", "reading", "permission r", "Reader"
	if l.writes {
		act, acting, role = "read and write", "reading and writing", "Contributor"
		permission = "permissions r and w (t for a blob with index tags, l to list)"
	}
	return answers.Find([]answers.Row{
		{Code: "ContainerNotFound", Text: "there is no container " + l.container + "; check container_name and storage_account_name"},
		{Code: "ContainerBeingDeleted ContainerDisabled", Text: "the container " + l.container + " is disabled or being deleted"},
		{Code: "ResourceNotFound AccountNotFound", Text: "there is no such account or container, or the credentials may not see it; " +
			"check storage_account_name, container_name and the credentials"},
		{Code: "AccountIsDisabled AccountBeingCreated", Text: "the account is disabled, or not yet there"},
		{Code: "AuthorizationPermissionMismatch InsufficientAccountPermissions", Unless: !isSAS,
			Text: "the shared access signature does not allow " + acting + " blobs; make one with the " + permission + " for blobs"},
		{Code: "AuthorizationPermissionMismatch InsufficientAccountPermissions",
			Text: "the identity may not " + act + " blobs; give it the role " +
				"Storage Blob Data " + role + " on the container; a new role needs some minutes"},
		{Code: "AuthenticationFailed", Unless: !isSAS, Text: "the shared access signature is expired, not yet valid, or not of this account; " +
			"check sas_token in {credentials}, and the clock of this machine"},
		{Code: "AuthenticationFailed", Unless: !isKey,
			Text: "the access key is not one of this account; check access_key in {credentials}, and the clock of this machine"},
		{Code: "AuthenticationFailed", Text: "the token of the identity is not accepted; check tenant_id and environment in {credentials}"},
		{Code: "InvalidAuthenticationInfo NoAuthenticationInformation",
			Text: "the token of the identity is not accepted here; check tenant_id, environment and blob_endpoint in {credentials}"},
		{Code: "AuthorizationFailure", Text: "the network rules of the account do not let this machine in: allow its address, or run inside " +
			"the network; or the credentials do not allow " + acting + " blobs"},
		{Code: "AuthorizationSourceIPMismatch", Text: "the shared access signature is not for the address of this machine"},
		{Code: "AuthorizationProtocolMismatch AuthorizationResourceTypeMismatch AuthorizationServiceMismatch",
			Text: "the shared access signature is for something else; make one for objects (srt=o) of the blob service " +
				"(ss=b), or for the container (sr=c)"},
		{Code: "KeyBasedAuthenticationNotPermitted", Text: "the account accepts no access keys and no signatures made with them; set " +
			"use_azuread_auth in {credentials}, and give the identity the role Storage Blob Data " + role},
		{Code: "PublicAccessNotPermitted", Text: "the account requires credentials"},
		{Code: "BlobArchived BlobBeingRehydrated",
			Text: "the blob is in the archive tier, from which nothing can be read; move it to another tier first"},
		{Code: "BlobUsesCustomerSpecifiedEncryption BlobCustomerSpecifiedEncryptionMismatch",
			Text: "the blob is encrypted with a key that its writer provides; set customer_provided_key to that key, in {credentials}"},
		{Code: "BlobDoesNotUseCustomerSpecifiedEncryption",
			Text: "the blob is not encrypted with a key that its writer provides; leave customer_provided_key out"},
		{Code: "UnauthorizedBlobOverwrite",
			Text: "the shared access signature allows new blobs only; make one with the " + permission + " for blobs"},
		{Code: "BlobImmutableDueToPolicy BlobImmutableDueToLegalHold", Text: Frozen},
		{Code: "InvalidQueryParameterValue InvalidUri InvalidResourceName OutOfRangeInput",
			Text: "the name of the container, the key or the version cannot be right"},
		{Code: "ServerBusy OperationTimedOut InternalError", Text: "the service is overloaded or has failed; try again later"},
	}, 0, code, "").Text
}

// lookupRefused translates a resource manager error.
func (l *location) lookupRefused(status int) error {
	instead := "; or leave resource_group_name out, and " + l.itself()
	what := fmt.Sprintf("the access key of the storage account %s cannot be looked up (%s)", l.account.name, web.Status(status))
	return answers.Find([]answers.Row{
		{Status: "403", Text: what + ": the identity lacks the permission Microsoft.Storage/storageAccounts/listKeys/action" + instead},
		{Status: "401", Text: what + ": the token of the identity is not accepted; check tenant_id and environment in {credentials}"},
		{Status: "404", Text: what + ": the subscription has no such resource group, or the group has no such account; check " +
			"subscription_id, resource_group_name and storage_account_name"},
		{Status: "409 423", Text: what + ": a lock on the account or its group does not allow it" + instead},
		{Text: what + instead},
	}, status, "", "").Err()
}

// itself returns advice for using an identity directly, without looking up a key.
func (l *location) itself() string {
	if l.writes {
		return "the identity itself writes the blob (role Storage Blob Data Contributor)"
	}
	return "the identity itself reads the blob (role Storage Blob Data Reader)"
}
