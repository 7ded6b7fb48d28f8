package cos

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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

const metadata = "http://metadata.tencentyun.com"

// assume has STS give the keys of a role.
//
// https://www.tencentcloud.com/document/product/1150/49456
func (r *run) assume(ctx context.Context, keys aws.Credentials, i identity, region string) (aws.Credentials, error) {
	const who = "Tencent Cloud STS"
	endpoint, err := objectstore.ParseEndpoint("sts." + i.domain)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("domain: %w", err)
	}
	question := map[string]any{"RoleArn": i.role.arn, "RoleSessionName": i.role.session, "DurationSeconds": i.role.seconds}
	if i.role.policy != "" {
		question["Policy"] = url.QueryEscape(i.role.policy)
	}
	if i.role.externalID != "" {
		question["ExternalId"] = i.role.externalID
	}
	text, err := json.Marshal(question)
	if err != nil {
		return aws.Credentials{}, err
	}
	status, body, err := r.web.Ask(ctx, who, func(ctx context.Context) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String()+"/", bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		req.Header.Set("X-TC-Action", "AssumeRole")
		req.Header.Set("X-TC-Version", "2018-08-13")
		req.Header.Set("X-TC-Region", region)
		sign(req, text, "sts", keys, time.Now())
		return req, nil
	})
	if err != nil {
		return aws.Credentials{}, err
	}
	var answer struct {
		Response struct {
			Error       struct{ Code string }
			Credentials struct {
				Token        string
				TmpSecretID  string `json:"TmpSecretId"`
				TmpSecretKey string
			}
			ExpiredTime int64
		}
	}
	err = json.Unmarshal(body, &answer)
	if code := answer.Response.Error.Code; status != http.StatusOK || err != nil || code != "" {
		return aws.Credentials{}, fmt.Errorf("%s: the role %q cannot be assumed: %s", who, i.role.arn, stsReason(code, status))
	}
	c := answer.Response.Credentials
	return objectstore.Temporary(who, c.TmpSecretID, c.TmpSecretKey, c.Token, unix(answer.Response.ExpiredTime))
}

// unix is the time of a server's number, which may be any.
func unix(seconds int64) time.Time {
	const last = 1 << 34 // in the year 2514
	if seconds <= 0 || seconds > last {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// sign signs a request with a body in JSON.
//
// https://www.tencentcloud.com/document/product/213/33224
func sign(req *http.Request, body []byte, service string, keys aws.Credentials, now time.Time) {
	const contentType, algorithm, signed = "application/json", "TC3-HMAC-SHA256", "content-type;host"
	date, stamp := now.UTC().Format("2006-01-02"), strconv.FormatInt(now.Unix(), 10)
	scope := date + "/" + service + "/tc3_request"
	canonical := strings.Join([]string{req.Method, "/", "", "content-type:" + contentType, "host:" + req.URL.Host, "", signed, hash(body)}, "\n")
	text := strings.Join([]string{algorithm, stamp, scope, hash([]byte(canonical))}, "\n")
	key := []byte("TC3" + keys.SecretAccessKey)
	for _, part := range []string{date, service, "tc3_request", text} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-TC-Timestamp", stamp)
	if keys.SessionToken != "" {
		req.Header.Set("X-TC-Token", keys.SessionToken)
	}
	req.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%s", algorithm, keys.AccessKeyID, scope, signed, hex.EncodeToString(key)))
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// stsReason says what the codes of STS mean.
func stsReason(code string, status int) string {
	switch code {
	case "UnauthorizedOperation", "AuthFailure.UnauthorizedOperation", "InternalError.CamRoleNotAllowed":
		return "access is denied (" + code + "); the identity needs sts:AssumeRole on the role, and the role must have the identity's account as its carrier"
	case "ResourceNotFound.RoleNotFound", "InternalError.GetRoleError", "InvalidParameter.RoleNotExist":
		return "there is no such role (" + code + ")"
	case "AuthFailure.SecretIdNotFound", "AuthFailure.SignatureFailure", "AuthFailure.InvalidSecretId":
		return "the keys are not valid (" + code + ")"
	case "AuthFailure.TokenFailure":
		return "the security token is not valid (AuthFailure.TokenFailure)"
	case "AuthFailure.SignatureExpire":
		return "the clock is wrong (AuthFailure.SignatureExpire)"
	case "RequestLimitExceeded":
		return "too many requests (RequestLimitExceeded); try again later"
	}
	if strings.HasPrefix(code, "InvalidParameter") {
		return "the request is refused; check the assume_role block"
	}
	if status == http.StatusOK {
		return "the answer is not one of STS"
	}
	return "the answer has the status " + strconv.Itoa(status)
}

var roleNames = regexp.MustCompile(`^[A-Za-z0-9._+=,@-]+$`)

// ofInstance has the metadata service give the keys of the instance's role.
//
// https://www.tencentcloud.com/document/product/213/4934
func (r *run) ofInstance(ctx context.Context, name string) (aws.Credentials, error) {
	const who = "the metadata service of the CVM instance"
	if len(name) > 128 || !roleNames.MatchString(name) || name == "." || name == ".." {
		return aws.Credentials{}, errors.New("cam_role_name cannot be the name of a role")
	}
	status, body, err := r.local.Ask(ctx, who, func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, r.metadata+"/latest/meta-data/cam/security-credentials/"+name, nil)
	})
	if err != nil {
		return aws.Credentials{}, err
	}
	var answer struct {
		Code         string
		TmpSecretID  string `json:"TmpSecretId"`
		TmpSecretKey string
		Token        string
		ExpiredTime  int64
	}
	switch {
	case status == http.StatusNotFound:
		return aws.Credentials{}, fmt.Errorf("%s knows no role %q; is it attached to the instance?", who, name)
	case status != http.StatusOK:
		return aws.Credentials{}, fmt.Errorf("%s gave no keys of the role %q: the answer has the status %d", who, name, status)
	case json.Unmarshal(body, &answer) != nil || answer.Code != "Success":
		return aws.Credentials{}, fmt.Errorf("%s gave an answer without usable keys", who)
	}
	return objectstore.Temporary(who, answer.TmpSecretID, answer.TmpSecretKey, answer.Token, unix(answer.ExpiredTime))
}
