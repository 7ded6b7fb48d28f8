package azurerm

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const (
	defaultTimeout = 300 // seconds, as in the backend
	maxTries       = 3   // attempts if a download is cut off; the SDK counts other retries itself
)

// run holds the clouds, identities and access keys that the sources of one configured provider share. Clouds
// and identities are stored by the name of their credentials block.
type run struct {
	credentials source.Credentials
	transport   policy.Transporter // sends all requests
	retryDelay  time.Duration      // the wait before the second attempt; 0 leaves it to the SDK
	policies    []policy.Policy    // applied to each request before it is signed
	writes      bool               // whether the program also writes, which changes error messages

	clouds     memo.Memo[string, azureauth.Cloud]
	identities memo.Memo[string, azcore.TokenCredential]
	keys       memo.Memo[account, string]
}

func start(s source.Settings) source.Open { return newRun(s).open }

func newRun(s source.Settings) *run {
	return &run{credentials: s.Credentials, transport: azureauth.HTTPClient(s.World())}
}

// These rules for names come from Azure:
// https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
var (
	accountName   = lazyregexp.New(`^[0-9a-z]{3,24}$`) // the name becomes part of the host that gets tokens and signatures
	containerName = lazyregexp.New(`^[0-9a-z](-?[0-9a-z])+$`)
	subscription  = lazyregexp.New(`^[0-9A-Za-z-]+$`)
	versionID     = lazyregexp.New(`^[0-9A-Za-z:.-]+$`)
)

// isGroup reports whether s is a valid resource group name.
func isGroup(s string) bool {
	return utf8.RuneCountInString(s) <= 90 && !strings.HasSuffix(s, ".") && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_().-", r)
	})
}

func isVersion(s string) bool { return len(s) <= 64 && versionID.MatchString(s) }

func checkAccount(name string) error {
	switch {
	case strings.Contains(name, "."):
		return errors.New("this is the host of the storage account, not its name; remove the dot and everything after it")
	case !accountName.MatchString(name):
		return errors.New("this is not the name of a storage account; use 3 to 24 lowercase letters and digits")
	}
	return nil
}

func checkContainer(name string) error {
	switch {
	case strings.Contains(name, "/"):
		return errors.New("the name of a container cannot contain a slash; move the part after the slash to the beginning of the argument key")
	case len(name) < 3 || len(name) > 63 || !containerName.MatchString(name):
		return errors.New("this is not the name of a container; use 3 to 63 lowercase letters, digits and single hyphens, with a letter or a " +
			"digit at both ends")
	}
	return nil
}

func (r *run) open(req source.Request) (source.Source, error) {
	name := req.String("credentials_name")
	l, err := r.locate(req, name, func() (grant, error) { return choose(r.credentials, name) })
	if err != nil {
		return nil, err
	}
	l.version = req.String("version_id")
	return l, nil
}

// locate returns the blob of a request, with the credentials that choose returns. name is the name of those
// credentials.
func (r *run) locate(req source.Request, name string, choose func() (grant, error)) (*location, error) {
	l := &location{
		run: r, credentials: name, container: req.String("container_name"),
		account: account{name, req.String("subscription_id"), req.String("resource_group_name"), req.String("storage_account_name")},
		blob:    req.String("key"), limit: req.MaxSize, timeout: time.Duration(req.Int("timeout_seconds")) * time.Second,
	}
	w := req.OtherWorkspace()
	if w != "" {
		l.blob += "env:" + w
	}
	switch err := CheckBlobName(l.blob); {
	case req.String("key") != "" && err == nil:
	case w == "":
		return nil, req.Errorf("key", "%w", err)
	default:
		return nil, req.Errorf("key", "for this workspace, %w", err)
	}
	var err error
	if l.grant, err = choose(); err != nil {
		return nil, err
	}
	if e := l.grant.endpoint; e != nil && !serves(e, l.account.name) {
		return nil, req.Errorf("storage_account_name", "the endpoint in the credentials, %s, does not belong to the storage account %s; "+
			"correct blob_endpoint or storage_account_name", e,
			l.account.name)
	}
	return l, l.checkLookup(req)
}

// checkLookup returns an error if a setting is missing that is needed to look up the access key.
func (l *location) checkLookup(req source.Request) error {
	if !l.looksUp() {
		return nil
	}
	l.account.subscription = cmp.Or(l.account.subscription, l.grant.String("subscription_id"))
	switch {
	case l.account.subscription == "" && l.grant.access.UsesCLI(): // the CLI knows the subscription
	case l.account.subscription == "":
		return req.Errorf("subscription_id", "the access key cannot be looked up, because resource_group_name is set, but subscription_id is "+
			"not; set subscription_id, or %s", l.itself())
	case len(l.account.subscription) > 64 || !subscription.MatchString(l.account.subscription):
		return req.Errorf("subscription_id", "this is not the ID of a subscription; use only letters, digits and hyphens")
	}
	return nil
}

