package git

import (
	"cmp"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/child"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// userEnviron is what git gets of the environment of this process. If the
// environment is off, that is what any program needs in order to run, and
// nothing of git's own: no proxy, no ssh command and no ssh agent, which is
// reached through SSH_AUTH_SOCK. Files in the home directory stay in effect.
func userEnviron(settings source.Settings) []string {
	if settings.LookupEnv == nil {
		return child.Bare(os.Environ())
	}
	return os.Environ()
}

// withheld are variables that git does not get, besides those that no child
// gets. They are git rev-parse --local-env-vars: inside a hook or an alias, git
// sets them for the repository at hand, and they would divert ours. The ones
// that carry the user's configuration (GIT_CONFIG_COUNT, GIT_CONFIG_PARAMETERS)
// are kept.
var withheld = map[string]bool{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES": true,
	"GIT_COMMON_DIR":                   true,
	"GIT_CONFIG":                       true,
	"GIT_DEFAULT_HASH":                 true,
	"GIT_DIR":                          true,
	"GIT_GRAFT_FILE":                   true,
	"GIT_IMPLICIT_WORK_TREE":           true,
	"GIT_INDEX_FILE":                   true,
	"GIT_INTERNAL_SUPER_PREFIX":        true,
	"GIT_NAMESPACE":                    true,
	"GIT_NO_REPLACE_OBJECTS":           true,
	"GIT_OBJECT_DIRECTORY":             true,
	"GIT_PREFIX":                       true,
	"GIT_QUARANTINE_PATH":              true,
	"GIT_REF_STORAGE_FORMAT":           true,
	"GIT_REFERENCE_BACKEND":            true,
	"GIT_REPLACE_REF_BASE":             true,
	"GIT_SHALLOW_FILE":                 true,
	"GIT_WORK_TREE":                    true,
}

// withheldPrefixes: traces would mix with what git says and can show headers.
var withheldPrefixes = []string{"GIT_TRACE", "GIT_TR2", "GIT_CURL_VERBOSE"}

// scrubbed returns environ without what git must not get.
func scrubbed(environ []string) []string {
	var kept []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !isWithheld(strings.ToUpper(name)) { // Windows does not tell the cases apart
			kept = append(kept, pair)
		}
	}
	return kept
}

func isWithheld(name string) bool {
	for _, p := range withheldPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return withheld[name] || child.Withholds(name)
}

var (
	tlsVariable = regexp.MustCompile(`(?i)^GIT_(PROXY_)?SSL_`)
	tlsSetting  = regexp.MustCompile(`(?i)^http\.(.*\.)?(proxy)?(ssl|schannel)[a-z]*$`)
	tlsWord     = regexp.MustCompile(`(?i)ssl|schannel`)
)

// withoutTLS returns environ without settings of TLS: without the variables,
// and without the configuration in variables. What git -c has put into
// GIT_CONFIG_PARAMETERS is withheld as a whole if it may be about TLS.
func withoutTLS(environ []string) []string {
	var kept []string
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case tlsVariable.MatchString(name):
		case name == "GIT_CONFIG_PARAMETERS" && tlsWord.MatchString(value):
		case strings.HasPrefix(name, "GIT_CONFIG_KEY_") && tlsSetting.MatchString(value):
			kept = append(kept, name+"=statecrypt.withheld") // in place, because the entries are numbered
		default:
			kept = append(kept, pair)
		}
	}
	return kept
}

func lookup(environ []string, name string) (string, bool) {
	for i := len(environ) - 1; i >= 0; i-- { // the last one counts, as in os/exec
		if n, v, ok := strings.Cut(environ[i], "="); ok && n == name {
			return v, true
		}
	}
	return "", false
}

// environ is what git runs with in the throw-away repository. Secrets are here
// and nowhere else: not among arguments, which everybody can list, nor on disk.
func (d *repository) environ() []string {
	env := scrubbed(d.run.environ)
	if d.access.ownTLS {
		env = withoutTLS(env)
	}
	_, asks := lookup(env, "GIT_ASKPASS")
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
	if _, set := lookup(env, "SSH_ASKPASS_REQUIRE"); !set {
		env = append(env, "SSH_ASKPASS_REQUIRE=never")
	}
	if d.ssh != "" {
		env = append(env, "GIT_SSH_COMMAND="+d.ssh)
	}
	settings, secrets := d.access.gitConfig()
	return appendConfig(append(env, secrets...), append(fixedConfig(), settings...))
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
// and CI systems set them too, so it goes on counting where they stopped.
func appendConfig(environ []string, settings []setting) []string {
	text, _ := lookup(environ, "GIT_CONFIG_COUNT")
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
