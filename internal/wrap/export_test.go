package wrap

// What the tests outside the package have in common with those inside.
const (
	Keys      = keys
	Sealing   = sealing
	Migrating = migrating
	State     = state
)

var (
	TargetOf   = target
	SettingsOf = settings
)
