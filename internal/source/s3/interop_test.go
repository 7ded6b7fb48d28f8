package s3

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

// States that a real CLI writes through its s3 backend are read back: of both
// kinds of workspaces, in plaintext and encrypted by OpenTofu, and by S3 with a key
// of the customer.
func TestWrittenByCLIs(t *testing.T) {
	for _, cli := range clitest.All(t) {
		t.Run(cli.Name, func(t *testing.T) { testRealBackend(t, cli, "") })
		if !cli.Encrypted {
			key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
			t.Run(cli.Name+", customer key", func(t *testing.T) { testRealBackend(t, cli, key) })
		}
	}
}

func testRealBackend(t *testing.T, cli clitest.CLI, customerKey string) {
	server := stored(nil)
	front := faults.New(t, server, faults.Options{})
	ca := file(t, front.CA)
	b := block(front.URL).With("custom_ca_bundle", ca).With(customerKeyAttr, customerKey)
	objecttest.Place{
		Server: server, Bucket: bucket, Env: []string{"AWS_SSE_CUSTOMER_KEY=" + customerKey},
		Paths: map[string]string{"default": key, "staging-1": "env:/staging-1/" + key},
		Backend: fmt.Sprintf(`backend "s3" {
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
}`, bucket, key, customerKey != "", front.URL, ca),
	}.Interop(t, cli, func(workspace string) (source.Source, error) { return open(asks(), settings(nil, b), workspace) })

	if customerKey != "" { // as S3 really had it
		server.Seal(bucket, key, bytes.Repeat([]byte{8}, 32))
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
