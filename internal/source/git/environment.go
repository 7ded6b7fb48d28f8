package git

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// environment returns the variables of this process that git gets: the ones that git, ssh and their helpers
// are known to use. If secret is true, git receives a secret from the configuration, and only gets the
// machine's variables and the ones that every program needs. Files in the home directory stay in effect in
// both cases.
func (r *run) environment(secret bool) world.Environ {
	w := r.world.Beside(secret)
	return w.Environ().With(r.environ...).Only(func(name string) bool { return w.Gives(name) && isForGit(name) })
}

// forCommits lists the variables for git and for programs that sign commits. A name that ends with * matches
// all names with that prefix. All other variables are withheld. They include variables that write connection
// keys to a file (SSLKEYLOGFILE), turn on traces that show headers (GIT_TRACE*), make libraries load code
// (OPENSSL_CONF, OPENSSL_MODULES), or belong to the repository whose hook runs Terraform (GIT_DIR and the
// others of git rev-parse --local-env-vars).
var forCommits = []string{
	// Where git's programs and libraries are. (PATH is always passed on.)
	"GIT_EXEC_PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "MSYSTEM",
	// The shell that runs the commands in ssh and agent configurations.
	"SHELL", "COMSPEC",
	// The user's configuration; see withhold.
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "XDG_CONFIG_HOME", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_*",
	"GIT_CONFIG_VALUE_*", "GIT_CONFIG_PARAMETERS",
	// The authors and dates of commits.
	"GIT_AUTHOR_*", "GIT_COMMITTER_*", "EMAIL",
	// The user's ssh agent.
	"SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_SK_PROVIDER",
	// The session and its keyring, for helpers and agents.
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "GNUPGHOME", "GPG_TTY",
}

// forTalks lists the variables, in addition to [forCommits], for git, ssh and the programs that give git a
// password.
var forTalks = []string{
	// The machine's proxies, and git's HTTP settings.
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "GIT_HTTP_*",
	// The machine's certificate authorities, and the user's TLS settings; see withhold.
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "GIT_SSL_*", "GIT_PROXY_SSL_*",
	// The user's ssh command, and the programs that ask for its passphrases.
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE",
	// Programs that ask for passwords, the helpers of hosts and clouds, and Kerberos.
	"PASSWORD_STORE_*", "GIT_ASKPASS", "VSCODE_GIT_*", "AWS_*", "AZURE_*", "CLOUDSDK_*", "GOOGLE_APPLICATION_CREDENTIALS", "GCM_*",
	"GH_*", "GLAB_*", "GITLAB_*", "CI_JOB_TOKEN", "SYSTEM_ACCESSTOKEN", "KRB5CCNAME", "KRB5_CONFIG", "KRB5_CLIENT_KTNAME",
}

// isForGit reports whether git gets the variable called name. The name must be in upper case, because Windows
// ignores the case.
func isForGit(name string) bool { return isForCommits(name) || isAmong(forTalks, name) }

func isForCommits(name string) bool { return world.IsBare(name) || isAmong(forCommits, name) }

func isAmong(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, prefix)
	})
}

var (
	tlsVariable = lazyregexp.New(`^GIT_(PROXY_)?SSL_`)
	tlsSetting  = lazyregexp.New(`(?i)^http\.(.*\.)?(proxy)?(ssl|schannel)[a-z]*$|^include(if)?\.`)
	tlsWord     = lazyregexp.New(`(?i)ssl|schannel|include`)
	configFile  = lazyregexp.New(`^(GIT_CONFIG_(GLOBAL|SYSTEM)|XDG_CONFIG_HOME)$`)
)

// withhold returns environ without the user's TLS settings if the block sets ca_file. It removes TLS
// variables and variables that name a configuration file. Files in the home directory and system files stay
// in effect, and so do variables that disable such files. GIT_CONFIG_PARAMETERS, which git -c sets, would
// override our settings, so it is removed entirely if it mentions TLS or an include.
func (a *access) withhold(environ world.Environ) world.Environ {
	if a.caFile == "" {
		return environ
	}
	return without(environ, tlsSetting, tlsWord).Only(func(name string) bool {
		value, _ := environ.Lookup(name)
		return !tlsVariable.MatchString(name) && (!configFile.MatchString(name) || value == "" || value == os.DevNull)
	})
}

// without returns environ without certain git settings. A numbered setting whose name matches setting is
// replaced by a meaningless one. GIT_CONFIG_PARAMETERS is removed entirely if it matches word.
func without(environ world.Environ, setting, word *lazyregexp.Regexp) world.Environ {
	withheld := []string{}
	kept := environ.Only(func(name string) bool {
		value, _ := environ.Lookup(name)
		if strings.HasPrefix(name, "GIT_CONFIG_KEY_") && setting.MatchString(value) {
			withheld = append(withheld, name+"=statecrypt.withheld", strings.Replace(name, "KEY", "VALUE", 1)+"=")
		}
		return name != "GIT_CONFIG_PARAMETERS" || !word.MatchString(value)
	})
	return kept.With(withheld...)
}

