package cos

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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

const metadata = "http://metadata.tencentyun.com"

// assume has STS give the keys of a role.
//
// https://www.tencentcloud.com/document/product/1150/49456
func (i identity) assume(ctx context.Context, n object.Network, keys aws.Credentials, region string) (aws.Credentials, error) {
	const who = "Tencent Cloud STS"
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
	wire := n.Wire()
	wire.Authorize = func(req *http.Request) error {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		sign(req, text, "sts", keys, time.Now())
		return nil
	}
	header := http.Header{"X-Tc-Action": {"AssumeRole"}, "X-Tc-Version": {"2018-08-13"}, "X-Tc-Region": {region}}
	status, body, err := wire.Ask(ctx, http.MethodPost, i.sts.String()+"/", header)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("%s: %w", who, err)
	}
	var answer struct {
		Response struct {
			Error       struct{ Code string }
			Credentials temporary
			ExpiredTime int64
		}
	}
	err = json.Unmarshal(body, &answer)
	if code := answer.Response.Error.Code; status != http.StatusOK || err != nil || code != "" {
		return aws.Credentials{}, fmt.Errorf("%s: the role %q cannot be assumed: %s", who, i.role.arn, stsReason(code, status))
	}
	return answer.Response.Credentials.keys(who, answer.Response.ExpiredTime)
}

// temporary are keys that end, as the services write them.
type temporary struct {
	TmpSecretID  string `json:"TmpSecretId"`
	TmpSecretKey string
	Token        string
}

// keys are those of t. The end is the number of a server, which may be any.
func (t temporary) keys(who string, end int64) (aws.Credentials, error) {
	const last = 1 << 34 // in the year 2514
	var expires time.Time
	if end > 0 && end <= last {
		expires = time.Unix(end, 0)
	}
	return object.Temporary(who, t.TmpSecretID, t.TmpSecretKey, t.Token, expires)
}

// sign signs a request with a body in JSON.
//
// https://www.tencentcloud.com/document/product/213/33224
func sign(req *http.Request, body []byte, service string, keys aws.Credentials, now time.Time) {
	const contentType, algorithm, signed = "application/json", "TC3-HMAC-SHA256", "content-type;host"
	date, stamp := now.UTC().Format("2006-01-02"), strconv.FormatInt(now.Unix(), 10)
	scope := date + "/" + service + "/tc3_request"
	headers := "content-type:" + contentType + "\nhost:" + req.URL.Host + "\n"
	canonical := strings.Join([]string{req.Method, "/", "", headers, signed, hash(body)}, "\n")
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
	req.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%s",
		algorithm, keys.AccessKeyID, scope, signed, hex.EncodeToString(key)))
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// stsReason says what the codes of STS mean.
func stsReason(code string, status int) string {
	switch code {
	case "UnauthorizedOperation", "AuthFailure.UnauthorizedOperation", "InternalError.CamRoleNotAllowed":
		return "access is denied (" + code + "); the identity needs sts:AssumeRole on the role, " +
			"and the role must have the identity's account as its carrier"
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
	return object.StrangeSTS(status)
}

// ofInstance has the metadata service give the keys of the instance's role.
//
// https://www.tencentcloud.com/document/product/213/4934
func ofInstance(ctx context.Context, n object.Network, name string) (aws.Credentials, error) {
	const who = "the metadata service of the CVM instance"
	var answer struct {
		temporary
		ExpiredTime int64
	}
	url := cmp.Or(n.Metadata, metadata) + "/latest/meta-data/cam/security-credentials/"
	if err := n.AskInstance(ctx, who, url, name, nil, &answer); err != nil {
		return aws.Credentials{}, err
	}
	return answer.keys(who, answer.ExpiredTime)
}
