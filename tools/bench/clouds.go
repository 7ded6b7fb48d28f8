package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// scope does for helpers of tests what a test does for them.
type scope struct {
	testing.TB

	dir  string
	ends []func()
}

func (*scope) Helper()            {}
func (*scope) Fatal(args ...any)  { panic(fmt.Sprint(args...)) }
func (*scope) Skip(args ...any)   { panic(fmt.Sprint(args...)) }
func (s *scope) Cleanup(f func()) { s.ends = append(s.ends, f) }
func (s *scope) TempDir() string  { return s.dir }

func (s *scope) end() {
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
}

// cloud is a service for which a fake stands in, at the address of the service and at another one.
type cloud struct {
	name, host string
	handler    http.Handler
	path       string                         // of the other address
	block      func(state, url string) string // url is the other address, or ""
	environ    []string
	asked      func() int // returns the number of requests since the last call
}

// cloudsRow counts the requests that an apply without changes sends to Google Cloud Storage and to Azure Storage, under
// wrap and with Terraform's own backends. On other servers, wrap sends more of them, because it tests the server.
func (b *bench) cloudsRow() (lines []line, err error) {
	google, azure := gcstest.New("states"), azuretest.New("states")
	azure.Writes = true
	for _, c := range []cloud{
		{
			name: "in Google Cloud Storage", host: "storage.googleapis.com", handler: google, path: "/storage/v1/",
			block: func(state, url string) string {
				if url != "" {
					url = "\n  storage_custom_endpoint = \"" + url + "\""
				}
				return "backend \"gcs\" {\n  bucket = \"states\"\n  prefix = \"" + state + "\"\n  access_token = \"" + gcstest.Token +
					"\"" + url + "\n}"
			},
			asked: func() int { return len(google.Requests()) },
		},
		{
			name: "in Azure Storage", host: azuretest.Account + ".blob.core.windows.net", handler: azure, path: "/" + azuretest.Account,
			block: func(state, url string) string {
				if url != "" {
					url = "\n  blob_endpoint = \"" + url + "\""
				}
				return "backend \"azurerm\" {\n  storage_account_name = \"" + azuretest.Account + "\"\n  container_name = \"states\"\n  key = \"" +
					state + "\"" + url + "\n}"
			},
			environ: []string{"ARM_ACCESS_KEY=" + azuretest.Key},
			asked:   func() int { return len(azure.Requests()) },
		},
	} {
		more, err := b.countIn(c)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

func (b *bench) countIn(c cloud) ([]line, error) {
	s := &scope{dir: b.dir}
	defer s.end()
	internet := cloudtest.New(s, map[string]http.Handler{c.host: c.handler})
	environ := append(internet.Environ(nil), c.environ...)
	elsewhere := nettest.Serve(s, c.handler) + c.path
	var asked []int
	for i, m := range []struct{ backend, block string }{
		{c.block("own", ""), ""},
		{`backend "http" {}`, c.block("wrapped", "")},
		{`backend "http" {}`, c.block("elsewhere", elsewhere)},
	} {
		command, err := b.applyOf(fmt.Sprintf("%s %d", c.name, i), m.backend, m.block, environ...)
		if err != nil {
			return nil, err
		}
		c.asked()
		if _, err := b.run(command); err != nil {
			return nil, err
		}
		asked = append(asked, c.asked())
	}
	beside := func(name string, here, more int) line {
		return line{
			name: name, here: fmt.Sprint(here), peer: fmt.Sprint(asked[0]), ratio: float64(here) / float64(asked[0]),
			most: float64(asked[0]+more) / float64(asked[0]),
		}
	}
	return []line{
		beside("apply without changes, a state of 1 MiB encrypted "+c.name+", under wrap: beside Terraform's own backend, requests", asked[1], 2),
		beside("the same on another server, which wrap tests", asked[2], 6),
	}, nil
}
