package consul

import (
	"fmt"
	"io"
	"net/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

var errNoKey = web.Final("there is no such key")

// refusal returns the error for a response without the key. Consul explains errors in plain text. refusal
// looks for known messages in the text, but never shows it.
func (x *exchange) refusal(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // an error does not matter, because a part may be enough
	code, status, isPlain := resp.StatusCode, web.Status(resp.StatusCode), x.where.namespace == "" && x.where.partition == ""
	return web.Final("%w", answers.Find([]answers.Row{
		{Status: "403", Said: "ACL not found",
			Text: "Consul does not know the token (403 Forbidden, ACL not found); check whether the token is wrong, expired or deleted"},
		{Status: "403", Unless: x.sends, Text: fmt.Sprintf("Consul does not allow reading the key %q without a token (403 Forbidden); "+
			"set access_token in {credentials}", x.key)},
		{Status: "403", Text: fmt.Sprintf("Consul does not allow reading the key %q (403 Forbidden); give the token a policy with "+
			"%s", x.key, x.rule())},
		{Status: "401", Text: "the server did not accept the user name and password (401 Unauthorized); check http_auth in {credentials}"},
		{Said: "invalid key name", Text: fmt.Sprintf("Consul refuses the name of the key %q (%s); remove any space at its beginning or end. "+
			"Consul 1.21.5 also refuses the colon in the keys of workspaces, so use another version", x.key, status)},
		{Status: "400", Unless: isPlain,
			Text: "Consul did not accept the request (" + status + "); if this is not Consul Enterprise, remove the arguments namespace and " +
				"partition"},
		{Said: "No path to datacenter", Text: fmt.Sprintf("Consul knows no datacenter %q, or cannot reach it (%s); check the argument datacenter",
			x.where.datacenter, status)},
		{Said: "No cluster leader", Text: "the Consul cluster has no leader at the moment (" + status + "); try again later"},
		{Status: "3xx", Text: "the server redirects to another address, but Consul never does; check the address"},
		{Wraps: web.Unexpected("the server", code)},
	}, code, "", string(text)).Err())
}

var partPattern = lazyregexp.New(`^(.*/tfstate\.)[0-9a-f]{32}/[0-9]+$`)

// rule returns the policy rule that allows reading the key, in Consul's policy language. The rule for a part
// of a large state uses a key prefix, because the part names change with each write.
func (x *exchange) rule() string {
	if m := partPattern.FindStringSubmatch(x.key); m != nil {
		return fmt.Sprintf("key_prefix %q { policy = \"read\" }", m[1])
	}
	return fmt.Sprintf("key %q { policy = \"read\" }", x.key)
}
