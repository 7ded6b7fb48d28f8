package oss

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the signature algorithm of this service
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

const (
	stsHost  = "sts.aliyuncs.com" // the default for all regions
	metadata = "http://100.100.100.200"

	metadataTokenTTL = "60" // seconds
)

// assume gets temporary keys for the role from STS.
//
// https://www.alibabacloud.com/help/en/ram/developer-reference/api-sts-2015-04-01-assumerole
func (i identity) assume(ctx context.Context, n object.Network, keys aws.Credentials) (aws.Credentials, error) {
	sts := object.STS{
		Name: "Alibaba Cloud STS", URL: i.sts,
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		Reasons: []answers.Row{
			{Code: "NoPermission",
				Text: "access is denied; the identity needs sts:AssumeRole on the role, and the role's trust policy must name the identity"},
			{Code: "EntityNotExist.Role", Text: "there is no such role"},
			{Code: "InvalidTimeStamp.Expired", Text: "the clock of this machine is wrong; correct the clock"},
			{Code: "InvalidAccessKeyId.NotFound InvalidAccessKeyId.Inactive SignatureDoesNotMatch IncompleteSignature",
				Text: "the keys are not valid"},
			{Code: "InvalidSecurityToken.Expired InvalidSecurityToken.Malformed InvalidSecurityToken.MismatchWithAccessKey",
				Text: "the security token is not valid"},
			{Code: "Throttling Throttling.User Throttling.Api", Text: "too many requests; try again later"},
		},
	}
	var answer struct {
		Code        string
		Credentials temporary
	}
	err := n.Assume(ctx, sts, i.role.arn, func(req *http.Request) ([]byte, error) {
		form := url.Values{
			"Action": {"AssumeRole"}, "Version": {"2015-04-01"}, "Format": {"JSON"},
			"RoleArn": {i.role.arn}, "RoleSessionName": {i.role.session}, "DurationSeconds": {strconv.FormatInt(i.role.seconds, 10)},
		}
		if i.role.policy != "" {
			form.Set("Policy", i.role.policy)
		}
		sign(form, req.Method, keys, time.Now())
		return []byte(form.Encode()), nil
	}, &answer, &answer.Code)
	if err != nil {
		return aws.Credentials{}, err
	}
	return answer.Credentials.keys(sts.Name)
}

// temporary holds the temporary keys in a service's response.
type temporary struct {
	AccessKeyID     string `json:"AccessKeyId"`
	AccessKeySecret string
	SecurityToken   string
	Expiration      time.Time
}

func (t temporary) keys(who string) (aws.Credentials, error) {
	return object.Temporary(who, t.AccessKeyID, t.AccessKeySecret, t.SecurityToken, t.Expiration)
}

// sign adds the common request parameters and the signature to the form.
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

// percent encodes all characters except the unreserved ones. Unlike url.QueryEscape, it encodes a space as
// %20.
func percent(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// ofInstance gets the keys of the instance's role from the metadata service. It first requests a token,
// without which hardened instances do not respond.
//
// https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata
func ofInstance(ctx context.Context, n object.Network, name string) (aws.Credentials, error) {
	const who = "the metadata service of the ECS instance"
	service := cmp.Or(n.Metadata, metadata)
	header := http.Header{"X-Aliyun-Ecs-Metadata-Token-Ttl-Seconds": {metadataTokenTTL}}
	status, token, err := n.Wire(true).Ask(ctx, http.MethodPut, service+"/latest/api/token", header)
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
