package s3

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the protocol asks for it
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object/s3test"
)

// States that a real CLI writes through its s3 backend are read back: of both
// kinds of workspaces, in clear and encrypted by OpenTofu, and by S3 with a key
// of the customer.
func TestRealBackend(t *testing.T) {
	for _, cli := range clitest.All(t) {
		t.Run(cli.Name, func(t *testing.T) { testRealBackend(t, cli, "") })
		if !cli.Encrypted {
			key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
			t.Run(cli.Name+", customer key", func(t *testing.T) { testRealBackend(t, cli, key) })
		}
	}
}

func testRealBackend(t *testing.T, cli clitest.CLI, customerKey string) {
	server := s3test.New(t, bucket)
	front := faults.New(t, server, faults.Options{})
	ca := file(t, front.CA)
	server.Change(func() { server.Writes = true })
	p := cli.Project(t, fmt.Sprintf(`backend "s3" {
  bucket         = %q
  key            = %q
  region         = "eu-west-1"
  access_key     = "AKIATEST"
  secret_key     = "canary-secret"
  use_path_style = true
  encrypt        = %t

  endpoints        = { s3 = %q }
  custom_ca_bundle = %q

  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
}`, bucket, key, customerKey != "", front.URL, ca), "AWS_SSE_CUSTOMER_KEY="+customerKey)
	b := block(front.URL).with("custom_ca_bundle", ca)
	if customerKey != "" {
		b = b.with(customerKeyAttr, customerKey)
	}
	place := func(workspace string) string {
		if workspace == "default" {
			return key
		}
		return "env:/" + workspace + "/" + key
	}
	p.RoundTrip(t, func(workspace string) []byte {
		server.Change(func() { server.Writes = false }) // only reads are allowed
		defer server.Change(func() { server.Writes = true })
		server.Requests()
		src, err := open(asks(), settings(nil, b), workspace)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := src.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := server.Requests(); len(got) != 1 || got[0].Method != "GET" || got[0].Path != "/"+bucket+"/"+place(workspace) {
			t.Errorf("got requests %+v", got)
		}
		return snap.Data
	}, func(workspace string) []byte { return server.Get(t, bucket, place(workspace)) })

	if customerKey != "" { // as S3 really had it
		sum := md5.Sum(bytes.Repeat([]byte{8}, 32)) //nolint:gosec // see above
		server.Seal(bucket, key, base64.StdEncoding.EncodeToString(sum[:]))
		if _, err := read(t, asks(), settings(nil, b)); err == nil {
			t.Error("it was read with another key")
		}
	}
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
