package oss

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // what the signature of this service is made with
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

const (
	stsHost  = "sts.aliyuncs.com" // whichever region a data source names
	metadata = "http://100.100.100.200"

	metadataTokenTTL = "60" // seconds
)

// assume has STS give the keys of a role.
//
// https://www.alibabacloud.com/help/en/ram/developer-reference/api-sts-2015-04-01-assumerole
func (i identity) assume(ctx context.Context, n object.Network, keys aws.Credentials) (aws.Credentials, error) {
	const who = "Alibaba Cloud STS"
	wire := n.Wire()
	wire.Authorize = func(req *http.Request) error {
		form := url.Values{
			"Action": {"AssumeRole"}, "Version": {"2015-04-01"}, "Format": {"JSON"},
			"RoleArn": {i.role.arn}, "RoleSessionName": {i.role.session}, "DurationSeconds": {strconv.FormatInt(i.role.seconds, 10)},
		}
		if i.role.policy != "" {
			form.Set("Policy", i.role.policy)
		}
		sign(form, req.Method, keys, time.Now())
		text := form.Encode()
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		return nil
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	status, body, err := wire.Ask(ctx, http.MethodPost, i.sts.String()+"/", header)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("%s: %w", who, err)
	}
	var answer struct {
		Code        string
		Credentials temporary
	}
	err = json.Unmarshal(body, &answer)
	if status != http.StatusOK || err != nil {
		return aws.Credentials{}, fmt.Errorf("%s: the role %q cannot be assumed: %s", who, i.role.arn, stsReason(answer.Code, status))
	}
	return answer.Credentials.keys(who)
}

// temporary are keys that end, as the services write them.
type temporary struct {
	AccessKeyID     string `json:"AccessKeyId"`
	AccessKeySecret string
	SecurityToken   string
	Expiration      time.Time
}

func (t temporary) keys(who string) (aws.Credentials, error) {
	return object.Temporary(who, t.AccessKeyID, t.AccessKeySecret, t.SecurityToken, t.Expiration)
}

// sign adds what every request has, and its signature.
//
// https://www.alibabacloud.com/help/en/sdk/product-overview/rpc-mechanism
func sign(form url.Values, method string, keys aws.Credentials, now time.Time) {
	form.Set("AccessKeyId", keys.AccessKeyID)
	form.Set("Timestamp", now.UTC().Format("2006-01-02T15:04:05Z"))
	form.Set("SignatureMethod", "HMAC-SHA1")
	form.Set("SignatureVersion", "1.0")
	form.Set("SignatureNonce", rand.Text())
	if keys.SessionToken != "" {
		form.Set("SecurityToken", keys.SessionToken)
	}
	text := method + "&%2F&" + percent(strings.ReplaceAll(form.Encode(), "+", "%20"))
	mac := hmac.New(sha1.New, []byte(keys.SecretAccessKey+"&"))
	mac.Write([]byte(text))
	form.Set("Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// percent encodes all but the unreserved characters, as url.QueryEscape does
// but for the space.
func percent(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// stsReason says what the codes of STS mean.
func stsReason(code string, status int) string {
	switch code {
	case "NoPermission":
		return "access is denied (NoPermission); the identity needs sts:AssumeRole on the role, " +
			"and the role's trust policy must name the identity"
	case "EntityNotExist.Role":
		return "there is no such role (EntityNotExist.Role)"
	case "InvalidAccessKeyId.NotFound", "InvalidAccessKeyId.Inactive", "SignatureDoesNotMatch", "IncompleteSignature":
		return "the keys are not valid (" + code + ")"
	case "InvalidSecurityToken.Expired", "InvalidSecurityToken.Malformed", "InvalidSecurityToken.MismatchWithAccessKey":
		return "the security token is not valid (" + code + ")"
	case "InvalidTimeStamp.Expired":
		return "the clock is wrong (InvalidTimeStamp.Expired)"
	case "Throttling", "Throttling.User", "Throttling.Api":
		return "too many requests (" + code + "); try again later"
	}
	if strings.HasPrefix(code, "InvalidParameter") || strings.HasPrefix(code, "MissingParameter") {
		return "the request is refused; check the assume_role arguments"
	}
	return object.StrangeSTS(status)
}

// ofInstance has the metadata service give the keys of the instance's role. It
// is asked for a token first, without which hardened instances answer nothing.
//
// https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata
func ofInstance(ctx context.Context, n object.Network, name string) (aws.Credentials, error) {
	const who = "the metadata service of the ECS instance"
	service := cmp.Or(n.Metadata, metadata)
	header := http.Header{"X-Aliyun-Ecs-Metadata-Token-Ttl-Seconds": {metadataTokenTTL}}
	status, token, err := n.Near().Ask(ctx, http.MethodPut, service+"/latest/api/token", header)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("%s: %w", who, err)
	}
	header = http.Header{}
	if status == http.StatusOK { // an old service has no tokens
		header.Set("X-Aliyun-Ecs-Metadata-Token", string(token))
	}
	var answer temporary
	if err := n.AskInstance(ctx, who, service+"/latest/meta-data/ram/security-credentials/", name, header, &answer); err != nil {
		return aws.Credentials{}, err
	}
	return answer.keys(who)
}
