package provider

import (
	"fmt"
	"strings"
)

// mistakenGit are repositories, refs and paths of git, and its credentials.
func (p *mistakenPlace) mistakenGit() []mistake {
	good := textProvider(staticText)
	private := reads("s", fromGit(p.git.URL, "main", "s"))
	return []mistake{
		{name: "git, token in the address, and nobody there", provider: good, body: `data "statecrypt_remote_state" "s" {
  git {
    repository = "https://x8Kq-zP2w9LmN3vR7tYb@127.0.0.1:1/a/b.git"
    path       = "s"
  }
}
`},
		{name: "git, no such branch", cli: true, provider: good, body: p.fromRepo("nope", "s")},
		{name: "git, branch misspelt", provider: good, body: p.fromRepo("mian", "s")},
		{name: "git, short commit id", provider: good, body: p.fromRepo("abc1234", "s")},
		{name: "git, no such commit", provider: good, body: p.fromRepo(strings.Repeat("ab", 20), "s")},
		{name: "git, no such file", provider: good, body: p.fromRepo("main", "gone")},
		{name: "git, file in another folder", provider: good, body: p.fromRepo("main", "terraform.tfstate")},
		{name: "git, path misspelt", provider: good, body: p.fromRepo("main", "networks/terraform.tfstate")},
		{name: "git, path in another case", provider: good, body: p.fromRepo("main", "Network/terraform.tfstate")},
		{name: "git, folder misspelt in a large repository", provider: good, body: p.fromRepo("large", "envs/prd/terraform.tfstate")},
		{name: "git, a directory", provider: good, body: p.fromRepo("main", "network")},
		{name: "git, credentials missing", provider: good, body: private},
		{name: "git, credentials wrong", body: private,
			provider: credentialsAt("git", p.git.Origin+"/", "username = \"ci\"\npassword = \"wrong\"")},
		{name: "git, credentials for another path", provider: credentialsAt("git", p.git.Origin+"/other/", "username = \"ci\"\npassword = \"x\""),
			body: private},
		{name: "git, ref like an option", provider: good, body: p.fromRepo("--upload-pack=x", "s")},
		{name: "git, path that climbs", provider: good, body: p.fromRepo("main", "../s")},
		{name: "git, absolute path", provider: good, body: p.fromRepo("main", "/s")},
		{name: "git, transport", provider: good, body: reads("s", fromGit("ext::sh -c id", "main", "s"))},
		{name: "git, no such repository", provider: good, body: reads("s", fromGit("file:///no/such/repository", "main", "s"))},
		{name: "git, on_locked", provider: good, body: reads("s", strings.Replace(fromGit(p.repo.FileURL(), "main", "s"), "\n}",
			"\non_locked = \"fail\"\n}", 1))},
		{name: "git, module source", body: from("git", "repository = \"git::https://git.example.com/infra.git\"\nref = \"main\"\npath = \"s\""),
			provider: good},
		{name: "git, no scheme", body: from("git", "repository = \"git.example.com/acme/infra\"\nref = \"main\"\npath = \"s\""), provider: good},
		{name: "git, origin/main", body: p.fromRepo("origin/main", "s"), provider: good},
		{name: "git, password in the address", body: reads("s", fromGit("https://ci:pw@git.example.com/infra.git", "main", "s")), provider: good},
		{name: "git, empty ref", body: p.fromRepo("", "s"), provider: good},
		{name: "git, empty path", body: p.fromRepo("main", ""), provider: good},
		{name: "git, password of the environment", env: "GIT_PASSWORD=secret", body: private},
		{name: "git, username alone", provider: credentialsAt("git", p.git.Origin+"/", "username = \"ci\""), body: private},
		{name: "git, ca_file of nobody", provider: credentials("git",
			fmt.Sprintf("url = %q\nca_file = %q", p.git.Origin+"/", p.dir+"/ca.pem")), body: private},
		{name: "git, ssh key of nobody", provider: credentials("git", "url = \"ssh://git.example.com/\"\nssh_private_key_file = "+
			quote(p.dir+"/id_ed25519")), body: reads("s", fromGit("ssh://git@git.example.com/infra.git", "main", "s"))},
		{name: "git, one url twice", provider: settings(fmt.Sprintf("credentials {\ngit {\nurl = %[1]q\n}\ngit {\nurl = %[1]q\n}\n}",
			p.git.Origin+"/")), body: private},
		{name: "git, block without credentials", provider: credentialsAt("git", p.git.Origin+"/", ""), body: private},
		{name: "git, an address of scp in credentials", provider: credentials("git", "url = \"git@git.example.com:acme\"\npassword = \"p\""),
			body: private},
		{name: "git, address of a page", provider: good, body: reads("s", fromGit(p.server.URL+"/acme/infra/tree/main", "main", "s"))},
		{name: "git, folder after two slashes", provider: good, body: reads("s", fromGit("https://git.example.com/a.git//network", "main", "s"))},
		{name: "git, ref in the address", provider: good, body: reads("s", fromGit("https://git.example.com/a.git?ref=main", "main", "s"))},
		{name: "git, colon after ssh", cli: true, provider: good, body: reads("s", fromGit("ssh://git@git.example.com:acme/a.git", "main", "s"))},
		{name: "git, placeholder", provider: good, body: reads("s", fromGit("https://git.example.com/<GROUP>/a.git", "main", "s"))},
		{name: "git, number of a pull request", provider: good, body: p.fromRepo("#12", "s")},
		{name: "git, full name of a branch", provider: good, body: p.fromRepo("refs/heads/mian", "s")},
		{name: "git, name of the repository in path", provider: good, body: p.fromRepo("main", "infra/network/terraform.tfstate")},
		{name: "git, pattern", provider: good, body: p.fromRepo("main", "network/*.tfstate")},
		{name: "git, path is an address", provider: good, body: p.fromRepo("main", "https://git.example.com/s")},
		{name: "git, token as a parameter", cli: true, body: from("git", "path = \"s\"\nrepository = "+
			"\"https://git.example.com/acme/infra.git?private_token=t\""), provider: good},
		{name: "git, password in an address of ssh", body: from("git", "path = \"s\"\nrepository = "+
			"\"ssh://git:p@git.example.com/acme/infra.git\""), provider: good},
		{name: "git, variable of the environment in quotation marks", env: `GIT_USERNAME="ci"`, body: from("git", "path = \"s\"\nrepository = "+
			"\"/no/such/repository\""), provider: good},
		{name: "git, repository as a module names it",
			body: from("git", "path = \"s\"\nrepository = \"git::https://git.example.com/acme/infra.git//network?ref=v1\""), provider: good},
		{name: "git, path with a repository before it",
			body:     from("git", "path = \"https://git.example.com/acme/infra.git//s\"\nrepository = \"https://127.0.0.1:1/acme/infra.git\""),
			provider: good},
		{name: "git, folder of a checkout", body: from("git", "path = \"s\"\nrepository = \".\""), provider: good},
	}
}

