package azurerm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// lookupError is about looking up an access key.
type lookupError struct{ error }

func (e lookupError) Unwrap() error { return e.error }

var (
	errNoSAS = errors.New("a shared access signature for blobs is required, such as sv=...&sp=r&sig=..., as the " +
		"portal shows it; a URL or a connection string is not one")
	errEndpoint  = errors.New("an https URL is required; http is for this machine itself only")
	errNoStorage = web.Final("what answered is not Azure Storage; check the proxy and blob_endpoint")
	errBrokeOff  = errors.New(netfail.BrokeOff)
)

// explain says in our own words what went wrong.
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
	answer, answered := errors.AsType[*azcore.ResponseError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case answered && lookup:
		return l.lookupRefused(answer)
	case answered:
		return l.refused(answer)
	case isDNS && !lookup:
		return fmt.Errorf("%s: there is no account %s in this cloud, or only a private "+
			"network leads to it", azureauth.Reason(err), l.account.name)
	case errors.Is(err, errBrokeOff):
		return fmt.Errorf("%w (after %d tries); try again", errBrokeOff, maxTries)
	default:
		return fmt.Errorf("no usable answer from the %s: %s", asked, azureauth.Reason(err))
	}
}

// refused says what an error of the storage account means. The codes are those
// of a closed list; others are not shown.
// https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
func (l *location) refused(answer *azcore.ResponseError) error {
	code := ""
	if answer.RawResponse != nil { // and not from the body, which a proxy may have written
		code = answer.RawResponse.Header.Get("x-ms-error-code")
	}
	if code == "BlobNotFound" && answer.StatusCode == http.StatusNotFound {
		if l.version != "" {
			return fmt.Errorf("there is no version %s of the blob %q (404 BlobNotFound); it may have been deleted", l.version, l.blob)
		}
		detail := fmt.Sprintf("the container %s holds no blob %q (404 BlobNotFound)", l.container, l.blob)
		if strings.HasPrefix(l.blob, "/") {
			detail += "; the slash at its beginning is a part of the name"
		}
		return &source.MissingError{Detail: detail, CredentialsSent: true}
	}
	if advice := l.advice(code); advice != "" {
		return fmt.Errorf("the storage account %s refuses the read (%d %s): %s", l.account.name, answer.StatusCode, code, advice)
	}
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return fmt.Errorf("the storage account %s is asked too often or is overloaded (%s); "+
			"try again later", l.account.name, web.Status(answer.StatusCode))
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the storage account %s refuses the credentials (%s); check them, and whether they have "+
			"expired", l.account.name, web.Status(answer.StatusCode))
	}
	return web.Unexpected("the storage account "+l.account.name, answer.StatusCode)
}

const inBlock = " in the azurerm block of credentials, in the provider block"

func (l *location) advice(code string) string {
	switch code {
	case "ContainerNotFound":
		return "there is no container " + l.container + "; check container_name and storage_account_name"
	case "ContainerBeingDeleted", "ContainerDisabled":
		return "the container " + l.container + " is disabled or being deleted"
	case "ResourceNotFound", "AccountNotFound":
		return "there is no such account or container, or the credentials may not see it; check storage_account_name, " +
			"container_name and the credentials"
	case "AccountIsDisabled", "AccountBeingCreated":
		return "the account is disabled, or not yet there"
	case "AuthorizationPermissionMismatch", "InsufficientAccountPermissions":
		if l.grant.sas != "" {
			return "the shared access signature does not allow reading blobs; make one with the permission r for blobs"
		}
		return "the identity may not read blobs; give it the role Storage Blob Data Reader on the container; a new role needs some minutes"
	case "AuthenticationFailed":
		switch {
		case l.grant.sas != "":
			return "the shared access signature is expired, not yet valid, or not of this account; " +
				"check sas_token" + inBlock + ", and the clock of this machine"
		case l.grant.accessKey != "" || l.looksUp():
			return "the access key is not one of this account; check access_key" + inBlock + ", and the clock of this machine"
		}
		return "the token of the identity is not accepted; check tenant_id and environment" + inBlock
	case "InvalidAuthenticationInfo", "NoAuthenticationInformation":
		return "the token of the identity is not accepted here; check tenant_id, environment and blob_endpoint" + inBlock
	case "AuthorizationFailure":
		return "the network rules of the account do not let this machine in: allow its address, or run inside the network; or the " +
			"credentials do not allow reading blobs"
	case "AuthorizationSourceIPMismatch":
		return "the shared access signature is not for the address of this machine"
	case "AuthorizationProtocolMismatch", "AuthorizationResourceTypeMismatch", "AuthorizationServiceMismatch":
		return "the shared access signature is for something else; make one for objects (srt=o) of the blob service " +
			"(ss=b), or for the container (sr=c)"
	case "KeyBasedAuthenticationNotPermitted":
		return "the account accepts no access keys and no signatures made with them; set " +
			"use_azuread_auth" + inBlock + ", and give the identity the role Storage Blob Data Reader"
	case "PublicAccessNotPermitted":
		return "the account requires credentials"
	case "BlobArchived", "BlobBeingRehydrated":
		return "the blob is in the archive tier, from which nothing can be read; move it to another tier first"
	case "BlobUsesCustomerSpecifiedEncryption", "BlobCustomerSpecifiedEncryptionMismatch":
		return "the blob is encrypted with a key that its writer provides; set customer_provided_key" + inBlock + " to that key"
	case "BlobDoesNotUseCustomerSpecifiedEncryption":
		return "the blob is not encrypted with a key that its writer provides; leave customer_provided_key out"
	case "InvalidQueryParameterValue", "InvalidUri", "InvalidResourceName", "OutOfRangeInput":
		return "the name of the container, the key or the version cannot be right"
	case "ServerBusy", "OperationTimedOut", "InternalError":
		return "the service is overloaded or has failed; try again later"
	}
	return ""
}

// lookupRefused says what an error of the resource manager means.
func (l *location) lookupRefused(answer *azcore.ResponseError) error {
	const instead = "; or leave resource_group_name out, and the identity itself reads the blob (role Storage Blob Data Reader)"
	what := fmt.Sprintf("the access key of the storage account %s cannot be looked up (%s)", l.account.name, web.Status(answer.StatusCode))
	switch answer.StatusCode {
	case http.StatusForbidden:
		return fmt.Errorf("%s: the identity lacks the permission Microsoft.Storage/storageAccounts/listKeys/action%s", what, instead)
	case http.StatusUnauthorized:
		return fmt.Errorf("%s: the token of the identity is not accepted; check tenant_id and environment%s", what, inBlock)
	case http.StatusNotFound:
		return fmt.Errorf("%s: the subscription has no such resource group, or that has no such account; check "+
			"subscription_id, resource_group_name and storage_account_name", what)
	case http.StatusConflict, http.StatusLocked:
		return fmt.Errorf("%s: a lock on the account or its group does not allow it%s", what, instead)
	}
	return errors.New(what + instead)
}
