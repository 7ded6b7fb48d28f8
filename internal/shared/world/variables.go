package world

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Client is a library, or part of one, that cannot be prevented from reading environment variables.
type Client string

// The clients that environment variables control.
const (
	AzureSignIn      Client = "the sign-in of Azure's client"
	AzureIdentity    Client = "the managed identities of Azure's client"
	GoogleDetection  Client = "the detection of Google's credentials"
	GoogleBoundaries Client = "Google's trust boundaries"
	Authorities      Client = "Go's verification of certificates"
)

// Variables is a set of environment variables that control a client.
type Variables struct {
	Names  string // names of variables, separated by spaces
	Client Client
	Except string // harmless values, separated by spaces
	Why    string
	Error  string // the format of the error message after [World.Reason]; its argument is the variable's name
}

const (
	ofAzure  = "the Azure client would read the variable %s; unset it, or choose another way to authenticate"
	ofGoogle = "the Google client would read the variable %s; unset it, or set credentials or access_token"
)

// Steering returns the variables that must not be set if a client would use them although its World does not
// contain them. See [World.Refuse].
func Steering() []Variables {
	return []Variables{
		{Client: AzureSignIn, Error: ofAzure, Names: "AZURE_REGIONAL_AUTHORITY_NAME MSAL_FORCE_REGION",
			Why: "they choose the host that gets the secret"},
		{Client: AzureIdentity, Error: ofAzure, Names: "IDENTITY_ENDPOINT IDENTITY_HEADER IDENTITY_SERVER_THUMBPRINT IMDS_ENDPOINT " +
			"MSI_ENDPOINT MSI_SECRET DEFAULT_IDENTITY_CLIENT_ID",
			Why: "they say which managed identities there are, and who gives their tokens; on a virtual machine none of them is set"},
		{Client: GoogleDetection, Error: ofGoogle, Names: "GOOGLE_APPLICATION_CREDENTIALS GCE_METADATA_HOST",
			Why: "they say who gives the credentials"},
		{Client: GoogleBoundaries, Error: ofGoogle, Names: "GOOGLE_AUTH_TRUST_BOUNDARY_ENABLED",
			Why: "it has credentials sent to another service"},
		{Client: Authorities, Names: "SSL_CERT_FILE SSL_CERT_DIR",
			Error: "certificates would be verified with the authorities in the variable %s; unset it",
			Except: "/etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem " +
				"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem /etc/pki/tls/cacert.pem /etc/ssl/certs /etc/pki/tls/certs",
			Why: "they add authorities, unless they name those of the system; Go reads them once for all connections of a process"},
	}
}

// Refuse returns an error if a variable is set that c would use although w does not contain it. It follows
// the rules of [Decide].
func (w World) Refuse(c Client) error {
	for _, some := range Steering() {
		if some.Client != c {
			continue
		}
		for name := range strings.FieldsSeq(some.Names) {
			_, known := w.Lookup(name)
			value := os.Getenv(name)
			followed := Attribute{IsFollowed: true, IsHarmless: value == "" || slices.Contains(strings.Fields(some.Except), value)}
			if Decide(name, followed, Beside{Withholds: !known}).Answer == Refused {
				return fmt.Errorf("%s, but "+some.Error, w.Reason(), name)
			}
		}
	}
	return nil
}
