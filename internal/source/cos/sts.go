package cos

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

const metadata = "http://metadata.tencentyun.com"

// assume gets temporary keys for the role from STS.
//
// https://www.tencentcloud.com/document/product/1150/49456
func (i identity) assume(ctx context.Context, n object.Network, keys aws.Credentials, region string) (aws.Credentials, error) {
	sts := object.STS{
		Name: "Tencent Cloud STS", URL: i.sts,
		Header: http.Header{"X-Tc-Action": {"AssumeRole"}, "X-Tc-Version": {"2018-08-13"}, "X-Tc-Region": {region}},
		Reasons: []answers.Row{
			{Code: "UnauthorizedOperation AuthFailure.UnauthorizedOperation InternalError.CamRoleNotAllowed",
				Text: "access is denied; the identity needs sts:AssumeRole on the role, and the role must have the identity's account as its carrier"},
			{Code: "ResourceNotFound.RoleNotFound InternalError.GetRoleError InvalidParameter.RoleNotExist", Text: "there is no such role"},
			{Code: "AuthFailure.SecretIdNotFound AuthFailure.SignatureFailure AuthFailure.InvalidSecretId", Text: "the keys are not valid"},
			{Code: "AuthFailure.TokenFailure", Text: "the security token is not valid"},
			{Code: "AuthFailure.SignatureExpire", Text: "the clock of this machine is wrong; correct the clock"},
			{Code: "RequestLimitExceeded", Text: "too many requests; try again later"},
		},
	}
	question := map[string]any{"RoleArn": i.role.arn, "RoleSessionName": i.role.session, "DurationSeconds": i.role.seconds}
	if i.role.policy != "" {
		question["Policy"] = url.QueryEscape(i.role.policy)
	}
	if i.role.externalID != "" {
		question["ExternalId"] = i.role.externalID
	}
	var answer struct {
		Response struct {
			Error       struct{ Code string }
			Credentials temporary
			ExpiredTime int64
		}
	}
	err := n.Assume(ctx, sts, i.role.arn, func(req *http.Request) ([]byte, error) {
		text, err := json.Marshal(question)
		sign(req, text, "sts", keys, time.Now())
		return text, err
	}, &answer, &answer.Response.Error.Code)
	if err != nil {
		return aws.Credentials{}, err
	}
	return answer.Response.Credentials.keys(sts.Name, answer.Response.ExpiredTime)
}

// temporary holds the temporary keys in a service's response.
type temporary struct {
	TmpSecretID  string `json:"TmpSecretId"`
	TmpSecretKey string
	Token        string
}

// keys returns the credentials in t. end is the expiry in Unix time. The server may send any number; a number
// out of range is ignored.
func (t temporary) keys(who string, end int64) (aws.Credentials, error) {
	const last = 1 << 34 // in the year 2514
	var expires time.Time
	if end > 0 && end <= last {
		expires = time.Unix(end, 0)
	}
	return object.Temporary(who, t.TmpSecretID, t.TmpSecretKey, t.Token, expires)
}

// sign adds the headers that sign a request with a JSON body.
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

// ofInstance gets the keys of the instance's role from the metadata service.
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
