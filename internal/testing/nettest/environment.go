package nettest

import (
	"os"
	"slices"
	"strings"
)

// ForgetMachine keeps what this machine says out of all tests of a package, which calls it
// first: the files and the metadata service of AWS, proxies, and the variables of these names.
func ForgetMachine(prefixes ...string) {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasSuffix(strings.ToLower(name), "_proxy") ||
			slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			os.Unsetenv(name)
		}
	}
	os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	os.Setenv("AWS_CONFIG_FILE", os.DevNull)
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
}
