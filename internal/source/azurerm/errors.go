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
const Frozen = "an immutability policy or a legal hold prevents changes to the blob or its container, so locks and states cannot be " +
	"written; keep the state in another container"

var (
	errNoSAS = errors.New("this is not a shared access signature for blobs; copy the SAS token from the portal (sv=…&sp=r&sig=…), not the " +
		"URL or the connection string")
	errEndpoint  = errors.New("the URL does not begin with https://; use https. Only a server on this machine may use http")
	errNoStorage = web.Final("the answer does not come from Azure Storage; check the proxy settings and blob_endpoint")
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
		return fmt.Errorf("%s from the %s within %s; try again, or raise timeout_seconds", netfail.NoAnswer, asked, l.timeout)
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
		return fmt.Errorf("%s. The account %s does not exist in this cloud, or can only be reached from a private "+
			"network", azureauth.Reason(err), l.account.name)
	case errors.Is(err, errBrokeOff):
		return fmt.Errorf("%w (after %d tries); try again", errBrokeOff, maxTries)
	default:
		return fmt.Errorf("the %s gave no usable answer: %s", asked, azureauth.Reason(err))
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
		detail := fmt.Sprintf("the container %s contains no blob %q (404 BlobNotFound)", l.container, l.blob)
		if strings.HasPrefix(l.blob, "/") {
			detail += "; remove the slash at the beginning of the key, because it is part of the blob's name"
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
			Text: account + " refuses the credentials (" + web.Status(status) + "); check that they are correct and have not expired"},
		{Wraps: web.Unexpected(account, status)},
	}, status, "", "").Err()
}

func (l *location) advice(code string) string {
	isSAS, isKey := l.grant.sas != "", l.grant.accessKey != "" || l.looksUp()
	act, acting, permission, role := "read", "reading", "permission r for blobs", "Reader"
	if l.writes {
		act, acting, role = "read and write", "reading and writing", "Contributor"
		permission = "permissions r and w for blobs (also t if a blob has index tags, and l to list states)"
	}
	return answers.Find([]answers.Row{
		{Code: "ContainerNotFound", Text: "there is no container " + l.container + "; check container_name and storage_account_name"},
		{Code: "ContainerBeingDeleted ContainerDisabled", Text: "the container " + l.container + " is disabled or being deleted"},
		{Code: "ResourceNotFound AccountNotFound", Text: "there is no such account or container, or the credentials have no access to it; " +
			"check storage_account_name, container_name and the credentials"},
		{Code: "AccountIsDisabled AccountBeingCreated", Text: "the account is disabled, or does not exist yet"},
		{Code: "AuthorizationPermissionMismatch InsufficientAccountPermissions", Unless: !isSAS,
			Text: "the shared access signature does not allow " + acting + " blobs; create a signature with the " +
				permission},
		{Code: "AuthorizationPermissionMismatch InsufficientAccountPermissions",
			Text: "the identity is not allowed to " + act + " blobs; give it the role " +
				"Storage Blob Data " + role + " on the container. A new role takes effect after some minutes"},
		{Code: "AuthenticationFailed", Unless: !isSAS, Text: "the shared access signature has expired, is not valid yet, or belongs to another " +
			"account; check sas_token in {credentials}, and the clock of this machine"},
		{Code: "AuthenticationFailed", Unless: !isKey,
			Text: "the access key does not belong to this account; check access_key in {credentials}, and the clock of this machine"},
		{Code: "AuthenticationFailed", Text: "the identity's token is not accepted; check tenant_id and environment in {credentials}"},
		{Code: "InvalidAuthenticationInfo NoAuthenticationInformation",
			Text: "the identity's token is not accepted here; check tenant_id, environment and blob_endpoint in {credentials}"},
		{Code: "AuthorizationFailure", Text: "the account's network rules block this machine, or the credentials do not allow " +
			acting + " blobs; allow this machine's address, or run inside the network"},
		{Code: "AuthorizationSourceIPMismatch", Text: "the shared access signature is not valid for the address of this machine; create a " +
			"signature that allows this address"},
		{Code: "AuthorizationProtocolMismatch AuthorizationResourceTypeMismatch AuthorizationServiceMismatch",
			Text: "the shared access signature is for another purpose; create a signature for objects (srt=o) of the blob service " +
				"(ss=b), or for the container (sr=c)"},
		{Code: "KeyBasedAuthenticationNotPermitted", Text: "the account does not accept access keys, or signatures made with them; set " +
			"use_azuread_auth in {credentials}, and give the identity the role Storage Blob Data " + role},
		{Code: "PublicAccessNotPermitted", Text: "the account requires credentials; set them in {credentials}"},
		{Code: "BlobArchived BlobBeingRehydrated",
			Text: "the blob cannot be read, because it is in the archive tier; move the blob to another tier"},
		{Code: "BlobUsesCustomerSpecifiedEncryption BlobCustomerSpecifiedEncryptionMismatch",
			Text: "the blob is encrypted with a customer-provided key; set customer_provided_key in {credentials} to that key"},
		{Code: "BlobDoesNotUseCustomerSpecifiedEncryption",
			Text: "the blob is not encrypted with a customer-provided key; remove customer_provided_key"},
		{Code: "UnauthorizedBlobOverwrite",
			Text: "the shared access signature allows only new blobs; create a signature with the " + permission},
		{Code: "BlobImmutableDueToPolicy BlobImmutableDueToLegalHold", Text: Frozen},
		{Code: "InvalidQueryParameterValue InvalidUri InvalidResourceName OutOfRangeInput",
			Text: "the name of the container, the key or the version is not valid; correct it"},
		{Code: "ServerBusy OperationTimedOut InternalError", Text: "the service is overloaded or has failed; try again later"},
	}, 0, code, "").Text
}

// lookupRefused translates a resource manager error.
func (l *location) lookupRefused(status int) error {
	instead := l.itself()
	what := fmt.Sprintf("could not look up the access key of the storage account %s (%s)", l.account.name, web.Status(status))
	return answers.Find([]answers.Row{
		{Status: "403", Text: what + "; grant the identity the permission Microsoft.Storage/storageAccounts/listKeys/action, or " + instead},
		{Status: "401", Text: what + ": the identity's token is not accepted; check tenant_id and environment in {credentials}"},
		{Status: "404", Text: what + ": the subscription has no such resource group, or the group has no such account; check " +
			"subscription_id, resource_group_name and storage_account_name"},
		{Status: "409 423", Text: what + ", because a lock on the account or its group prevents it; remove the lock, or " + instead},
		{Text: what + "; " + instead},
	}, status, "", "").Err()
}

// itself returns advice for using an identity directly, without looking up a key.
func (l *location) itself() string {
	if l.writes {
		return "remove resource_group_name and give the identity the role Storage Blob Data Contributor"
	}
	return "remove resource_group_name and give the identity the role Storage Blob Data Reader"
}
