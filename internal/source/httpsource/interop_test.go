package httpsource

import (
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
)

// What the http backend of real CLIs writes is read back. It has no workspaces.
func TestBackend(t *testing.T) {
	for _, cli := range clitest.All(t) {
		t.Run(cli.Name, func(t *testing.T) {
			var mu sync.Mutex
			var held []byte
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				user, password, _ := r.BasicAuth()
				switch {
				case user != "writer" && user != "reader" || password != "pass-"+user, r.Method != http.MethodGet && user == "reader":
					w.WriteHeader(http.StatusForbidden)
				case r.Method == http.MethodPost:
					held, _ = io.ReadAll(r.Body)
				case held == nil:
					w.WriteHeader(http.StatusNotFound)
				default:
					_, _ = w.Write(held)
				}
			})
			p := cli.Project(t, `backend "http" {
  address = "`+server.URL+`/network"
}`, "TF_HTTP_USERNAME=writer", "TF_HTTP_PASSWORD=pass-writer")
			p.Apply(t, "default")
			snap, err := at(server.URL+"/network", attrs{"url": cty.StringVal(server.URL), "username": cty.StringVal("reader"),
				"password": cty.StringVal("pass-reader")}).fetch(t)
			if err != nil {
				t.Fatal(err)
			}
			p.Compare(t, "default", snap.Data, held)
		})
	}
}
