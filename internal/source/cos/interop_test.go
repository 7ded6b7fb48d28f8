package cos

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
)

// States that the real backend writes are read back, at the names that the
// vendor's hosts have.
func TestWrittenByCLIs(t *testing.T) {
	at := where().With("prefix", "terraform/state")
	who := keys("").With("endpoint", "")
	for _, cli := range clitest.All(t) {
		t.Run("keys, "+cli.Name, func(t *testing.T) {
			server := newStore()
			network, internet := hostsOf(t, server, newSTS())
			kind, env := Vendor().KindOver(network), map[string]string{}
			backend(server, "", internet).Interop(t, cli, func(workspace string) (source.Source, error) {
				return objecttest.Open(kind, objecttest.Settings(kind, objecttest.Variables(env), who), at, workspace)
			})
		})
	}
	t.Run("role", func(t *testing.T) {
		server, sts := newStore(), newSTS()
		server.Keys = []aws.Credentials{sts.gives}
		network, internet := hostsOf(t, server, sts)
		kind, env := Vendor().KindOver(network), map[string]string{roleVar: sts.role}
		role := fmt.Sprintf("assume_role {\n    role_arn         = %q\n    session_name     = \"ci\"\n    session_duration = 3600\n  }", sts.role)
		backend(server, role, internet).Interop(t, clitest.Tofu(t).Encrypting(), func(workspace string) (source.Source, error) {
			return objecttest.Open(kind, objecttest.Settings(kind, objecttest.Variables(env), who), at, workspace)
		})
		if sts.refused > 0 {
			t.Errorf("%d requests were refused", sts.refused)
		}
	})
}

// backend is where the CLIs keep states.
func backend(server *objecttest.Server, more string, internet *cloudtest.Internet) objecttest.Place {
	return objecttest.Place{
		Server: server, Bucket: bucket, Env: internet.Environ(nil),
		Paths: map[string]string{"default": "terraform/state/terraform.tfstate", "staging-1": "terraform/state/staging-1/terraform.tfstate"},
		Backend: fmt.Sprintf(`backend "cos" {
  bucket     = %q
  prefix     = "terraform/state"
  region     = "eu-frankfurt"
  secret_id  = %q
  secret_key = %q
  %s
}`, bucket, reader.AccessKeyID, reader.SecretAccessKey, more),
	}
}

// hostsOf has the vendor's hosts lead to the fakes, for CLIs and for a kind over that
// network.
func hostsOf(t *testing.T, server *objecttest.Server, sts http.Handler) (object.Network, *cloudtest.Internet) {
	t.Helper()
	server.Prefix = "X-Cos-"
	server.Hosts = []string{"cos.eu-frankfurt.myqcloud.com", "cos.accelerate.myqcloud.com"}
	internet := cloudtest.New(t, map[string]http.Handler{
		bucket + ".cos.eu-frankfurt.myqcloud.com": server,
		bucket + ".cos.accelerate.myqcloud.com":   server,
		"sts.tencentcloudapi.com":                 sts,
		"sts.intl.tencentcloudapi.com":            sts,
		"tag.tencentcloudapi.com":                 http.HandlerFunc(locks), // the backend's locks are tags
	})
	return objecttest.Through(t, internet), internet
}

func locks(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, `{"Response":{"TotalCount":0,"Offset":0,"Limit":15,"Tags":[],"RequestId":"1"}}`)
}

// fakeSTS gives the keys of one role to whoever signs as the reader.
type fakeSTS struct {
	role      string
	gives     aws.Credentials
	code      string // of an error in place of keys
	refused   int
	questions []map[string]any
}

func newSTS() *fakeSTS {
	return &fakeSTS{
		role: "qcs::cam::uin/100000000001:roleName/state-reader",
		gives: aws.Credentials{AccessKeyID: "AKIDsession", SecretAccessKey: "session-" + objecttest.Canary, SessionToken: "token-" +
			objecttest.Canary},
	}
}

func (s *fakeSTS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var question map[string]any
	_ = json.Unmarshal(body, &question)
	s.questions = append(s.questions, question)
	code := s.code
	switch {
	case code != "":
	case r.Header.Get("Authorization") != authorization(r, body):
		code = "AuthFailure.SignatureFailure"
	case r.Header.Get("X-TC-Action") != "AssumeRole" || r.Header.Get("X-TC-Version") != "2018-08-13" ||
		r.Header.Get("X-TC-Region") != "eu-frankfurt":
		code = "InvalidParameter"
	case question["RoleArn"] != s.role:
		code = "ResourceNotFound.RoleNotFound"
	}
	if code != "" {
		s.refused++
		fmt.Fprintf(w, `{"Response":{"Error":{"Code":%q,"Message":"canary of the server"},"RequestId":"1"}}`, code)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"Response": map[string]any{
		"Credentials": map[string]string{"TmpSecretId": s.gives.AccessKeyID, "TmpSecretKey": s.gives.SecretAccessKey,
			"Token": s.gives.SessionToken},
		"ExpiredTime": time.Now().Add(time.Hour).Unix(), "Expiration": "2026-01-01T00:00:00Z", "RequestId": "1",
	}})
}

// authorization is the one of TC3-HMAC-SHA256, as the vendor's documentation
// has it.
func authorization(r *http.Request, body []byte) string {
	stamp := r.Header.Get("X-TC-Timestamp")
	var seconds int64
	fmt.Sscan(stamp, &seconds)
	date := time.Unix(seconds, 0).UTC().Format("2006-01-02")
	mac := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	sum := func(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:]) }
	canonical := "POST\n/\n\ncontent-type:" + strings.ToLower(r.Header.Get("Content-Type")) + "\nhost:" + r.Host + "\n\ncontent-type;host\n" +
		sum(body)
	text := "TC3-HMAC-SHA256\n" + stamp + "\n" + date + "/sts/tc3_request\n" + sum([]byte(canonical))
	key := mac(mac(mac([]byte("TC3"+reader.SecretAccessKey), date), "sts"), "tc3_request")
	return "TC3-HMAC-SHA256 Credential=" + reader.AccessKeyID + "/" + date + "/sts/tc3_request, SignedHeaders=content-type;host, Signature=" +
		hex.EncodeToString(mac(key, text))
}
