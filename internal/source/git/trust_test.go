package git

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// marker is a program that leaves a file behind if it runs.
func marker(t *testing.T) (program, ran string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	dir := t.TempDir()
	program, ran = filepath.Join(dir, "program"), filepath.Join(dir, "ran")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ntouch '"+ran+"'\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, ran
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestEnvironmentIsOff: without a LookupEnv, no variable that is git's or ssh's
// own reaches it, and none can have it run a program. With one, they do: it is
// the user's set-up.
//
// Promise: use_environment = false (git)
func TestEnvironmentIsOff(t *testing.T) {
	repo := stateRepo(t)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "u", Password: "p"})
	const ssh = "ssh://git@127.0.0.1:1/acme/infra.git"
	for name, c := range testkit.Some(map[string]struct {
		address string
		env     func(program string) vars
	}{
		"GIT_SSH_COMMAND": {address: ssh, env: func(p string) vars { return vars{"GIT_SSH_COMMAND": p} }},
		"GIT_SSH":         {address: ssh, env: func(p string) vars { return vars{"GIT_SSH": p} }},
		"GIT_ASKPASS":     {address: server.URL, env: func(p string) vars { return vars{"GIT_ASKPASS": p} }},
		"GIT_CONFIG_COUNT": {address: server.URL, env: func(p string) vars {
			return vars{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "credential.helper", "GIT_CONFIG_VALUE_0": "!" + p}
		}},
		"GIT_CONFIG_PARAMETERS": {address: server.URL, env: func(p string) vars {
			return vars{"GIT_CONFIG_PARAMETERS": "'credential.helper'='!" +
				p + "'"}
		}},
		"GIT_CONFIG_GLOBAL": {address: server.URL, env: func(p string) vars {
			config := p + ".config"
			if err := os.WriteFile(config, []byte("[credential]\n\thelper = !"+p+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return vars{"GIT_CONFIG_GLOBAL": config}
		}},
	}) {
		t.Run(name, func(t *testing.T) {
			for _, on := range []bool{true, false} {
				program, ran := marker(t)
				for name, value := range c.env(program) {
					t.Setenv(name, value)
				}
				r := newTestRun(t, nil)
				if !on {
					r = newReader(source.Settings{Credentials: source.Credentials{Table: credentialsTable()}}.For(Kind()))
					r.tempDir = t.TempDir()
				}
				_, err := read(t, r, place{repository: c.address, path: "s"})
				mustFail(t, err)
				if exists(ran) != on {
					t.Errorf("the environment is on: %v; the program ran: %v", on, exists(ran))
				}
			}
		})
	}
}

// TestChildrenGetNoEnvironment asks a child, which the user's own configuration
// file names.
//
// Promise: use_environment = false
func TestChildrenGetNoEnvironment(t *testing.T) {
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Username: "u", Password: "p"})
	home := t.TempDir()
	log := filepath.ToSlash(filepath.Join(home, "env"))
	config := "[credential]\n\thelper = \"!f() { env > '" + log + "'; echo username=u; echo password=p; }; f\"\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	names := []string{
		"GIT_PROXY_COMMAND", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_SSL_NO_VERIFY", "GIT_SSL_CAINFO", "GIT_HTTP_USER_AGENT",
		"HTTP_PROXY", "https_proxy", "ALL_PROXY", "SSH_AUTH_SOCK", "SSH_ASKPASS", "XDG_CONFIG_HOME", "GH_TOKEN", "AWS_PROFILE", "DISPLAY",
	}
	for _, name := range names {
		t.Setenv(name, canary)
	}
	r := newReader(source.Settings{}.For(Kind()))
	r.tempDir = t.TempDir()
	mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	mustNotHold(t, "the environment of a child", string(text), canary)
}

