package nettest

import (
	"os"
	"slices"
	"strings"
)

// ForgetMachine keeps the settings of this machine out of all tests in a package, which must call it first. It disables
// the AWS configuration files and the AWS metadata service, and removes proxy variables and the variables with these
// prefixes.
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
