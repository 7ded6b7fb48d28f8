package gcs

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Backend returns the attributes of a backend block that names the bucket with the states. They are the arguments of
// both CLIs' gcs backends.
func Backend() attr.Table {
	return attr.Table{
		Name: "gcs", OtherNames: []string{"google"},
		Doc: "An object in a bucket of Google Cloud Storage, as the `gcs` backend keeps it: `<prefix>/default.tfstate`.",
		Attrs: slices.Concat(table().Without("generation", "credentials_name").Attrs, credentials().Without("name").Attrs, []attr.Attr{
			{Name: "kms_encryption_key", Type: cty.String, Env: []string{"GOOGLE_KMS_ENCRYPTION_KEY"}, Excludes: []string{"encryption_key"},
				Doc: "The key of Cloud KMS that Cloud Storage encrypts the state with: `projects/…/locations/…/keyRings/…/cryptoKeys/…`."},
		}),
	}
}

// Server gives a program read and write access to the bucket of a backend block.
type Server struct {
	Network
	Bucket string

	run      *run
	settings settings
}

// Network holds the connection settings for a server.
type Network struct {
	Patience web.Patience   // the limits for a request and its retries; the zero value means those of Google's own clients
	Roots    *x509.CertPool // nil means the system's certificates
}

// Connect returns the server for a backend block. Access tokens get the given scope. Connect makes no network
// requests, but reads the file of a customer-supplied key.
func Connect(v attr.Values, scope string, n Network) (*Server, error) {
	env := v.Environment()
	s, err := newSettings(source.Grant{Values: v, Found: true, Env: env}, env, false, scope)
	if err != nil {
		return nil, err
	}
	if _, err := s.keyHeader(); err != nil { // before a run begins
		return nil, fmt.Errorf("%s.%w", v.Address(), err)
	}
	n.Patience = cmp.Or(n.Patience, patience())
	return &Server{n, v.String("bucket"), &run{patience: n.Patience, roots: n.Roots}, s}, nil
}

// Client returns the client. It signs in on first use.
func (s *Server) Client(ctx context.Context) (*Client, error) { return s.at("", 0).client(ctx) }

// URL returns a JSON API URL for the bucket, followed by the given path elements, such as "o" and an object name.
func (s *Server) URL(q url.Values, names ...string) *url.URL {
	return s.settings.at(q, append([]string{"b", s.Bucket}, names...)...)
}

// UploadURL returns the JSON API URL for uploading objects.
func (s *Server) UploadURL(q url.Values) *url.URL {
	u := s.URL(q, "o")
	u.Path, u.RawPath = "/upload/storage/v1/b/"+s.Bucket+"/o", "" // bucket names need no escaping
	return u
}

// Endpoint returns the endpoint in the block, or "" for Google's own.
func (s *Server) Endpoint() string {
	if s.IsOwn() {
		return ""
	}
	return source.Public(s.settings.endpoint)
}

// IsOwn reports whether requests go to Google's servers or to a private endpoint for them.
func (s *Server) IsOwn() bool { return s.settings.isOwn() }

func (s settings) isOwn() bool {
	return s.endpoint.Scheme == "https" && strings.HasSuffix(strings.ToLower(s.endpoint.Hostname()), "."+strings.ToLower(s.universe))
}

// IsAt reports whether a gcs backend with this custom endpoint and universe sends its requests to the same server.
func (s *Server) IsAt(endpoint, universe string) bool {
	u, err := parseEndpoint(endpoint, cmp.Or(universe, googleauth.DefaultUniverse))
	if err != nil {
		return false
	}
	theirs, ours := settings{endpoint: u, universe: cmp.Or(universe, googleauth.DefaultUniverse)}, s.settings
	return theirs.isOwn() && ours.isOwn() && strings.EqualFold(theirs.universe, ours.universe) ||
		strings.EqualFold(theirs.at(nil).String(), ours.at(nil).String())
}

// Get returns the live generation of an object, which may have at most limit bytes. If keyless is true, the object is
// not encrypted with the customer-supplied key.
func (s *Server) Get(ctx context.Context, object string, limit int64, keyless bool) (*source.Snapshot, error) {
	l := s.at(object, limit)
	l.keyless = keyless
	return l.fetch(ctx)
}

// IsGeneration reports whether text can be a generation.
func IsGeneration(text string) bool { return generationNumber.MatchString(text) }

// GetPart returns a part of a generation of an object, with the status and the HTTP header Content-Range of the
// response. The argument part has the form of the HTTP header Range. An empty text means the whole object.
func (s *Server) GetPart(
	ctx context.Context, object, generation, part string, limit int64,
) (status int, sent string, data []byte, err error) {
	l := s.at(object, limit)
	l.generation, l.part = generation, part
	l.address = s.settings.address(s.Bucket, object, generation)
	snapshot, err := l.fetch(ctx)
	if err != nil {
		return 0, "", nil, err
	}
	return l.sent.status, l.sent.part, snapshot.Data, nil
}

func (s *Server) at(object string, limit int64) *location {
	return &location{
		run: s.run, settings: s.settings, bucket: s.Bucket, object: object, address: s.settings.address(s.Bucket, object, ""), limit: limit,
	}
}