// switches turn verification off for origin, each in another way.
func switches(t *testing.T, origin string) map[string]vars {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "git", "config")
	if err := os.Mkdir(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("[http]\n\tsslVerify = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]vars{
		"GIT_CONFIG_GLOBAL":                {"GIT_CONFIG_GLOBAL": config},
		"GIT_CONFIG_SYSTEM":                {"GIT_CONFIG_SYSTEM": config, "GIT_CONFIG_NOSYSTEM": "0"},
		"XDG_CONFIG_HOME":                  {"XDG_CONFIG_HOME": dir},
		"include":                          {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "Include.Path", "GIT_CONFIG_VALUE_0": config},
		"include in GIT_CONFIG_PARAMETERS": {"GIT_CONFIG_PARAMETERS": "'include.path'='" + config + "'"},
		"GIT_SSL_NO_VERIFY":                {"GIT_SSL_NO_VERIFY": "1"},
		"GIT_SSL_NO_VERIFY, empty":         {"GIT_SSL_NO_VERIFY": ""},
		"GIT_CONFIG_COUNT":                 {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.sslVerify", "GIT_CONFIG_VALUE_0": "false"},
		"GIT_CONFIG_PARAMETERS":            {"GIT_CONFIG_PARAMETERS": "'http.sslVerify'='false'"},
		"GIT_CONFIG_PARAMETERS of old":     {"GIT_CONFIG_PARAMETERS": "'core.pager=x' 'http.SSLVERIFY=0'"},
		"GIT_CONFIG_COUNT, by URL": {
			"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c",
			"GIT_CONFIG_KEY_1": "HTTP." + origin + "/acme.SSLverify", "GIT_CONFIG_VALUE_1": "no",
		},
	}
}

// TestManInTheMiddle: whoever sets such a variable for the secrets of other
// variables does not hand out the password of the provider block.
//
// Promise: Where secrets go
func TestManInTheMiddle(t *testing.T) {
	long(t)
	t.Parallel()
	thief := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{TLS: true})
	at := place{repository: thief.URL, path: "s"}
	own := vars{"url": thief.Origin, "username": "u", "password": canary}
	authority := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(authority, []byte("[http]\n\tsslCAInfo = "+filepath.ToSlash(thief.CAFile)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	trust := map[string]vars{
		"GIT_SSL_CAINFO": {"GIT_SSL_CAINFO": thief.CAFile},
		"include under a condition": {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "includeIf.gitdir:/**.path",
			"GIT_CONFIG_VALUE_0": authority},
		"http.sslCAInfo": {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.sslCAInfo", "GIT_CONFIG_VALUE_0": thief.CAFile},
	}
	for _, table := range []map[string]vars{testkit.Some(switches(t, thief.Origin)), trust} {
		for name, environ := range table {
			t.Run(name, func(t *testing.T) {
				thief.Reset()
				r := newTestRun(t, nil, own)
				r.environ = append(r.environ, environ.environ()...)
				_, err := read(t, r, at)
				mustFail(t, err, "certificate")
				if got := thief.Authorizations(); len(got) > 0 {
					t.Errorf("the thief got %q", got)
				}
			})
		}
	}
	off := switches(t, thief.Origin)
	kinds := []struct {
		name  string
		env   vars
		block []vars
	}{
		{name: "of the same family", env: vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary}, block: []vars{{"url": thief.Origin}}},
		{name: "of the same family, file", env: vars{repositoryVar: thief.URL, refVar: "main", "GIT_USERNAME": "u", "GIT_PASSWORD": canary}},
		{name: "git's own setup"},
	}
	every := len(kinds) / testkit.Rounds(len(kinds)) // each switch with one of the kinds, and with all in "make soak"
	for i, c := range kinds {
		t.Run(c.name, func(t *testing.T) {
			for j, name := range slices.Sorted(maps.Keys(testkit.Some(off))) {
				if (i+j)%every != 0 {
					continue
				}
				r := newTestRun(t, c.env, c.block...)
				r.environ = append(r.environ, off[name].environ()...)
				if s := mustRead(t, r, at, "state"); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0].Text, "not verified") {
					t.Errorf("%s: warnings %q", name, s.Warnings)
				}
			}
			for name, environ := range testkit.Some(trust) {
				r := newTestRun(t, c.env, c.block...)
				r.environ = append(r.environ, environ.environ()...)
				if s := mustRead(t, r, at, "state"); len(s.Warnings) != 0 {
					t.Errorf("%s: warnings %q", name, s.Warnings)
				}
			}
		})
	}
	t.Run("the rest of GIT_CONFIG_COUNT is kept", func(t *testing.T) {
		r := newTestRun(t, nil, vars{"url": thief.Origin, "ca_file": thief.CAFile})
		thief.Reset()
		r.environ = append(r.environ, "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=http.sslVerify", "GIT_CONFIG_VALUE_0=false",
			"GIT_CONFIG_KEY_1=url."+thief.Origin+"/there/.insteadOf", "GIT_CONFIG_VALUE_1="+thief.Origin+"/here/")
		if s := mustRead(t, r, place{repository: thief.Origin + "/here/x", path: "s"}, "state"); len(s.Warnings) != 0 {
			t.Errorf("warnings %q", s.Warnings)
		}
		for _, request := range thief.Requests() {
			if !strings.HasPrefix(request.Path, "/there/x/") {
				t.Errorf("the user's configuration is lost: %s", request.Path)
			}
		}
	})
}

