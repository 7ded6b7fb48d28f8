package git

import (
	"cmp"
	"os"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// userEnviron is what git gets of the environment of this process. If the
// environment is off, that is what any program needs in order to run, and nothing
// of git's own: no proxy, no ssh command and no ssh agent, which is reached
// through SSH_AUTH_SOCK. Files in the home directory stay in effect.
func (r *run) userEnviron() world.Environ {
	return r.world.Environ().With(r.environ...).Only(isForGit)
}

// variables are names, separated by spaces, with the reason why they are on a list.
// One that ends with * stands for all that begin like that.
type variables struct{ why, names string }

// forGit are the variables for git and ssh. What is neither here nor in withoutPassword is
// withheld, whatever it is: there are variables that write the keys of connections
// to a file (SSLKEYLOGFILE), turn on traces that show headers (GIT_TRACE*), have
// libraries load code (OPENSSL_CONF, OPENSSL_MODULES), or belong to the repository
// whose hook runs Terraform (GIT_DIR and the others of git rev-parse
// --local-env-vars).
var forGit = []variables{
	{"where the program's parts and libraries are, as PATH says where the program is",
		"GIT_EXEC_PATH LD_LIBRARY_PATH DYLD_LIBRARY_PATH MSYSTEM"},
	{"the user's configuration, see withhold",
		"GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM XDG_CONFIG_HOME GIT_CONFIG_COUNT GIT_CONFIG_KEY_* GIT_CONFIG_VALUE_* " +
			"GIT_CONFIG_PARAMETERS"},
	{"the machine's proxies, and how patient git is with servers",
		"HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY GIT_HTTP_PROXY_AUTHMETHOD GIT_HTTP_LOW_SPEED_LIMIT GIT_HTTP_LOW_SPEED_TIME " +
			"GIT_HTTP_MAX_REQUESTS GIT_HTTP_MAX_RETRIES GIT_HTTP_MAX_RETRY_TIME GIT_HTTP_RETRY_AFTER"},
	{"the machine's authorities, and the user's settings of TLS, see withhold",
		"SSL_CERT_FILE SSL_CERT_DIR NIX_SSL_CERT_FILE GIT_SSL_NO_VERIFY GIT_SSL_CAINFO GIT_SSL_CAPATH GIT_SSL_CERT GIT_SSL_CERT_TYPE " +
			"GIT_SSL_CERT_PASSWORD_PROTECTED GIT_SSL_KEY GIT_SSL_KEY_TYPE GIT_SSL_CIPHER_LIST GIT_SSL_VERSION GIT_PROXY_SSL_CAINFO " +
			"GIT_PROXY_SSL_CERT GIT_PROXY_SSL_CERT_PASSWORD_PROTECTED GIT_PROXY_SSL_KEY"},
	{"the user's ssh and its agent",
		"GIT_SSH GIT_SSH_COMMAND GIT_SSH_VARIANT SSH_AUTH_SOCK SSH_AGENT_PID SSH_ASKPASS SSH_ASKPASS_REQUIRE SSH_SK_PROVIDER"},
	{"the session and its keyring, for helpers and agents",
		"DISPLAY WAYLAND_DISPLAY XAUTHORITY XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS GNUPGHOME GPG_TTY PASSWORD_STORE_*"},
	{"Kerberos, for servers that want it", "KRB5CCNAME KRB5_CONFIG KRB5_CLIENT_KTNAME"},
}

// withoutPassword are for git if it gets no password from here: most are for the
// programs that give it one, and for proxy commands of ssh.
var withoutPassword = []variables{
	{"who asks the user", "GIT_ASKPASS VSCODE_GIT_*"},
	{"the helpers of hosts and clouds",
		"AWS_* AZURE_* CLOUDSDK_* GOOGLE_APPLICATION_CREDENTIALS GCM_* GH_* GLAB_* GITLAB_* CI_JOB_TOKEN SYSTEM_ACCESSTOKEN"},
	{"a header, in which a line break can write anything into the request", "GIT_HTTP_USER_AGENT"},
}

// isForGit is about a name in capitals: Windows does not tell the cases apart.
func isForGit(name string) bool {
	return world.IsBare(name) || isAmong(forGit, name) || isAmong(withoutPassword, name)
}

func isAmong(list []variables, name string) bool {
	for _, some := range list {
		for pattern := range strings.FieldsSeq(some.names) {
			prefix, open := strings.CutSuffix(pattern, "*")
			if name == pattern || open && strings.HasPrefix(name, prefix) {
				return true
			}
		}
	}
	return false
}

var (
	tlsVariable = lazyregexp.New(`^GIT_(PROXY_)?SSL_`)
	tlsSetting  = lazyregexp.New(`(?i)^http\.(.*\.)?(proxy)?(ssl|schannel)[a-z]*$|^include(if)?\.`)
	tlsWord     = lazyregexp.New(`(?i)ssl|schannel|include`)
	configFile  = lazyregexp.New(`^(GIT_CONFIG_(GLOBAL|SYSTEM)|XDG_CONFIG_HOME)$`)

	// harmlessSetting are those that may stand beside a password of a block: they
	// run no program, and the password is for the addresses below the block's url,
	// wherever these lead. A proxy sees nothing of a verified connection. Headers are
	// not among them: Host leads to another site of the same server, and a line break
	// in any value writes whatever it likes into the request.
	harmlessSetting = lazyregexp.New(`(?i)^(url\..*\.insteadof|safe\.directory|` +
		`http\.(.*\.)?(proxy|proxyauthmethod|version|postbuffer|lowspeed(limit|time)))$`)
)

// withhold returns environ without the user's configuration as far as it is not
// meant for the secrets of a block: without settings of TLS, in variables and in
// the files that variables name, which may hold anything; and beside a password
// without all that is not harmless, because programs that git runs can read what
// git has. Files in the home directory and of the system are left, and so is the
// choice to read none. What git -c has put into GIT_CONFIG_PARAMETERS takes
// precedence over what is set here, and is withheld as a whole.
func (a *access) withhold(environ world.Environ) world.Environ {
	if !a.ownTLS {
		return environ
	}
	isWithheld := func(setting string) bool {
		return tlsSetting.MatchString(setting) || a.ownPassword && !harmlessSetting.MatchString(setting)
	}
	withheld := []string{} // entries without a meaning, because they are numbered
	kept := environ.Only(func(name string) bool {
		value, _ := environ.Lookup(name)
		switch {
		case tlsVariable.MatchString(name), configFile.MatchString(name) && value != "" && value != os.DevNull:
			return false
		case name == "GIT_CONFIG_PARAMETERS" && (a.ownPassword || tlsWord.MatchString(value)):
			return false
		case strings.HasPrefix(name, "GIT_CONFIG_KEY_") && isWithheld(value):
			withheld = append(withheld, name+"=statecrypt.withheld", strings.Replace(name, "KEY", "VALUE", 1)+"=")
		}
		return true
	})
	return kept.With(withheld...)
}

// environ is what git runs with, without secrets.
func (d *repository) environ() world.Environ {
	env := d.access.withhold(d.run.userEnviron())
	if d.access.password != "" {
		env = env.Only(func(name string) bool { return !isAmong(withoutPassword, name) })
	}
	_, asks := env.Lookup("GIT_ASKPASS")
	env = env.With(
		"GIT_DIR="+cmp.Or(d.dir, "/nonexistent"), // and never the repository that Terraform runs in
		"LC_ALL=C", // errors are told apart by their text
		"GIT_TERMINAL_PROMPT=0",
		"GCM_INTERACTIVE=never",
		"GIT_ALLOW_PROTOCOL="+allowedProtocols[d.remote.protocol],
		"GIT_NO_LAZY_FETCH=1",
		"GIT_NO_REPLACE_OBJECTS=1",
	)
	if !asks || d.access.password != "" {
		env = env.With("GIT_ASKPASS=") // empty also keeps git from SSH_ASKPASS
	}
	if _, set := env.Lookup("SSH_ASKPASS_REQUIRE"); !set {
		env = env.With("SSH_ASKPASS_REQUIRE=never")
	}
	if d.ssh != "" {
		env = env.With("GIT_SSH_COMMAND=" + d.ssh)
	}
	return appendConfig(env, append(fixedConfig(), d.access.gitConfig()...))
}

// allowedProtocols keeps redirects and url.<base>.insteadOf from turning one
// kind of address into a weaker one.
var allowedProtocols = map[string]string{
	"https": "https:ssh",
	"http":  "http:https:ssh",
	"ssh":   "https:ssh",
	"file":  "file",
}

type setting struct{ key, value string }

func fixedConfig() []setting {
	return []setting{
		{"core.hooksPath", os.DevNull},
		{"core.fsync", "none"}, // nothing here outlives the process
		{"core.logAllRefUpdates", "false"},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"fetch.unpackLimit", "1"}, // keep packs: a filtered one is marked as incomplete
		{"fetch.writeCommitGraph", "false"},
		{"fetch.recurseSubmodules", "false"},
		{"fetch.prune", "false"},
		{"fetch.negotiationAlgorithm", "noop"}, // there is nothing to offer
		{"protocol.version", "2"},
		{"http.postBuffer", "1048576"}, // git reserves that much memory, of which it has little, and asks for little
		{"http.sslVersion", "tlsv1.2"}, // or later; otherwise some builds of git take 1.0
		{"http.lowSpeedLimit", "1000"}, // bytes per second, for
		{"http.lowSpeedTime", "30"},    // seconds, before a stalled transfer ends
		{"credential.interactive", "false"},
	}
}

// appendConfig adds to the GIT_CONFIG_COUNT variables of git-config(1). Users
// and CI systems set them, too, so it goes on counting from there.
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