var (
	talkSetting = lazyregexp.New(`(?i)^(http|credential|url|remote)\.`)
	talkWord    = lazyregexp.New(`(?i)http\.|credential|url\.|remote\.`)
)

// commitEnviron returns the environment for commands that contact no server. It lacks the variables that give
// git a password.
func (d *repository) commitEnviron() world.Environ {
	env := without(d.run.environment(false), talkSetting, talkWord).Only(isForCommits)
	return d.settle(env).With("GIT_ALLOW_PROTOCOL=none")
}

// environ returns git's environment, without secrets.
func (d *repository) environ() world.Environ {
	return d.settle(d.access.withhold(d.run.environment(d.access.ownPassword)))
}

// settle adds the variables that are set for every command in the repository.
func (d *repository) settle(env world.Environ) world.Environ {
	_, asks := env.Lookup("GIT_ASKPASS")
	env = env.With(
		"GIT_DIR="+cmp.Or(d.dir, "/nonexistent"), // and never the repository that Terraform runs in
		"LC_ALL=C", // errors are recognized by git's English messages
		"GIT_TERMINAL_PROMPT=0",
		"GCM_INTERACTIVE=never",
		"GIT_ALLOW_PROTOCOL="+d.allowedProtocols(),
		"GIT_NO_LAZY_FETCH=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_TRACE2=0", "GIT_TRACE2_EVENT=0", "GIT_TRACE2_PERF=0", // trace2.* in a configuration file could log settings, including headers
	)
	if !asks || d.access.password != "" {
		env = env.With("GIT_ASKPASS=") // an empty value also makes git ignore SSH_ASKPASS
	}
	if _, set := env.Lookup("SSH_ASKPASS_REQUIRE"); !set {
		env = env.With("SSH_ASKPASS_REQUIRE=never")
	}
	if d.users != nil && d.users.ssh != "" {
		env = env.With("GIT_SSH_COMMAND=" + d.users.ssh)
	}
	return appendConfig(env, append(fixedConfig(d.run.maxStall), d.access.gitConfig()...))
}

// allowedProtocols returns the value of GIT_ALLOW_PROTOCOL. It prevents redirects and url.<base>.insteadOf
// from switching to a weaker protocol. If git gets a password from a block, ssh is not allowed.
func (d *repository) allowedProtocols() string {
	allowed := allowedProtocols[d.remote.protocol]
	if d.access.ownPassword {
		allowed = strings.TrimSuffix(allowed, ":ssh")
	}
	return allowed
}

var allowedProtocols = map[string]string{
	"https": "https:ssh",
	"http":  "http:https:ssh",
	"ssh":   "https:ssh",
	"file":  "file",
}

type setting struct{ key, value string }

func fixedConfig(stall time.Duration) []setting {
	return []setting{
		{"core.hooksPath", os.DevNull},
		{"core.fsync", "none"}, // no file outlives the process
		{"core.logAllRefUpdates", "false"},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"fetch.unpackLimit", "1"}, // packs are kept, because a filtered one is marked as incomplete
		{"fetch.writeCommitGraph", "false"},
		{"fetch.recurseSubmodules", "false"},
		{"fetch.prune", "false"},
		{"fetch.negotiationAlgorithm", "noop"}, // the repository has no commits to offer
		{"protocol.version", "2"},
		{"http.postBuffer", "1048576"},                            // git reserves this many bytes of its limited memory
		{"http.sslVersion", "tlsv1.2"},                            // the oldest version allowed; some builds of git would accept 1.0
		{"http.lowSpeedLimit", "1000"},                            // bytes per second, below which a transfer counts as stalled
		{"http.lowSpeedTime", strconv.Itoa(int(stall.Seconds()))}, // seconds until a stalled transfer is aborted
	}
}

// appendConfig adds settings to the GIT_CONFIG_COUNT variables of git-config(1). Users and CI systems may set
// such variables too, so it continues their numbering.
func appendConfig(environ world.Environ, settings []setting) world.Environ {
	text, _ := environ.Lookup("GIT_CONFIG_COUNT")
	count, err := strconv.Atoi(text)
	if err != nil || count < 0 {
		count = 0
	}
	var pairs []string
	for _, s := range settings {
		n := strconv.Itoa(count)
		pairs = append(pairs, "GIT_CONFIG_KEY_"+n+"="+s.key, "GIT_CONFIG_VALUE_"+n+"="+s.value)
		count++
	}
	return environ.With(append(pairs, "GIT_CONFIG_COUNT="+strconv.Itoa(count))...)
}