// CheckBlobName returns an error if name is not a valid blob name, or if the service or a proxy might read it as
// another path.
func CheckBlobName(name string) error {
	parts := strings.Split(name, "/")
	if name == "" || slices.Contains(parts, ".") || slices.Contains(parts, "..") || len(name) > 1024 || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.Contains(name, `\`) {
		return fmt.Errorf("%s is not a valid blob name; use at most 1024 characters, without control characters and backslashes. The "+
			"parts . and .. between slashes are not allowed", outside.Quoted(name, 100))
	}
	return nil
}

// location is one blob.
type location struct {
	*run
	credentials              string // the name of the credentials block; may be empty
	grant                    grant
	account                  account
	container, blob, version string
	limit                    int64
	timeout                  time.Duration
}

func (l *location) String() string {
	of := ""
	if l.version != "" {
		of = "version " + l.version + " of "
	}
	return fmt.Sprintf("%sblob %q in the container %s of the storage account %s", of, l.blob, l.container, l.account.name)
}

// Fetch reads the blob.
func (l *location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	snapshot, err := l.fetch(limited)
	if err == nil {
		err = limited.Err() // while net/http closes the connection, it may mistake late bytes for a response
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, l.explain(limited, err)
	}
	return snapshot, nil
}

// fetch downloads the blob.
func (l *location) fetch(ctx context.Context) (*source.Snapshot, error) {
	d, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	if l.version != "" {
		query.Set("versionid", l.version)
	}
	client, err := d.blob(l.blob, query)
	if err != nil {
		return nil, err
	}
	data, answer, err := l.download(ctx, client)
	if err != nil {
		return nil, err
	}
	return l.snapshot(data, answer)
}

// snapshot returns the state in a downloaded blob.
func (l *location) snapshot(data []byte, answer blob.DownloadStreamResponse) (*source.Snapshot, error) {
	lock := lockOf(answer.DownloadResponse)
	if len(data) == 0 { // the backend locks a blob before it has written anything to it
		detail := fmt.Sprintf("the blob %q is empty", l.blob)
		if lock != nil {
			detail += " and locked: its first state has not been written yet"
		}
		return nil, &source.MissingError{Detail: detail, Listed: true, Lock: lock}
	}
	return &source.Snapshot{Data: data, Revision: revision(answer.VersionID, answer.ETag), Lock: lock}, nil
}

// download returns the content of a blob and the response with its properties. If the download is cut off, it starts
// again, up to maxTries attempts in total.
func (l *location) download(ctx context.Context, client *blockblob.Client) (data []byte, answer blob.DownloadStreamResponse, err error) {
	_, data, answer, err = l.downloadPart(ctx, client, blob.DownloadStreamOptions{})
	return data, answer, err
}

func (l *location) downloadPart(
	ctx context.Context, client *blockblob.Client, options blob.DownloadStreamOptions,
) (status int, data []byte, answer blob.DownloadStreamResponse, err error) {
	options.CPKInfo = l.grant.customerKey
	for try := 1; ; try++ {
		status, data, answer, err = l.downloadOnce(ctx, client, &options)
		if !errors.Is(err, errBrokeOff) || try == maxTries || ctx.Err() != nil {
			return status, data, answer, err
		}
	}
}

func (l *location) downloadOnce(
	ctx context.Context, client *blockblob.Client, options *blob.DownloadStreamOptions,
) (status int, data []byte, answer blob.DownloadStreamResponse, err error) {
	var raw *http.Response
	answer, err = client.DownloadStream(policy.WithCaptureResponse(ctx, &raw), options)
	if err != nil {
		return 0, nil, answer, err
	}
	if raw == nil || answer.Body == nil || answer.BlobType == nil {
		return 0, nil, answer, errNoStorage // every Azure Storage response has a blob type
	}
	defer answer.Body.Close()
	data, err = web.Decode(answer.Body, raw.Header, raw.ContentLength, l.limit)
	if err != nil && web.Own(err) == nil {
		err = fmt.Errorf("%w: %w", errBrokeOff, err)
	}
	return raw.StatusCode, data, answer, err
}

const maxRevision = 200 // maximum length of a revision, in bytes

func revision(version *string, etag *azcore.ETag) string {
	switch {
	case version != nil && *version != "":
		return outside.Value(*version, maxRevision)
	case etag != nil:
		return outside.Value(string(*etag), maxRevision)
	}
	return ""
}

// url returns the URL of the container.
func (l *location) url(c azureauth.Cloud) (string, error) {
	base := l.grant.endpoint
	if base == nil {
		if c.StorageSuffix == "" {
			return "", web.Final("metadata_host: the answer does not contain the address of storage accounts; set blob_endpoint")
		}
		base = &url.URL{Scheme: "https", Host: l.account.name + ".blob." + c.StorageSuffix}
	}
	return base.Scheme + "://" + base.Host + strings.TrimSuffix(base.Path, "/") + "/" + l.container, nil
}

const lockMetadata = "terraformlockid"

// lockOf returns the backend's lock, which consists of a lease and a description in the metadata. It returns
// nil if there is no lease, because the description then remains from an earlier lock.
func lockOf(answer blob.DownloadResponse) *source.Lock {
	if answer.LeaseStatus == nil || string(*answer.LeaseStatus) != "locked" {
		return nil
	}
	for name, value := range answer.Metadata {
		if strings.EqualFold(name, lockMetadata) && value != nil {
			data, _ := base64.StdEncoding.DecodeString(*value) // the state is locked even if the description is unreadable
			lock, _ := source.ParseLock(data)
			return lock
		}
	}
	return &source.Lock{} // another program's lease
}
