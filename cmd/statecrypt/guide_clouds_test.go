package main

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// These are the passphrase of the guide, and the one after it.
const (
	firstPassphrase  = "correct-horse-battery-staple"
	secondPassphrase = "another passphrase of it"
)

// guideCloud is a cloud in which the guide has its state.
type guideCloud struct {
	block string // the file with the block, "" for that of keys.hcl
	name  string // of the state
	user  string // the storage account, "" for that of the guide
	more  string // what the block has besides on an emulator
	less  bool   // whether OpenTofu's block goes without the first line of it

	environ    func(base []string) []string
	get        func() string
	hold       func() (id string)
	isHeld     func() bool
	everything func() [][]byte
}

// folder makes a folder with the files of the guide.
func (c *guideCloud) folder(t *testing.T) string {
	t.Helper()
	dir := guideFolder(t, "one-state-for-both")
	keys, own := filepath.Join(dir, "keys.hcl"), filepath.Join(dir, "backend.tofu")
	block, rest, _ := strings.Cut(read(t, keys), "\n}\n")
	if c.block != "" {
		old := block
		block, _, _ = strings.Cut(read(t, filepath.Join(dir, c.block)), "\n}\n")
		block = strings.ReplaceAll(block, "\n  use_azuread_auth     = true", c.more)
		if !strings.Contains(block, c.more) {
			block += c.more
		}
		if c.user != "" {
			block = strings.Replace(block, azuretest.Account, c.user, 1)
		}
		theirs := block
		if c.less {
			line, _, _ := strings.Cut(strings.TrimPrefix(c.more, "\n"), "\n")
			theirs = strings.Replace(block, "\n"+line, "", 1)
		}
		indented := func(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") + "\n  }\n" }
		if text := read(t, own); strings.Contains(text, indented(old)) {
			write(t, own, strings.Replace(text, indented(old), indented(theirs), 1))
		} else {
			t.Fatalf("the blocks of the guide differ:\n%s\n%s", old, text)
		}
		write(t, keys, block+"\n}\n"+rest)
	}
	write(t, filepath.Join(dir, "old.hcl"), keysOf(firstPassphrase))
	write(t, filepath.Join(dir, "new.hcl"), block+"\n}\n"+keysOf(secondPassphrase))
	return dir
}

// quietly returns the variables of the CLIs in tests, and more.
func quietly(base []string, more ...string) []string {
	return append(append(base, "CHECKPOINT_DISABLE=1", "TF_CLI_ARGS=-no-color", "TF_IN_AUTOMATION=1"), more...)
}