// mistakenHTTP are addresses and answers, and credentials for an address.
func (p *mistakenPlace) mistakenHTTP() []mistake {
	good := textProvider(staticText)
	read := p.in("sealed")
	forbidden := p.fromServer("/private")
	return []mistake{
		{name: "http, sign-in page", provider: good, body: p.fromServer("/login")},
		{name: "http, redirect to a sign-in page", provider: good, body: p.fromServer("/redirect")},
		{name: "http, 404", provider: good, body: p.fromServer("/gone")},
		{name: "http, 404 with credentials", provider: credentialsAt("http", p.server.URL+"/", `bearer_token = "t"`), body: p.fromServer("/gone")},
		{name: "http, 401", provider: good, body: forbidden},
		{name: "http, 401 with credentials", provider: credentialsAt("http", p.server.URL+"/", `bearer_token = "t"`), body: forbidden},
		{name: "http, credentials for another path", provider: credentialsAt("http", p.server.URL+"/other/", `bearer_token = "t"`),
			body: forbidden},
		{name: "http, 403", cli: true, provider: good, body: p.fromServer("/forbidden")},
		{name: "http, 500", provider: good, body: p.fromServer("/broken")},
		{name: "http, password in the address", provider: good, body: reads("s", fromHTTP("https://ci:pw@state.example.com/"))},
		{name: "http, token in the address", provider: good, body: reads("s", fromHTTP("https://state.example.com/?private_token=x"))},
		{name: "http, no scheme", provider: good, body: reads("s", fromHTTP("state.example.com"))},
		{name: "http, nobody there", provider: good, body: reads("s", fromHTTP("http://127.0.0.1:1/"))},
		{name: "credentials without url", cli: true, provider: settings("credentials {\nhttp {}\n}"), body: forbidden},
		{name: "credentials, url without host", provider: credentialsAt("http", "state.example.com", `bearer_token = "t"`), body: forbidden},
		{name: "http, 401 with one of two blocks", body: forbidden, provider: settings(fmt.Sprintf("credentials {\nhttp {\nurl = "+
			"\"https://state.example.com/\"\n}\nhttp {\nurl = \"%s/\"\nbearer_token = \"t\"\n}\n}", p.server.URL))},
		{name: "credentials, an empty password", body: forbidden, provider: credentials("http",
			"url = \""+p.server.URL+"\"\nusername = \"ci\"\npassword = \"\"")},
		{name: "credentials, url without a scheme", body: from("http", `address = "https://state.example.com/s"`),
			provider: credentials("http", "url = \"git@state.example.com:443/acme\"\nbearer_token = \"x\"")},
		{name: "http, token with a line break", provider: credentialsAt("http", p.server.URL+"/", "bearer_token = \"t\\n\""), body: forbidden},
		{name: "http, password without a username", provider: credentialsAt("http", p.server.URL+"/", "password = \"p\""), body: forbidden},
		{name: "http, password with a line break", body: forbidden,
			provider: credentialsAt("http", p.server.URL+"/", "username = \"u\"\npassword = \"p\\n\"")},
		{name: "http, credentials for another host", provider: credentials("http", "url = \"https://state.example.com/\"\nbearer_token = \"t\""),
			body: forbidden},
		{name: "http, credentials of git", provider: credentialsAt("git", p.server.URL+"/", "username = \"u\"\npassword = \"p\""),
			body: forbidden},
		{name: "http, an address of go-getter", body: reads("s", fromHTTP("git::https://example.com/infra.git")), provider: good},
		{name: "http, password of the environment", env: "TF_HTTP_PASSWORD=secret", body: forbidden},
		{name: "http, an address of S3", body: reads("s", fromHTTP("s3://acme-states/network")), provider: good},
		{name: "http, a space at the end", body: p.fromServer("/gone "), provider: good},
		{name: "http, token with Bearer", body: forbidden, provider: credentialsAt("http", p.server.URL+"/", "bearer_token = \"Bearer t\"")},
		{name: "http, token in quotes", body: forbidden, provider: credentialsAt("http", p.server.URL+"/", "bearer_token = \"'t'\"")},
		{name: "http, block without credentials", provider: credentialsAt("http", p.server.URL+"/", ""), body: forbidden},
		{name: "http, page of a file", provider: good, body: p.fromServer("/acme/infra/blob/main/s")},
		{name: "http, placeholder", cli: true, provider: good, body: reads("s", fromHTTP("https://gitlab.com/api/v4/projects/<ID>/s"))},
		{name: "http, 400", provider: good, body: p.fromServer("/bad")},
		{name: "url of credentials is null", provider: credentials("git", "url = null"), body: read},
		{name: "http, header with its value", body: from("http", `address = "https://git.example.com/s"`), provider: credentials("http",
			"url = \"https://git.example.com/\"\nheaders = { \"PRIVATE-TOKEN: t\" = \"\" }")},
		{name: "http, scheme without a colon", body: from("http", `address = "https//git.example.com/s"`), provider: good},
		{name: "http, scheme twice", body: from("http", `address = "https://https://git.example.com/s"`), provider: good},
		{name: "http, scheme with one slash", body: from("http", `address = "https:/git.example.com/s"`), provider: good},
		{name: "http, an address of git", body: from("http", `address = "ssh://git@git.example.com/acme/infra.git"`), provider: good},
	}
}