// TestHeadersOfVariables: beside a block's password, no variable writes a part of
// the request that carries it. A server may keep the pages of many.
//
// Promise: Where secrets go
func TestHeadersOfVariables(t *testing.T) {
	long(t)
	t.Parallel()
	for name, environ := range map[string]vars{
		"Host":             {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": "Host: evil.test"},
		"a second request": {"GIT_HTTP_USER_AGENT": "x\r\nHost: evil.test"},
		"one of a setting": {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.userAgent", "GIT_CONFIG_VALUE_0": "x\r\nX-Evil: evil.test"},
		"any header":       {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": "X-Evil: evil.test"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen nettest.Log[string]
			server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Before: func(_ http.ResponseWriter, r *http.Request) bool {
				seen.Note(r.Host + " " + fmt.Sprint(r.Header))
				return false
			}})
			r := newTestRun(t, nil, vars{"url": server.Origin, "username": "u", "password": canary})
			r.environ = append(r.environ, environ.environ()...)
			mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
			mustNotHold(t, "a request", fmt.Sprint(seen.All()), "evil.test")
		})
	}
}

func (v vars) environ() (pairs []string) {
	for name, value := range v {
		pairs = append(pairs, name+"="+value)
	}
	return pairs
}

// TestUnverifiedWarns: the user's own files may turn verification off, for one
// server or for all, and each read says so; but not beside the password of a block.
//
// Promise: Verified connections
func TestUnverifiedWarns(t *testing.T) {
	long(t)
	t.Parallel()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{TLS: true})
	at := place{repository: server.URL, path: "s"}
	for config, warns := range testkit.Some(map[string]bool{
		"[http]\n\tsslVerify = false\n":                                                        true,
		"[http \"" + server.Origin + "\"]\n\tsslVerify = no\n":                                 true,
		"[http \"" + server.Origin + "/acme\"]\n\tsslverify = 0\n[http]\n\tsslVerify = true\n": true,
		"[http]\n\tsslVerify = false\n[http \"" + server.Origin + "\"]\n\tsslVerify\n\tsslCAInfo = " + filepath.ToSlash(server.CAFile) +
			"\n": false,
		"[http]\n\tsslCAInfo = " + filepath.ToSlash(server.CAFile) + "\n": false,
	}) {
		for _, block := range [][]vars{nil, {{"url": server.Origin, "username": "u", "password": "p"}}} {
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			r := newTestRun(t, nil, block...)
			r.environ = append(r.environ, "HOME="+home)
			if block != nil && warns {
				_, err := read(t, r, at)
				mustFail(t, err, "certificate")
				continue
			}
			s := mustRead(t, r, at, "state")
			if warned := len(s.Warnings) == 1 && strings.Contains(s.Warnings[0].Text, "not verified"); warned != warns {
				t.Errorf("%s: warnings %q", config, s.Warnings)
			}
		}
	}
	t.Run("by another name", func(t *testing.T) {
		home := t.TempDir()
		config := "[url \"" + server.Origin + "/\"]\n\tinsteadOf = https://git.example.invalid/\n[http \"" + server.Origin +
			"\"]\n\tsslVerify = false\n"
		if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		r := newTestRun(t, nil)
		r.environ = append(r.environ, "HOME="+home)
		if s := mustRead(t, r, place{repository: "https://git.example.invalid/x", path: "s"}, "state"); len(s.Warnings) != 1 {
			t.Errorf("warnings %q", s.Warnings)
		}
	})
}
