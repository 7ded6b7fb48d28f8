package oss

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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

// States that the real backend writes are read back, both over an endpoint of
// its own and at the names that the vendor's hosts have.
func TestWrittenByCLIs(t *testing.T) {
	at := where().With("key", "network/terraform.tfstate")
	for _, cli := range clitest.All(t) {
		t.Run("endpoint, "+cli.Name, func(t *testing.T) {
			server := newStore()
			address, kind := server.Serve(t), Vendor().KindOver(objecttest.Hurried())
			backend(server, fmt.Sprintf("endpoint = %q", address)).Interop(t, cli, func(workspace string) (source.Source, error) {
				return objecttest.Open(kind, objecttest.Settings(kind, nil, keys(address)), at, workspace)
			})
		})
	}
	t.Run("hosts", func(t *testing.T) {
		server := newStore()
		network, internet := hostsOf(t, server, nil)
		kind, env := Vendor().KindOver(network), map[string]string{}
		backend(server, "", internet.Environ(nil)...).Interop(t, clitest.Tofu(t), func(workspace string) (source.Source, error) {
			return objecttest.Open(kind, objecttest.Settings(kind, objecttest.Variables(env), keys("").With("endpoint", "")), at, workspace)
		})
	})
	t.Run("role", func(t *testing.T) {
		server, sts := newStore(), newSTS()
		server.Keys = []aws.Credentials{sts.gives}
		network, internet := hostsOf(t, server, sts)
		kind, env := Vendor().KindOver(network), map[string]string{}
		role := backend(server, fmt.Sprintf("assume_role_role_arn = %q", sts.role), internet.Environ(nil)...)
		role.Interop(t, clitest.Tofu(t).Encrypting(), func(workspace string) (source.Source, error) {
			return objecttest.Open(kind, objecttest.Settings(kind, objecttest.Variables(env),
				keys("").With("endpoint", "").With("assume_role_role_arn", sts.role)), at, workspace)
		})
		if sts.refused > 0 {
			t.Errorf("%d requests were refused", sts.refused)
		}
	})
}

// backend is where the CLIs keep states.
func backend(server *objecttest.Server, more string, env ...string) objecttest.Place {
	server.Prefix = "X-Oss-"
	return objecttest.Place{
		Server: server, Bucket: bucket, Env: env,
		Paths: map[string]string{"default": "env:/network/terraform.tfstate", "staging-1": "env:/staging-1/network/terraform.tfstate"},
		Backend: fmt.Sprintf(`backend "oss" {
  bucket     = %q
  key        = "network/terraform.tfstate"
  region     = "eu-central-1"
  access_key = %q
  secret_key = %q
  %s
}`, bucket, reader.AccessKeyID, reader.SecretAccessKey, more),
	}
}

// hostsOf has the vendor's hosts lead to the fakes, for CLIs and for a kind over that
// network.
func hostsOf(t *testing.T, server *objecttest.Server, sts http.Handler) (object.Network, *cloudtest.Internet) {
	t.Helper()
	server.Hosts = []string{"oss-eu-central-1.aliyuncs.com", "s3.oss-eu-central-1.aliyuncs.com"}
	hosts := map[string]http.Handler{
		bucket + ".oss-eu-central-1.aliyuncs.com":    server,
		bucket + ".s3.oss-eu-central-1.aliyuncs.com": server,
		"location-readonly.aliyuncs.com":             http.NotFoundHandler(),
	}
	if sts != nil {
		hosts["sts.aliyuncs.com"], hosts["sts.eu-central-1.aliyuncs.com"] = sts, sts
	}
	internet := cloudtest.New(t, hosts)
	return objecttest.Through(t, internet), internet
}

// fakeSTS gives the keys of one role to whoever signs as the reader.
type fakeSTS struct {
	role    string
	gives   aws.Credentials
	code    string // of an error in place of keys
	refused int
	forms   []url.Values
}

func newSTS() *fakeSTS {
	return &fakeSTS{
		role: "acs:ram::1250000000000000:role/state-reader",
		gives: aws.Credentials{AccessKeyID: "STS.test", SecretAccessKey: "session-" + objecttest.Canary, SessionToken: "token-" +
			objecttest.Canary},
	}
}

func (s *fakeSTS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.forms = append(s.forms, r.Form)
	code := s.code
	switch {
	case code != "":
	case r.Form.Get("AccessKeyId") != reader.AccessKeyID:
		code = "InvalidAccessKeyId.NotFound"
	case r.Form.Get("Signature") != signature(r.Method, r.Form, reader.SecretAccessKey):
		code = "SignatureDoesNotMatch"
	case r.Form.Get("Action") != "AssumeRole" || r.Form.Get("Version") != "2015-04-01" || r.Form.Get("RoleSessionName") == "":
		code = "MissingParameter"
	case r.Form.Get("RoleArn") != s.role:
		code = "EntityNotExist.Role"
	}
	if code != "" {
		s.refused++
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]string{"Code": code, "Message": "canary of the server", "RequestId": "1"})
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"RequestId": "1",
		"Credentials": map[string]string{
			"AccessKeyId": s.gives.AccessKeyID, "AccessKeySecret": s.gives.SecretAccessKey, "SecurityToken": s.gives.SessionToken,
			"Expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		},
	})
}

// signature is the one of the RPC style, as the vendor's documentation has it.
func signature(method string, form url.Values, secret string) string {
	var pairs []string
	for name := range form {
		if name != "Signature" {
			pairs = append(pairs, escape(name)+"="+escape(form.Get(name)))
		}
	}
	slices.Sort(pairs)
	mac := hmac.New(sha1.New, []byte(secret+"&"))
	mac.Write([]byte(method + "&" + escape("/") + "&" + escape(strings.Join(pairs, "&"))))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func escape(s string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
