package provider

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// Fifty data sources on one state, of each of two provider configurations.
func TestAccOneRequestPerWalk(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	server := serve(t, httptest.NewServer, gives(sealed(t, argumentsState)))
	second := strings.Replace(textProvider(staticText), "{\n", "{\nalias = \"second\"\n", 1)
	many := func(name, arguments string) string {
		return reads(name, "count = 50", arguments, fromHTTP(server.URL+"/s"))
	}
	for name, c := range map[string]struct {
		config []string
		want   int
	}{
		"one configuration":  {[]string{textProvider(staticText), many("s", "")}, 1},
		"two configurations": {[]string{textProvider(staticText), second, many("s", ""), many("t", "provider = statecrypt.second")}, 2},
		// A state is kept opened, never as a file: another method asks again.
		"two methods": {[]string{textProvider(staticText), many("s", ""),
			many("t", "method = \"method.aes_gcm.m\"\nfallback {\nmethod = \"unencrypted\"\n}")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, map[string]string{"main.tf": configuration(append(c.config,
				output("n", "length(data.statecrypt_remote_state.s)"))...)})
			walks := [][]string{{"apply", "-auto-approve"}}
			if c.want == 1 {
				walks = [][]string{{"plan"}, {"apply", "-auto-approve"}, {"apply", "-refresh-only", "-auto-approve"}}
			}
			for _, args := range walks {
				server.asked()
				p.mustRun(args...)
				if n := len(server.asked()); n != c.want {
					t.Errorf("%s: %d requests, want %d", args, n, c.want)
				}
			}
		})
	}
}

// Configure contacts nothing: credentials alone are no reason to ask anyone.
func TestAccConfigureAsksNobody(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	server := serve(t, httptest.NewServer, gives(nil))
	p := newProject(t, map[string]string{"main.tf": configuration(fmt.Sprintf(
		"provider \"statecrypt\" {\nencryption = %s\ncredentials {\nhttp {\nurl = \"%[2]s/\"\nbearer_token = \"t\"\n}\ngit {\nurl = "+
			"\"%[2]s/\"\nusername = \"ci\"\npassword = \"p\"\n}\n}\n}\n", quote(staticText), server.URL),
		reads("s", "count = 0", fromHTTP(server.URL)))})
	p.setenv("TF_HTTP_ADDRESS="+server.URL, "TF_HTTP_PASSWORD=p")
	for _, args := range [][]string{{"validate"}, {"plan"}, {"apply", "-auto-approve"}} {
		p.mustRun(args...)
	}
	if asked := server.asked(); len(asked) != 0 {
		t.Errorf("%d requests, the first for %s", len(asked), asked[0].URL)
	}
}

// bigState is a state of about 20 KB that does not compress.
func bigState(seed uint64) string {
	noise := make([]byte, 15_000)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(noise)
	return stateWith(base64.StdEncoding.EncodeToString(noise), "x")
}

func TestAccGitIsCheap(t *testing.T) {
	needAcceptance(t)
	testkit.OneIsEnough(t)
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	files := make([]gittest.File, 300)
	for i := range files {
		files[i] = gittest.File{Path: fmt.Sprintf("envs/e%03d/terraform.tfstate", i), Data: bigState(uint64(i))}
	}
	repo.Commit("refs/heads/main", files...)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "ci", Password: "p"})
	provider := fmt.Sprintf("provider \"statecrypt\" {\ncredentials {\ngit {\nurl = \"%s/\"\nusername = \"ci\"\npassword = \"p\"\n}\n}\n}\n",
		server.Origin)
	one := reads("s", `method = "unencrypted"`, fromGit(server.URL, "main", files[123].Path), `only = ["open"]`)
	twenty := reads("s", "count = 20", `method = "unencrypted"`,
		strings.Replace(fromGit(server.URL, "main", "@"), `"@"`, "format(\"envs/e%03d/terraform.tfstate\", count.index * 7)", 1), `only = []`)
	for name, c := range map[string]struct {
		config   string
		requests int
		bytes    int64
	}{
		"one file":         {one, 5, 50_000},
		"twenty files":     {twenty, 10, 20 * 50_000},
		"twenty of a file": {strings.Replace(one, "{\n", "{\ncount = 20\n", 1), 5, 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, map[string]string{"main.tf": configuration(provider, c.config)})
			for _, args := range [][]string{{"plan", "-parallelism=20"}, {"apply", "-auto-approve", "-parallelism=20"}} {
				server.Reset()
				p.mustRun(args...)
				if n, down := len(server.Requests()), server.BytesDown(); n == 0 || n > c.requests || down > c.bytes {
					t.Errorf("%s: %d requests and %d bytes, want at most %d and %d", args[0], n, down, c.requests, c.bytes)
				} else {
					t.Logf("%s: %d requests, %d bytes", args[0], n, down)
				}
			}
		})
	}
}

