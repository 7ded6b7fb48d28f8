package oss

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/objectstore/storetest"
)

// States that the real backend writes are read back, both over an endpoint of
// its own and at the names that the vendor's hosts have.
func TestRealBackend(t *testing.T) {
	states := []storetest.Written{{Workspace: "default", Path: "env:/network/terraform.tfstate"}, {Workspace: "staging", Path: "env:/staging/network/terraform.tfstate"}}
	backend := func(more string) string {
		return fmt.Sprintf(`backend "oss" {
  bucket     = %q
  key        = "network/terraform.tfstate"
  region     = "eu-central-1"
  access_key = %q
  secret_key = %q
  %s
}`, bucket, reader.AccessKeyID, reader.SecretAccessKey, more)
	}
	at := where().With("key", "network/terraform.tfstate")

	t.Run("endpoint", func(t *testing.T) {
		cli, server := storetest.Tofu(t), newStore(t)
		server.Prefix = "X-Oss-"
		address := server.Serve(t)
		storetest.Interop(t, cli, backend(fmt.Sprintf("endpoint = %q", address)), server, bucket, states, storetest.Both, func(workspace string) (source.Source, error) {
			kind := suite().Kind("")
			return storetest.Open(kind, storetest.Settings(kind, nil, keys(address)), at, workspace)
		})
	})
	t.Run("endpoint, terraform", func(t *testing.T) {
		cli, server := storetest.Terraform(t), newStore(t)
		server.Prefix = "X-Oss-"
		address := server.Serve(t)
		storetest.Interop(t, cli, backend(fmt.Sprintf("endpoint = %q", address)), server, bucket, states, storetest.Plain, func(workspace string) (source.Source, error) {
			kind := suite().Kind("")
			return storetest.Open(kind, storetest.Settings(kind, nil, keys(address)), at, workspace)
		})
	})
	t.Run("hosts", func(t *testing.T) {
		cli, server := storetest.Tofu(t), newStore(t)
		server.Prefix = "X-Oss-"
		kind, env := onInternet(t, &cli, server, nil)
		storetest.Interop(t, cli, backend(""), server, bucket, states, storetest.Plain, func(workspace string) (source.Source, error) {
			return storetest.Open(kind, storetest.Settings(kind, env, keys("").With("endpoint", "")), at, workspace)
		})
	})
	t.Run("role", func(t *testing.T) {
		cli, server, sts := storetest.Tofu(t), newStore(t), newSTS()
		server.Prefix, server.Keys = "X-Oss-", []aws.Credentials{sts.gives}
		kind, env := onInternet(t, &cli, server, sts)
		storetest.Interop(t, cli, backend(fmt.Sprintf("assume_role_role_arn = %q", sts.role)), server, bucket, states, storetest.Sealed, func(workspace string) (source.Source, error) {
			return storetest.Open(kind, storetest.Settings(kind, env, keys("").With("endpoint", "").With("assume_role_role_arn", sts.role)), at, workspace)
		})
		if sts.refused > 0 {
			t.Errorf("%d requests were refused", sts.refused)
		}
	})
}

// onInternet has the vendor's hosts lead to the fakes, for the CLI and for the
// kind that is returned.
func onInternet(t *testing.T, cli *storetest.CLI, server *storetest.Server, sts *fakeSTS) (source.Kind, map[string]string) {
	t.Helper()
	change, env := hostsOf(t, cli, server, sts)
	return changed(change), env
}

func hostsOf(t *testing.T, cli *storetest.CLI, server *storetest.Server, sts *fakeSTS) (func(*run), map[string]string) {
	t.Helper()
	server.Bases = []string{"oss-eu-central-1.aliyuncs.com", "s3.oss-eu-central-1.aliyuncs.com"}
	hosts := map[string]http.Handler{
		bucket + ".oss-eu-central-1.aliyuncs.com":    server,
		bucket + ".s3.oss-eu-central-1.aliyuncs.com": server,
		"location-readonly.aliyuncs.com":             http.NotFoundHandler(),
	}
	if sts != nil {
		hosts["sts.aliyuncs.com"], hosts["sts.eu-central-1.aliyuncs.com"] = sts, sts
	}
	internet := cloudtest.New(t, hosts)
	if cli != nil {
		cli.Env = internet.Environ(nil)
	}
	ca, err := os.ReadFile(internet.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	change := func(r *run) {
		r.connection.CA = ca
		r.web.Roots, r.web.FirstWait = storetest.Pool(t, ca), time.Millisecond
	}
	return change, map[string]string{"HTTPS_PROXY": internet.Proxy}
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
		role:  "acs:ram::1250000000000000:role/state-reader",
		gives: aws.Credentials{AccessKeyID: "STS.test", SecretAccessKey: "session-" + storetest.Canary, SessionToken: "token-" + storetest.Canary},
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
