package wrap

// Own is the data directory of the child, as seen from the module.
func Own(folder string) string {
	dir, _ := resolve("", folder)
	return (&module{dir: dir}).ownData()
}

// What the tests outside the package have in common with those inside.
const (
	KeyBlocks = keys
	Sealing   = sealing
	Migrating = migrating
	State     = state
)

var (
	TargetOf   = target
	SettingsOf = settings
)
