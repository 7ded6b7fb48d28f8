package wrap

// Own is the data directory of the child, as seen from the module.
func Own(module string) string {
	dir, _ := resolve("", module)
	return (&invocation{dir: dir}).ownData()
}

// What the tests outside the package have in common with those inside.
const (
	Keys      = keys
	Sealing   = sealing
	Migrating = migrating
	State     = state
)

// Limit has at most so many bytes of a state or a plan read.
func Limit(o Options, bytes int64) Options {
	o.limit = bytes
	return o
}

var (
	TargetOf   = target
	SettingsOf = settings
)
