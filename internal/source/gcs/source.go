package gcs

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// run holds the clients shared by the sources of one configured provider.
type run struct {
	credentials source.Credentials
	patience    web.Patience
	roots       *x509.CertPool // nil means the system's certificates

	clients memo.Memo[string, *Client] // by the name of the credentials block
}

func start(s source.Settings) source.Open { return newRun(s).open }

func newRun(s source.Settings) *run { return &run{credentials: s.Credentials, patience: patience()} }

// patience returns limits like those of Google's own clients.
func patience() web.Patience {
	return web.Patience{Timeout: 2 * time.Minute, Tries: 4, WaitMin: time.Second, WaitMax: 30 * time.Second}
}

// location is a state in a bucket.
type location struct {
	*run
	settings       settings
	name           string // the name of the credentials block; may be empty
	bucket, object string
	generation     string // "" means the live generation
	address        *url.URL
	limit          int64
	keyless        bool   // whether the object is not encrypted with the customer-supplied key
	part           string // the part to read, as in the HTTP header Range; "" means the whole object

	sent struct { // the response
		status int
		part   string // as in the HTTP header Content-Range
	}
}

var (
	// https://cloud.google.com/storage/docs/buckets#naming
	bucketName = lazyregexp.New(`^[a-z0-9][a-z0-9._-]+[a-z0-9]$`)
	// generationNumber matches a positive number of up to 19 digits.
	generationNumber = lazyregexp.New(`^[1-9][0-9]{0,18}$`)
)

func checkBucket(name string) error {
	switch {
	case strings.Contains(name, "/"):
		return errors.New("the name of a bucket cannot contain a slash; remove gs://, and move the part after the name of the bucket to the " +
			"argument prefix")
	case len(name) > 222 || !bucketName.MatchString(name):
		return errors.New("this is not a valid bucket name; use 3 to 222 lowercase letters, digits, dashes, underscores and dots")
	}
	return nil
}

func (r *run) open(req source.Request) (source.Source, error) {
	l := &location{
		run: r, name: req.String("credentials_name"), bucket: req.String("bucket"), generation: req.String("generation"),
		object: ObjectName(req.String("prefix"), req.Workspace), limit: req.MaxSize,
	}
	if !IsObjectName(l.object) {
		return nil, req.Errorf("prefix", "prefix and workspace together are not a valid object name; use at most 1024 bytes of printable UTF-8")
	}
	var err error
	if l.settings, err = choose(r.credentials, l.name); err != nil {
		return nil, err
	}
	l.address = l.settings.address(l.bucket, l.object, l.generation)
	return l, nil
}

// ObjectName returns the name of the object in which the backend stores the state of a workspace.
func ObjectName(prefix, workspace string) string {
	return path.Join(strings.TrimLeft(prefix, "/"), cmp.Or(workspace, "default")+".tfstate")
}

