package s3

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

// Backend returns the table for a block that names the bucket in which a program keeps a state. It has the
// arguments of both CLIs' s3 backends.
func Backend() attr.Table {
	const both = " Both CLIs send it with the lock as well."
	t := attr.Table{
		Name: "s3", OtherNames: []string{"aws", "minio"},
		Doc: "An object in a bucket of Amazon S3 or a compatible store, as the `s3` backend keeps it.",
	}
	for _, a := range slices.Concat(table().Without("version_id", "credentials_name").Attrs, credentials().Without("name").Attrs) {
		switch a.Name {
		case "region": // the rule that [locate] applies to the region of a data source
			a.Harmless, a.HarmlessIf = awsauth.HarmlessRegion, awsauth.IsCommercial
		case "endpoints":
			a.Attrs = append(slices.Clone(a.Attrs), attr.Attr{Name: "dynamodb", Type: cty.String,
				Env:   []string{"AWS_ENDPOINT_URL_DYNAMODB", "AWS_DYNAMODB_ENDPOINT", "AWS_ENDPOINT_URL"},
				Check: attr.Is(recognize.IsEndpoint, noEndpoint), Doc: "The URL of DynamoDB."})
		}
		t.Attrs = append(t.Attrs, a)
	}
	t.Attrs = append(t.Attrs, []attr.Attr{
		{Name: "encrypt", Type: cty.Bool, Doc: "Whether the store encrypts the objects, too: with its own key, `kms_key_id` or " +
			"`sse_customer_key`." + both},
		{Name: "kms_key_id", Type: cty.String, Excludes: []string{customerKeyAttr}, Doc: "The AWS KMS key that the store encrypts the objects " +
			"with."},
		{Name: "acl", Type: cty.String, Doc: "The canned ACL of the objects." + both},
		{Name: "state_tags", Type: cty.Map(cty.String), Doc: "Tags of the state."},
		{Name: "lock_tags", Type: cty.Map(cty.String), Doc: "Tags of the lock."},
		{Name: "use_lockfile", Type: cty.Bool, Doc: "Lock with the object `<key>.tflock`. Defaults to `true` without `dynamodb_table`, and " +
			"otherwise to `false`."},
		{Name: "dynamodb_table", Type: cty.String, Doc: "The DynamoDB table with the lock and the digest of the state."},
		{Name: "locks", Type: cty.String, Check: attr.Is(harmless.OneOf("unproven"), `the only possible value is "unproven"`),
			Doc: "`unproven` allows a store on which two runs may get the lock at once."},
	}...)
	return t
}

// Server is the place where a backend block keeps a state, for a program that writes to it.
type Server struct {
	object.Location
	Words object.Words

	access access
}

// Connect returns the place of a backend block. It does not contact the server.
func Connect(v attr.Values, n object.Network) (*Server, error) {
	n.Env, n.Writes, n.Exposed = v.Environment(), true, new(netfail.Exposed)
	g := source.Grant{Values: v, Found: true, Env: n.Env}
	l, err := locate(source.Request{Values: v, Workspace: "default"}, g, n)
	if err != nil {
		return nil, err
	}
	a, err := newAccess(g, n, l.Region)
	if err != nil {
		return nil, err
	}
	l.Exposed = n.Exposed
	return &Server{Location: l, Words: Vendor().Words, access: a}, nil
}

// Endpoint returns the store's endpoint in the block, or an empty string for AWS's own.
func (s *Server) Endpoint() string { return s.access.endpoint }

// IsAWS reports whether a client sends its requests to AWS itself.
func IsAWS(client *awss3.Client) bool {
	endpoint := client.Options().BaseEndpoint
	if endpoint == nil {
		return true
	}
	u, err := url.Parse(*endpoint)
	return err == nil && u.Scheme == "https" && ofS3.MatchString(u.Hostname())
}

// ofS3 matches the hosts of S3 itself. It does not match the servers of AWS customers, whose names are in the
// same domains.
var ofS3 = lazyregexp.New(`(?i)^(.+\.)?s3(-fips|-accelerate|-[a-z]{2}(-[a-z]+)+-\d)?\.(dualstack\.)?([a-z]{2}(-[a-z]+)+-\d\.)?(vpce\.)?` +
	`(amazonaws\.com|amazonaws\.com\.cn|api\.aws)$`)

// DynamoDB returns the URL of DynamoDB, and a transport for requests to it.
func (s *Server) DynamoDB(ctx context.Context) (endpoint string, transport *http.Transport, err error) {
	endpoints, _ := s.access.Block("endpoints")
	if endpoint = recognize.WithScheme(endpoints.String("dynamodb")); endpoint == "" {
		endpoint, err = s.access.settings.EndpointOf(ctx, "DynamoDB", "dynamodb")
	}
	if err == nil && recognize.Server(endpoint) == nil {
		err = errors.New("the endpoint of DynamoDB: " + noEndpoint)
	}
	if err == nil {
		transport, err = s.access.settings.Transport()
	}
	return strings.TrimSuffix(endpoint, "/"), transport, err
}
