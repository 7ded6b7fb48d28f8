package object

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Vendor describes one vendor's stores and their source. Its table must have the attributes bucket,
// version_id and credentials_name. The table of its credentials must have the attribute name.
type Vendor struct {
	attr.Table
	Credentials attr.Table
	Words       Words

	// Locate returns the place of the object that a request asks for, with a function that creates a client
	// for it. It does no I/O.
	Locate func(source.Request, source.Grant, Network) (Location, error)
}

// Location is the place of an object.
type Location struct {
	Object
	Of string // text after the bucket in messages, such as ` of the namespace "acme"`

	// Connect returns a client. Locations with the same credentials block, Region and Host share the client.
	Connect      func(context.Context) (*s3.Client, error)
	Region, Host string

	Unverified bool             // whether any certificate is accepted
	Exposed    *netfail.Exposed // services that were called without encryption; see [Network]
}

// Kind returns the vendor's source.
func (v Vendor) Kind() source.Kind { return v.KindOver(Network{}) }

// KindOver works like [Vendor.Kind], with other connection settings. If n.Proxy is nil, the source uses the
// environment's proxies.
func (v Vendor) KindOver(n Network) source.Kind {
	return source.Kind{Table: v.Table, Credentials: v.Credentials, Workspaces: true, Begin: func(s source.Settings) source.Open {
		n := n
		if n.Env = s.LookupEnv; n.Proxy == nil {
			n.Proxy = web.Proxies(n.Env).ProxyFunc()
		}
		r := &run{Vendor: v, credentials: s.Credentials, network: n}
		return r.open
	}}
}

// NoVersion is the error message for a text that [IsVersion] rejects.
const NoVersion = "this is not a valid version ID; copy the whole ID"

// IsVersion reports whether text can be a version ID.
func IsVersion(text string) bool { return len(text) <= source.MaxRevision }

// run holds the clients, with identities and connections, that the sources of one configured provider share.
type run struct {
	Vendor
	credentials source.Credentials
	network     Network

	clients memo.Memo[clientKey, *s3.Client]
	exposed sync.Map // *netfail.Exposed by credentials_name
}

type clientKey struct{ credentials, region, host string }

func (r *run) open(req source.Request) (source.Source, error) {
	name := req.String("credentials_name")
	grant, err := r.credentials.Named("credentials_name", name)
	if err != nil {
		return nil, err
	}
	network := r.network
	network.Exposed = r.exposedOf(name)
	l, err := r.Locate(req, grant, network)
	if err != nil {
		return nil, err
	}
	l.Version, l.Exposed = req.String("version_id"), network.Exposed
	return &state{run: r, Location: l, key: clientKey{name, l.Region, l.Host}, limit: req.MaxSize, blame: grant.Blame}, nil
}

// exposedOf returns the record of services that were called without encryption for a credentials block. There
// is one record per block, because all reads with that block share its clients.
func (r *run) exposedOf(name string) *netfail.Exposed {
	kept, _ := r.exposed.LoadOrStore(name, new(netfail.Exposed))
	exposed, _ := kept.(*netfail.Exposed) // always true
	return exposed
}

// state is the source of a state that is an object in a bucket.
type state struct {
	*run
	Location
	key   clientKey
	limit int64
	blame func(error) error // adds the address of the credentials block to an error
}

func (s *state) String() string {
	text := fmt.Sprintf("object %q in the %s bucket %q%s", s.Key, s.Words.Short, s.Bucket, s.Of)
	if s.Version != "" {
		text += fmt.Sprintf(", version %q", s.Version)
	}
	return text
}

// Fetch reads the object.
func (s *state) Fetch(ctx context.Context) (*source.Snapshot, error) {
	client, err := s.clients.Do(ctx, s.key, s.Connect)
	if err == nil {
		// Expired keys are renewed here, because a failure to renew them is not a store error.
		_, err = client.Options().Credentials.Retrieve(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		err = s.blame(err)
		reason := errors.New(err.Error()) // the errors that err wraps may repeat responses from servers and programs
		for _, f := range slices.Backward(fault.In(err)) {
			reason = fault.Known(reason, f)
		}
		return nil, reason
	}
	warnings, err := s.CheckEncryption(client, s.Words)
	if err != nil {
		return nil, err
	}
	snapshot, err := Store{Client: client, Words: s.Words, Patience: s.network.Patience}.Read(ctx, s.Object, s.limit)
	if err == nil {
		snapshot.Warnings = warnings
	}
	return snapshot, err
}

// CheckEncryption returns an error if a customer's key would be sent without TLS, which S3 also refuses. It
// returns warnings about unencrypted or unverified connections, both to the store and to services that
// returned the credentials.
func (l Location) CheckEncryption(client *s3.Client, words Words) (warnings []source.Warning, err error) {
	options := client.Options()
	endpoint, err := url.Parse(aws.ToString(options.BaseEndpoint)) // "" for AWS's own endpoint
	if err != nil {
		return nil, errors.New("the endpoint is not a URL; correct it")
	}
	if !options.UsePathStyle && !IsAddress(endpoint) {
		endpoint.Host = l.Bucket + "." + endpoint.Host
	}
	switch {
	case endpoint.Scheme == "http" && l.CustomerKey != nil:
		return nil, fmt.Errorf("%s is sent only over TLS, but the endpoint begins with http://; use https://", words.CustomerKey)
	case netfail.IsExposed(endpoint, nil):
		warnings = append(warnings,
			netfail.Unencrypted("The state was", "the endpoint begins with http", "replace it, and read its unencrypted parts"))
	case l.Unverified:
		warnings = append(warnings, web.Unverified("the server", "insecure is set"))
	}
	if w := l.Exposed.Warning(); w != (netfail.Warning{}) {
		warnings = append(warnings, w)
	}
	return warnings, nil
}

// KeyAttr returns the attribute for the name of the state, as in the oss and cos backends.
func KeyAttr() attr.Attr {
	return attr.Attr{
		Name: "key", Type: cty.String, Default: cty.StringVal("terraform.tfstate"),
		Check: attr.Is(func(key string) bool { return strings.Trim(key, "/") == key }, "the value begins or ends with a slash; remove the slash"),
		Doc:   "The path of the state below `prefix`. Defaults to `terraform.tfstate`.",
	}
}

// Prefix returns the check for the attribute that names the folder of the states, as in the oss and cos
// backends.
func Prefix() attr.Check {
	return attr.Is(func(prefix string) bool { return !strings.HasPrefix(prefix, "/") && !strings.HasPrefix(prefix, "./") },
		"the value begins with / or ./; remove that beginning")
}

// VersionAttr returns the attribute that selects an object version.
func VersionAttr() attr.Attr {
	return attr.Attr{
		Name: "version_id", Type: cty.String, Form: attr.Version, Check: attr.Is(IsVersion, NoVersion),
		Doc: "The version of the object to read, in a bucket that keeps versions. Defaults to the newest one. It belongs to the object " +
			"of one workspace.",
	}
}