// A module that someone else wrote names the address. What the root module
// gives for one place must not go to a place that looks like it. A proxy plays
// every host there is.
//
// Promise: Where secrets go
func TestAccLookAlikes(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	var s secrets
	header, password, query, environment := s.add("headers"), s.add("password"), s.add("query"), s.add("TF_HTTP")
	proxy := serve(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			w.WriteHeader(http.StatusBadGateway)
		case strings.Contains(r.URL.Path, "redirect"):
			http.Redirect(w, r, "http://evil.io/redirected/", http.StatusFound)
		case strings.HasSuffix(r.URL.Path, "/info/refs") && r.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			gives([]byte(argumentsState))(w, r)
		}
	})
	covered := []string{"http://state.example.com/acme/s", "http://state.example.com/acme/deep/s", "http://state.example.com/acme/redirect"}
	coveredByEnvironment := "http://env.example.com/acme/s"
	alike := []string{
		"http://state.example.com/acme-x/s", "http://state.example.com/acme.evil/s", "http://state.example.com/ACME/s",
		"http://state.example.com/x/acme/s",
		"http://state.example.com//acme/s", "http://state.example.com/acme/../s", "http://state.example.com/acme/..%2fs",
		"http://state.example.com/acme/%2e%2e/s",
		"http://state.example.com/acme/..;/s", "http://state.example.com/acme%2fs", "http://state.example.com/%61cme/s",
		"http://state.example.com:8080/acme/s",
		"http://state.example.com.evil.io/acme/s", "http://state.example.com./acme/s", "http://evilstate.example.com/acme/s",
		"http://example.com/acme/s",
		"http://state.example.com@evil.io/acme/s", "http://evil.io/state.example.com/acme/s", "http://evil.io/?http://state.example.com/acme/s",
		"http://evil.io/#@state.example.com/acme/s", "https://state.example.com/acme/s",
		"http://env.example.com/acme-x/s", "http://env.example.com.evil.io/acme/s", "http://env.example.com:8080/acme/s",
	}
	all := append(append(slices.Clone(covered), coveredByEnvironment), alike...)
	theirs := "terraform {\nrequired_providers {\nstatecrypt = { source = \"statecrypt/statecrypt\" }\n}\n}\n"
	for i, address := range all {
		if !strings.ContainsAny(address, "#@") { // which validate refuses, and with it all the others
			theirs += reads(fmt.Sprintf("http%d", i), `method = "unencrypted"`, fromHTTP(address))
		}
		theirs += reads(fmt.Sprintf("git%d", i), `method = "unencrypted"`, fromGit(address, "main", "s"))
	}
	p := newProject(t, map[string]string{
		"main.tf": configuration(fmt.Sprintf(`provider "statecrypt" {
  credentials {
    http {
      url      = "http://state.example.com/acme/"
      username = "ci"
      password = %[1]q
      headers  = { X-Token = %[2]q }
      query    = { sig = %[3]q }
    }
    git {
      url              = "http://state.example.com/acme/"
      username         = "ci"
      password         = %[1]q
      allow_plain_http = true
    }
  }
}
module "theirs" {
  source = "./theirs"
}
`, password, header, query)),
		"theirs/main.tf": theirs,
	})
	p.setenv("HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "HTTPS_PROXY="+proxy.URL, "https_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=",
		"TF_HTTP_ADDRESS=http://env.example.com/acme/", "TF_HTTP_USERNAME=ci", "TF_HTTP_PASSWORD="+environment)
	out, _ := p.run("plan", "-parallelism=20") // some addresses are refused, and git finds no repository
	s.mustNotBeIn(t, "the output", []byte(out))

	arrived := map[string]bool{}
	for _, r := range proxy.asked() {
		text, err := httputil.DumpRequest(r, false)
		if err != nil {
			t.Fatal(err)
		}
		address := r.URL.Scheme + "://" + r.URL.Host + r.URL.EscapedPath()
		secret := s.in(text)
		arrived[strings.Join(strings.Fields(fmt.Sprint(address, " ", secret != "")), " ")] = true
		base := strings.TrimSuffix(address, "/info/refs")
		if secret != "" && !slices.Contains(covered, base) && (address != coveredByEnvironment || secret != "TF_HTTP") {
			t.Errorf("%s %s got the secret %q", r.Method, r.URL.Redacted(), secret)
		}
	}
	for _, address := range append(append(slices.Clone(covered), coveredByEnvironment), covered[0]+"/info/refs") {
		if !arrived[address+" true"] {
			t.Errorf("%s got no secret, so nothing was tested", address)
		}
	}
	for _, address := range []string{alike[0], alike[12], alike[0] + "/info/refs", "http://evil.io/redirected/"} {
		if !arrived[address+" false"] {
			t.Errorf("%s was not asked, so nothing was tested:\n%v\n%s", address, arrived, out)
		}
	}
}
