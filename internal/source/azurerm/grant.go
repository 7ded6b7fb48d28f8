package azurerm

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// grant holds the values of one credentials block, with missing values taken from the environment.
type grant struct {
	source.Grant
	accessKey, sas string // at most one is set
	customerKey    *blob.CPKInfo
	endpoint       *url.URL // nil means Azure's own endpoint
	access         azureauth.Access
}

// expired returns the expiry time of a shared access signature that expired more than clockSkew ago. For any other
// signature, it returns an empty string. The expiry may be just a date.
func expired(sas string) string {
	values, err := url.ParseQuery(sas)
	if err != nil {
		return ""
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z", time.DateOnly} {
		if end, err := time.Parse(layout, values.Get("se")); err == nil && time.Now().After(end.Add(clockSkew)) {
			return values.Get("se")
		}
	}
	return ""
}

// clockSkew is how far this machine's clock is assumed to be wrong at most.
const clockSkew = 24 * time.Hour

// choose returns the grant for the block called name.
func choose(credentials source.Credentials, name string) (grant, error) {
	v, err := credentials.Named("credentials_name", name)
	if err != nil {
		return grant{}, err
	}
	return newGrant(v, credentials.Env)
}

// newGrant returns a grant with the values of a block.
func newGrant(v source.Grant, env attr.LookupEnv) (g grant, err error) {
	g = grant{Grant: v, accessKey: v.String("access_key")}
	if g.accessKey == "" {
		g.sas = v.String("sas_token")
	}
	if g.sas, err = parseSAS(g.sas); err != nil {
		return grant{}, v.Errorf("sas_token", "%w", err)
	}
	if end := expired(g.sas); end != "" {
		return grant{}, v.Errorf("sas_token", "this shared access signature expired at %s; create a new one", outside.Quoted(end, 40))
	}
	g.customerKey = customerKey(v.String("customer_provided_key"))
	if text := v.String("blob_endpoint"); text != "" {
		if g.endpoint, err = url.Parse(text); err != nil { // the attribute's Check has found no error
			return grant{}, err
		}
		if g.endpoint.Scheme == "http" && g.accessKey == "" && g.sas == "" {
			return grant{}, v.Errorf("blob_endpoint", "the token of the identity would be sent without TLS; use https, or set access_key or "+
				"sas_token")
		}
	}
	if g.access, err = azureauth.New(v.Values, world.For(env, false)); err != nil {
		return grant{}, err
	}
	g.access.Pipeline = v.String("ado_service_connection_id")
	return g, nil
}

// parseSAS returns a shared access signature in the form that is appended to a URL.
func parseSAS(text string) (string, error) {
	text = strings.TrimPrefix(text, "?")
	if text == "" {
		return "", nil
	}
	q, err := url.ParseQuery(text)
	if err != nil || q.Get("sig") == "" || strings.ContainsAny(text, " #\r\n\t") || strings.Contains(text, "://") ||
		slices.ContainsFunc([]string{"versionid", "snapshot", "comp", "restype"}, q.Has) {
		return "", errNoSAS
	}
	return text, nil
}

func checkAccessKey(text string) error {
	if strings.Contains(text, "AccountKey=") {
		return errors.New("this is a connection string; use only the part after AccountKey=")
	}
	if _, err := base64.StdEncoding.DecodeString(text); err != nil {
		return errors.New("this is not standard base64, but access keys are; copy the whole key")
	}
	return nil
}

func customerKey(text string) *blob.CPKInfo {
	key := source.CustomerKey(text)
	if key == nil {
		return nil
	}
	sum := sha256.Sum256(key)
	return &blob.CPKInfo{
		EncryptionKey: &text, EncryptionKeySHA256: to.Ptr(base64.StdEncoding.EncodeToString(sum[:])),
		EncryptionAlgorithm: to.Ptr(blob.EncryptionAlgorithmTypeAES256),
	}
}

func checkEndpoint(text string) error {
	u, err := source.ParseBase(text)
	if err == nil && u.Scheme != "https" && (u.Scheme != "http" || netfail.IsExposed(u, nil)) {
		err = errEndpoint
	}
	return err
}

// serves reports whether an endpoint belongs to an account. The account name is either the first label of the host or
// the path, as in https://127.0.0.1:10000/devstoreaccount1.
func serves(endpoint *url.URL, account string) bool {
	first, _, _ := strings.Cut(endpoint.Hostname(), ".")
	path := strings.Trim(endpoint.Path, "/")
	return path == account || path == "" && strings.EqualFold(first, account)
}
