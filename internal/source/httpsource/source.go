package httpsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/net/http/httpproxy"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// run holds the credentials and connections that the sources of one configured provider share.
type run struct {
	credentials source.Credentials
	proxies     *httpproxy.Config
	world       world.World
	accesses    memo.Memo[accessKey, *Access]
}

// accessKey identifies the credentials of a grant. url is the url of the block. If it is empty, there is no
// block, and environment tells whether variables are used.
type accessKey struct {
	url         string
	environment bool
}

func start(s source.Settings) source.Open {
	r := &run{credentials: s.Credentials, proxies: web.Proxies(s.LookupEnv), world: s.World()}
	return r.open
}

func (r *run) open(req source.Request) (source.Source, error) {
	address, err := url.Parse(req.String("address")) // the attribute's Check has found no error
	if err != nil {
		return nil, err
	}
	g, err := r.credentials.For(address)
	if err != nil {
		return nil, err
	}
	if _, err := r.access(context.Background(), g); err != nil { // invalid settings are reported before anything is sent
		return nil, err
	}
	patience, err := newPatience(req, g)
	if err != nil {
		return nil, err
	}
	return &location{run: r, address: address, limit: req.MaxSize, patience: patience}, nil
}

var withoutScheme = lazyregexp.New(`^([A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+:[0-9]+)(:[0-9]+)?(/|$)`)

const anAddress = "https://state.example.com/db"

func checkAddress(text string) error {
	u, err := url.Parse(text)
	switch {
	case text != strings.TrimSpace(text):
		odd := recognize.Text(text, recognize.Value).Said("") // so that the explained error does not report this mistake again
		odd = cmp.Or(odd, "begins or ends with a space or a line break; remove it with trimspace(…)")
		return fmt.Errorf("the address %w", fault.Odd(odd))
	case strings.ContainsAny(text, "<>"):
		return errors.New("the address contains < or >, like a placeholder; replace the placeholder with its value")
	case withoutScheme.MatchString(text):
		return errors.New("the address has no scheme; write https:// before the host")
	case err != nil: // err would repeat the address
		return fmt.Errorf("this is not a URL; write a URL like " + anAddress)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return fmt.Errorf("the address has no host, or does not begin with http:// or https://; write a URL like " + anAddress)
	case u.User != nil:
		return fault.With(errors.New("the address contains a user name or password"),
			"set it in an http credentials block in {settings}")
	case u.Hostname() == "http", u.Hostname() == "https":
		return errors.New("the address contains http:// or https:// twice; remove one of them")
	}
	if strings.Contains(text, "#") {
		return errors.New("the part after # is never sent to a server; remove it, or write %23 if # is part of a name")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil { // a query that cannot be parsed cannot be searched for secrets
		return fmt.Errorf("the part after ? is not a list of name=value pairs with & between them; encode other characters with urlencode(…)")
	}
	if name := secretInQuery(q); name != "" {
		return fault.With(fmt.Errorf("the address contains %s, but addresses are stored in the state", name),
			"move that secret to the argument query of an http credentials block in {settings}")
	}
	if name := urlWithSecret(q); name != "" {
		return fmt.Errorf("the URL in %s contains a user name, password or token, but addresses are stored in the state; set that secret in "+
			"the server's own settings", outside.Line(name, maxName))
	}
	return nil
}

const maxName = 100 // size limit of a parameter name in a message, in bytes

// secretNames matches the names of tokens and signatures in queries of common servers and in signed URLs.
var secretNames = lazyregexp.New(`(?i)^(private_token|job_token|access_token|id_token|token|password|passwd` +
	`|secret|api_?key|sig|signature|x-(amz|goog)-(signature|security-token))$`)

// secretInQuery returns the name of a parameter that holds a secret, or an empty string if there is none.
func secretInQuery(q url.Values) string {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if secretNames.MatchString(name) {
			return name
		}
	}
	return ""
}

var (
	urlAuthority = lazyregexp.New(`^\s*([A-Za-z][A-Za-z0-9+.-]*):[/\\]{2,}([^/\\?#]*)@`)
	scpPassword  = lazyregexp.New(`^[^/@:]+:[^/@]*@[^/@:]+:`) // user:password@host:path
)

// urlWithSecret returns the name of a parameter whose value is a URL with a secret, such as
// repository=https://user:password@host/path for terraform-backend-git. It returns an empty string if there
// is none. An ssh user name is not a secret.
func urlWithSecret(q url.Values) string {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		for _, value := range q[name] {
			m := urlAuthority.FindStringSubmatch(value)
			if m != nil && (!strings.EqualFold(m[1], "ssh") || strings.Contains(m[2], ":")) || scpPassword.MatchString(value) {
				return name
			}
			_, query, _ := strings.Cut(value, "?")
			if inner, _ := url.ParseQuery(query); secretInQuery(inner) != "" {
				return name
			}
		}
	}
	return ""
}

// access returns the Access for a grant. It creates the Access on the first call.
func (r *run) access(ctx context.Context, g source.Grant) (*Access, error) {
	return r.accesses.Do(ctx, accessKey{g.String("url"), g.ReadsEnvironment()}, func(context.Context) (*Access, error) {
		return newAccess(r.world, g, r.proxies)
	})
}

// location is the address of a state.
type location struct {
	*run
	address  *url.URL
	limit    int64
	patience web.Patience
}

func (l *location) String() string { return source.Public(l.address) }

// Fetch reads the state. It follows redirects, and repeats the request if that may help.
func (l *location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	x := &exchange{location: l, asked: l.address}
	err := x.client().Get(ctx, l.address, http.Header{"Accept-Encoding": {"gzip"}}, x.receive)
	_, missing := source.IsMissing(err)
	if err != nil && !missing && !fault.Has[fault.NoBlock](err) { // these errors already mention the redirect
		err = fmt.Errorf("%w%s", err, x.redirected())
	}
	return x.snapshot, err
}

// newPatience returns the limits for requests. Settings that are missing in the request come from the grant's
// variables, or else from the defaults of the http backend.
func newPatience(req source.Request, g source.Grant) (web.Patience, error) {
	timeout := time.Minute
	if text := req.String("timeout"); text != "" {
		timeout, _ = parseTimeout(text)
	}
	var err error
	number := func(argument, variable string, most, usual int64) int64 {
		switch {
		case req.Has(argument):
			return req.Int(argument)
		case g.Has(variable):
			usual = g.Int(variable)
			if wrong := attr.Between(0, most).Wrong(cty.NumberIntVal(usual)); wrong != nil {
				err = g.Errorf(variable, "%w", wrong)
			}
		}
		return usual
	}
	tries := number("retry_max", triesVar, mostTries, 2)
	waitMin := number("retry_wait_min", waitMinVar, mostWait, 1)
	waitMax := number("retry_wait_max", waitMaxVar, mostWait, 30)
	if err == nil && waitMin > waitMax {
		err = req.Errorf("retry_wait_max", "this is less than retry_wait_min; raise it")
	}
	return web.Patience{
		Timeout: timeout,
		Tries:   int(tries),
		WaitMin: time.Duration(waitMin) * time.Second,
		WaitMax: time.Duration(waitMax) * time.Second,
		Attr:    "timeout",
	}, err
}

func parseTimeout(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d <= 0 {
		return 0, errors.New(`this is neither a positive number of seconds nor a duration; write a value like 60 or "2m30s"`)
	}
	return d, nil
}
