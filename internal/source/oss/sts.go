package oss

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // what the signature of this service is made with
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/objectstore"
)

const (
	stsHost  = "sts.aliyuncs.com" // whichever region a data source names
	metadata = "http://100.100.100.200"

	metadataTokenTTL = "60" // seconds
)

// assume has STS give the keys of a role.
//
// https://www.alibabacloud.com/help/en/ram/developer-reference/api-sts-2015-04-01-assumerole
func (r *run) assume(ctx context.Context, keys aws.Credentials, i identity) (aws.Credentials, error) {
	who := "Alibaba Cloud STS"
	endpoint, err := objectstore.ParseEndpoint(cmp.Or(i.stsEndpoint, stsHost))
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("sts_endpoint: %w", err)
	}
	status, body, err := r.web.Ask(ctx, who, func(ctx context.Context) (*http.Request, error) {
		form := url.Values{
			"Action": {"AssumeRole"}, "Version": {"2015-04-01"}, "Format": {"JSON"},
			"RoleArn": {i.role.arn}, "RoleSessionName": {i.role.session}, "DurationSeconds": {strconv.FormatInt(i.role.seconds, 10)},
		}
		if i.role.policy != "" {
			form.Set("Policy", i.role.policy)
		}
		sign(form, http.MethodPost, keys, time.Now())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String()+"/", strings.NewReader(form.Encode()))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return req, nil
	})
	if err != nil {
		return aws.Credentials{}, err
	}
	var answer struct {
		Code        string
		Credentials struct {
			AccessKeyID     string `json:"AccessKeyId"`
			AccessKeySecret string
			SecurityToken   string
			Expiration      time.Time
		}
	}
	err = json.Unmarshal(body, &answer)
	if status != http.StatusOK || err != nil {
		return aws.Credentials{}, fmt.Errorf("%s: the role %q cannot be assumed: %s", who, i.role.arn, stsReason(answer.Code, status))
	}
	c := answer.Credentials
	return objectstore.Temporary(who, c.AccessKeyID, c.AccessKeySecret, c.SecurityToken, c.Expiration)
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
		return "access is denied (NoPermission); the identity needs sts:AssumeRole on the role, and the role's trust policy must name the identity"
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
	if status == http.StatusOK {
		return "the answer is not one of STS"
	}
	return "the answer has the status " + strconv.Itoa(status)
}

var roleNames = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// ofInstance has the metadata service give the keys of the instance's role. It
// is asked for a token first, without which hardened instances answer nothing.
//
// https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata
func (r *run) ofInstance(ctx context.Context, name string) (aws.Credentials, error) {
	const who = "the metadata service of the ECS instance"
	if len(name) > 64 || !roleNames.MatchString(name) || name == "." || name == ".." {
		return aws.Credentials{}, errors.New("ecs_role_name cannot be the name of a role")
	}
	ask := func(method, path, header, value string) (int, []byte, error) {
		return r.local.Ask(ctx, who, func(ctx context.Context) (*http.Request, error) {
			req, err := http.NewRequestWithContext(ctx, method, r.metadata+path, nil)
			if err == nil && value != "" {
				req.Header.Set(header, value)
			}
			return req, err
		})
	}
	status, token, err := ask(http.MethodPut, "/latest/api/token", "X-aliyun-ecs-metadata-token-ttl-seconds", metadataTokenTTL)
	if err != nil {
		return aws.Credentials{}, err
	}
	if status != http.StatusOK { // an old service has no tokens
		token = nil
	}
	status, body, err := ask(http.MethodGet, "/latest/meta-data/ram/security-credentials/"+name, "X-aliyun-ecs-metadata-token", string(token))
	if err != nil {
		return aws.Credentials{}, err
	}
	var answer struct {
		Code            string
		AccessKeyID     string `json:"AccessKeyId"`
		AccessKeySecret string
		SecurityToken   string
		Expiration      time.Time
	}
	switch {
	case status == http.StatusNotFound:
		return aws.Credentials{}, fmt.Errorf("%s knows no role %q; is it attached to the instance?", who, name)
	case status != http.StatusOK:
		return aws.Credentials{}, fmt.Errorf("%s gave no keys of the role %q: the answer has the status %d", who, name, status)
	case json.Unmarshal(body, &answer) != nil || answer.Code != "Success":
		return aws.Credentials{}, fmt.Errorf("%s gave an answer without usable keys", who)
	}
	return objectstore.Temporary(who, answer.AccessKeyID, answer.AccessKeySecret, answer.SecurityToken, answer.Expiration)
}