// IsObjectName reports whether s is a valid object name.
// https://cloud.google.com/storage/docs/objects#naming
func IsObjectName(s string) bool {
	return len(s) <= 1024 && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func (l *location) String() string {
	s := "gs://" + l.bucket + "/" + l.object
	if l.generation != "" {
		s += "#" + l.generation // gcloud uses the same notation
	}
	if l.name != "" {
		s += fmt.Sprintf(" with the credentials %q", l.name)
	}
	return s
}

// Fetch reads the object. It repeats the request if that may help.
func (l *location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	snapshot, err := l.fetch(ctx)
	if err == nil && len(snapshot.Data) == 0 {
		return nil, &source.MissingError{Detail: "the object is empty", Listed: true}
	}
	return snapshot, err
}

// fetch reads the object, which may be empty.
func (l *location) fetch(ctx context.Context) (*source.Snapshot, error) {
	c, err := l.client(ctx)
	if err != nil {
		return nil, err
	}
	asks := web.Wire{
		Patience: l.patience, Transport: c.Transport, Authorize: c.Authorize, // no redirects: only the endpoint gets the token
	}
	header := http.Header{"Accept-Encoding": {"gzip"}, "User-Agent": {UserAgent}}
	if l.part != "" { // a part of a compressed response could not be decompressed
		header = http.Header{"Accept-Encoding": {"identity"}, "User-Agent": {UserAgent}, "Range": {l.part}}
	}
	if !l.keyless {
		maps.Copy(header, c.Key)
	}
	var snapshot *source.Snapshot
	err = asks.Get(ctx, l.address, header, func(resp *http.Response) (err error) {
		snapshot, err = l.receive(resp, c.Transport)
		return err
	})
	return snapshot, err
}

// UserAgent is the User-Agent header of all requests.
const UserAgent = "terraform-provider-statecrypt"

// client returns the client for the location's credentials. It signs in on first use.
func (l *location) client(ctx context.Context) (*Client, error) {
	c, err := l.clients.Do(ctx, l.name, func(ctx context.Context) (*Client, error) { return newClient(ctx, l.settings, l.roots) })
	if err != nil {
		return nil, l.settings.blame(err)
	}
	return c, nil
}

// receive returns the object in a successful response.
func (l *location) receive(resp *http.Response, transport *http.Transport) (*source.Snapshot, error) {
	isPart := l.part != "" && resp.StatusCode == http.StatusPartialContent
	if resp.StatusCode != http.StatusOK && !isPart {
		return nil, Object{l.bucket, l.object, l.generation}.Explain(resp, "reading the object", "storage.objects.get on the bucket or the "+
			"object to the account that reads. Without storage.objects.list, the account gets the same answer for an object that does "+
			"not exist")
	}
	generation := resp.Header.Get("X-Goog-Generation")
	if !generationNumber.MatchString(generation) {
		return nil, web.Final("the answer does not come from Cloud Storage: it does not contain the object's generation; check " +
			"storage_custom_endpoint in {credentials}")
	}
	if l.generation != "" && generation != l.generation {
		return nil, web.Final("Cloud Storage returned a generation that was not requested")
	}
	l.sent.status, l.sent.part = resp.StatusCode, resp.Header.Get("Content-Range")
	data, err := readBody(resp, l.limit)
	if err != nil {
		transport.CloseIdleConnections() // otherwise the rest of a longer response could be mistaken for the next one
		return nil, err
	}
	snapshot := &source.Snapshot{Data: data, Revision: generation}
	if netfail.IsExposed(l.address, nil) {
		snapshot.Warnings = []source.Warning{web.Unencrypted("storage_custom_endpoint begins with http")}
	}
	return snapshot, nil
}

// Client holds the tokens and connections shared by all requests with one credentials block.
type Client struct {
	Transport *http.Transport
	Key       http.Header // the request headers for objects encrypted with a customer-supplied key

	bearer *googleauth.Bearer
}

// newClient signs in and returns a client. If roots is nil, the client trusts the system's
// certificates.
func newClient(ctx context.Context, s settings, roots *x509.CertPool) (*Client, error) {
	key, err := s.keyHeader()
	if err != nil {
		return nil, err
	}
	bearer, err := s.access.Open(ctx)
	if err != nil {
		return nil, err
	}
	transport := web.Transport(s.access.World, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, web.Proxies(s.lookup))
	return &Client{transport, key, bearer}, nil
}

// Authorize adds the headers with the access token to req.
func (c *Client) Authorize(req *http.Request) error {
	header, err := c.bearer.Header(req.Context())
	if err != nil {
		return err
	}
	maps.Copy(req.Header, header)
	return nil
}

// readBody returns an object's content, which may have at most limit bytes, and verifies its checksum.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	want, checked, err := checksum(resp.Header)
	if err != nil {
		return nil, err
	}
	checked = checked && resp.StatusCode == http.StatusOK // the checksum of a part is that of the whole object
	sent := crc32.New(castagnoli())
	data, err := web.ReadBody(resp, limit, sent)
	if err != nil {
		return nil, err
	}
	// The checksum covers the stored object. An object stored with gzip is sent as it is. Any other object may have
	// been compressed for the transfer.
	if checked && want != sent.Sum32() && want != crc32.Checksum(data, castagnoli()) {
		return nil, web.Again("the answer was damaged in transit: its checksum does not match")
	}
	return data, nil
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// checksum returns the CRC32C checksum in Cloud Storage's headers, and whether there is one.
// https://cloud.google.com/storage/docs/xml-api/reference-headers#xgooghash
func checksum(header http.Header) (sum uint32, found bool, err error) {
	for _, line := range header.Values("X-Goog-Hash") {
		for part := range strings.SplitSeq(line, ",") {
			text, ok := strings.CutPrefix(strings.TrimSpace(part), "crc32c=")
			if !ok {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil || len(b) != crc32.Size {
				return 0, false, web.Again("the answer was damaged in transit: its checksum cannot be read")
			}
			return binary.BigEndian.Uint32(b), true, nil
		}
	}
	return 0, false, nil
}
