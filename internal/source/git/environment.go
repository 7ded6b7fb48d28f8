package git

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/child"
)

// userEnviron is what git gets of the environment of this process. If the
// environment is off, that is what any program needs in order to run, and
// nothing of git's own: no proxy, no ssh command and no ssh agent, which is
// reached through SSH_AUTH_SOCK. Files in the home directory stay in effect.
func userEnviron(lookup attr.LookupEnv) []string {
	if lookup == nil {
		return child.Bare(os.Environ())
	}
	return os.Environ()
}

// withheld are variables that git does not get, besides those that no child
// gets. They are git rev-parse --local-env-vars: inside a hook or an alias, git
// sets them for the repository at hand, and they would divert ours. The ones
// that carry the user's configuration (GIT_CONFIG_COUNT, GIT_CONFIG_PARAMETERS)
// are kept.
var withheld = strings.Fields(`
	GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR GIT_CONFIG GIT_DEFAULT_HASH GIT_DIR GIT_GRAFT_FILE
	GIT_IMPLICIT_WORK_TREE GIT_INDEX_FILE GIT_INTERNAL_SUPER_PREFIX GIT_NAMESPACE GIT_NO_REPLACE_OBJECTS
	GIT_OBJECT_DIRECTORY GIT_PREFIX GIT_QUARANTINE_PATH GIT_REF_STORAGE_FORMAT GIT_REFERENCE_BACKEND
	GIT_REPLACE_REF_BASE GIT_SHALLOW_FILE GIT_WORK_TREE`)

// withheldPrefixes are those of traces, which would mix with what git says, and
// can show headers.
var withheldPrefixes = []string{"GIT_TRACE", "GIT_TR2", "GIT_CURL_VERBOSE"}

// scrubbed returns environ without what git must not get.
func scrubbed(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return isWithheld(strings.ToUpper(name)) // Windows does not tell the cases apart
	})
}

func isWithheld(name string) bool {
	return slices.Contains(withheld, name) || child.Withholds(name) ||
		slices.ContainsFunc(withheldPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

var (
	tlsVariable = regexp.MustCompile(`^GIT_(PROXY_)?SSL_`)
	tlsSetting  = regexp.MustCompile(`(?i)^http\.(.*\.)?(proxy)?(ssl|schannel)[a-z]*$|^include(if)?\.`)
	tlsWord     = regexp.MustCompile(`(?i)ssl|schannel|include`)
	configFile  = regexp.MustCompile(`^(GIT_CONFIG_(GLOBAL|SYSTEM)|XDG_CONFIG_HOME)$`)
)

// withoutTLS returns environ without settings of TLS: without the variables,
// without the configuration in variables, and without the files that variables
// name, which may hold anything. Those in the home directory and of the system
// are left, and so is the choice to read none. What git -c has put into
// GIT_CONFIG_PARAMETERS is withheld as a whole if it may be about TLS.
func withoutTLS(environ []string) []string {
	kept := []string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		switch upper := strings.ToUpper(name); {
		case tlsVariable.MatchString(upper), configFile.MatchString(upper) && value != "" && value != os.DevNull:
		case upper == "GIT_CONFIG_PARAMETERS" && tlsWord.MatchString(value):
		case strings.HasPrefix(upper, "GIT_CONFIG_KEY_") && tlsSetting.MatchString(value):
			kept = append(kept, name+"=statecrypt.withheld") // in place, because the entries are numbered
		default:
			kept = append(kept, pair)
		}
	}
	return kept
}

// environ is what git runs with, without secrets.
func (d *repository) environ() []string {
	env := scrubbed(d.run.environ)
	if d.access.ownTLS {
		env = withoutTLS(env)
	}
	_, asks := child.Lookup(env)("GIT_ASKPASS")
	env = append(env,
		"GIT_DIR="+cmp.Or(d.dir, "/nonexistent"), // and never the repository that Terraform runs in
		"LC_ALL=C", // errors are told apart by their text
		"GIT_TERMINAL_PROMPT=0",
		"GCM_INTERACTIVE=never",
		"GIT_ALLOW_PROTOCOL="+allowedProtocols[d.remote.protocol],
		"GIT_NO_LAZY_FETCH=1",
		"GIT_NO_REPLACE_OBJECTS=1",
	)
	if !asks || d.access.password != "" {
		env = append(env, "GIT_ASKPASS=") // empty also keeps git from SSH_ASKPASS
	}
	if _, set := child.Lookup(env)("SSH_ASKPASS_REQUIRE"); !set {
		env = append(env, "SSH_ASKPASS_REQUIRE=never")
	}
	if d.ssh != "" {
		env = append(env, "GIT_SSH_COMMAND="+d.ssh)
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
		{"http.sslVersion", "tlsv1.2"}, // or later; otherwise some builds of git take 1.0
		{"http.lowSpeedLimit", "1000"}, // bytes per second, for
		{"http.lowSpeedTime", "30"},    // seconds, before a stalled transfer ends
		{"credential.interactive", "false"},
	}
}

// appendConfig adds to the GIT_CONFIG_COUNT variables of git-config(1). Users
// and CI systems set them, too, so it goes on counting from there.
func appendConfig(environ []string, settings []setting) []string {
	text, _ := child.Lookup(environ)("GIT_CONFIG_COUNT")
	count, err := strconv.Atoi(text)
	if err != nil || count < 0 {
		count = 0
	}
	for _, s := range settings {
		n := strconv.Itoa(count)
		environ = append(environ, "GIT_CONFIG_KEY_"+n+"="+s.key, "GIT_CONFIG_VALUE_"+n+"="+s.value)
		count++
	}
	return append(environ, "GIT_CONFIG_COUNT="+strconv.Itoa(count))
}
