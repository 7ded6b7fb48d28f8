package azurerm

import (
	"cmp"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// IsStateOf reports whether an azurerm backend with these arguments uses this state. The error is always nil, because
// that backend takes the same lock.
func (s *state) IsStateOf(kind string, arguments map[string]any) (same bool, err error) {
	text := func(name string, variables ...string) string {
		if t, _ := arguments[name].(string); t != "" {
			return t
		}
		t, _ := s.Environment().Get(variables...) // their backend reads the same variables
		return t
	}
	cloud := func(name string) string { return cmp.Or(name, "public") }
	isTheirs := s.server.Endpoint() == "" || s.server.IsAzure() // their backend reaches no other server
	return isTheirs && kind == "azurerm" && text("storage_account_name") == s.server.Account && text("container_name") == s.server.Container &&
		text("key") == s.key && cloud(text("environment", "ARM_ENVIRONMENT")) == cloud(s.Settings.String("environment")) &&
		text("metadata_host", "ARM_METADATA_HOST") == s.Settings.String("metadata_host"), nil
}

var _ store.Shared = (*state)(nil)