// inAmazon is AWS, as far as backends ask it.
func inAmazon(t *testing.T) *guideCloud {
	t.Helper()
	s := objecttest.New("acme-tf-state")
	s.Region, s.Keys = "eu-west-1", []aws.Credentials{{AccessKeyID: "AKIATEST", SecretAccessKey: canary}}
	s.Hosts = []string{"s3.eu-west-1.amazonaws.com"}
	s.Keep("acme-tf-state")
	s.Writable.Store(true)
	identity := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>`+
			`<Arn>arn:aws:iam::111122223333:user/u</Arn><UserId>U</UserId><Account>111122223333</Account></GetCallerIdentityResult>`+
			`</GetCallerIdentityResponse>`)
	})
	internet := cloudtest.New(t, map[string]http.Handler{
		"*.s3.eu-west-1.amazonaws.com": s, "s3.eu-west-1.amazonaws.com": s, "sts.eu-west-1.amazonaws.com": identity,
	})
	const key = "network/terraform.tfstate"
	return &guideCloud{
		name: key,
		environ: func(base []string) []string {
			return quietly(internet.Environ(base), "AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY="+canary)
		},
		get:        func() string { return string(s.Get("acme-tf-state", key)) },
		hold:       func() string { s.Put("acme-tf-state", key+".tflock", []byte(heldBy)); return "4711" },
		isHeld:     func() bool { return s.Get("acme-tf-state", key+".tflock") != nil },
		everything: func() [][]byte { return s.Everything("acme-tf-state") },
	}
}

// inGoogle is Google Cloud Storage.
func inGoogle(t *testing.T) *guideCloud {
	t.Helper()
	s := gcstest.New("acme-tf-state")
	internet := cloudtest.New(t, map[string]http.Handler{"storage.googleapis.com": s})
	const object, lock = "network/default.tfstate", "network/default.tflock"
	return &guideCloud{
		block: "gcs.hcl", name: object,
		environ: func(base []string) []string {
			return quietly(internet.Environ(base), "GOOGLE_OAUTH_ACCESS_TOKEN="+gcstest.Token)
		},
		get:        func() string { return string(s.Get("acme-tf-state", object).Data) },
		hold:       func() string { return s.Put("acme-tf-state", lock, gcstest.Object{Data: []byte(heldBy)}) },
		isHeld:     func() bool { return s.Get("acme-tf-state", lock) != nil },
		everything: func() [][]byte { return s.Everything("acme-tf-state") },
	}
}

// inAzure is Azure Storage, with Microsoft's service to sign in.
func inAzure(t *testing.T) *guideCloud {
	t.Helper()
	account := azuretest.New("tfstate")
	account.Writes, account.Actions = true, []string{azuretest.ReadAction, azuretest.WriteAction}
	internet := cloudtest.New(t, map[string]http.Handler{
		azuretest.Account + ".blob.core.windows.net": account, "login.microsoftonline.com": account,
	})
	const key, lease = "network/terraform.tfstate", "11111111-2222-4333-8444-555555555555"
	return &guideCloud{
		block: "azurerm.hcl", name: key,
		more: "\n  use_azuread_auth     = true",
		environ: func(base []string) []string {
			return quietly(internet.Environ(base), "ARM_USE_CLI=false", "ARM_TENANT_ID="+azuretest.Tenant,
				"ARM_CLIENT_ID="+azuretest.ClientID, "ARM_CLIENT_SECRET="+azuretest.Secret)
		},
		get: func() string { return string(account.Get("tfstate", key)) },
		hold: func() string {
			account.Change("tfstate", key, true, func(b *azuretest.Blob) {
				b.Lease = lease
				b.Metadata["terraformlockid"] = base64.StdEncoding.EncodeToString([]byte(strings.Replace(heldBy, "4711", lease, 1)))
			})
			return lease
		},
		isHeld:     func() bool { return account.Look("tfstate", key).Lease != "" },
		everything: func() [][]byte { return [][]byte{account.Get("tfstate", key)} },
	}
}

// TestRealGuideOfClouds runs the commands of the guide without an account, on fake-gcs-server and Azurite.
func TestRealGuideOfClouds(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *guideCloud{
		"fake-gcs-server": func(t *testing.T) *guideCloud {
			t.Helper()
			origin := gcstest.StartReal(t, "acme-tf-state")
			return &guideCloud{
				block: "gcs.hcl", name: "network/default.tfstate",
				more:    "\n  storage_custom_endpoint = \"" + origin + "/storage/v1/\"\n  access_token = \"any\"",
				environ: func(base []string) []string { return quietly(cloudtest.Isolated(base)) },
			}
		},
		"Azurite": startAzurite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			bin, dir := filepath.Dir(built(t)), c.folder(t)
			environ := append(c.environ(world.World{}.Environ().Pairs()), "HOME="+dir, "PATH="+programs(t)+":"+bin+":"+os.Getenv("PATH"))
			out := runBlocks(t, "encrypted-state-clouds", dir, environ)
			if strings.Count(out, "No changes.") != 2 || !strings.Contains(out, c.name+": encrypted") {
				t.Errorf("it prints %s", out)
			}
			if out, err := script(t, "statecrypt verify -backend -config new.hcl", dir, environ); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// startAzurite starts Azurite with its usual account. OpenTofu reaches it as if it were Azure.
func startAzurite(t *testing.T) *guideCloud {
	t.Helper()
	const account = "devstoreaccount1"
	program, port := testkit.Program(t, "STATECRYPT_AZURITE"), nettest.Port(t)
	address := net.JoinHostPort("127.0.0.1", port)
	args := []string{"--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence", "--blobHost", "127.0.0.1",
		"--blobPort", port}
	servertest.Start(t, program, args, "AZURITE_ACCOUNTS="+account+":"+azuretest.Key).Await(t, func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	url := "http://" + address + "/" + account
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url+"/tfstate?restype=container", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Ms-Date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("X-Ms-Version", "2023-11-03")
	r.Header.Set("Authorization", "SharedKey "+account+":"+azuretest.SignFor(account, r))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("the container was not created: %s", answer.Status)
	}
	internet := cloudtest.New(t, map[string]http.Handler{
		account + ".blob.core.windows.net": &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", address, r.In.Host
		}},
	})
	return &guideCloud{
		block: "azurerm.hcl", name: "network/terraform.tfstate", user: account, less: true,
		more:    "\n  blob_endpoint = \"" + url + "\"\n  access_key = \"" + azuretest.Key + "\"",
		environ: func(base []string) []string { return quietly(internet.Environ(base)) },
	}
}
