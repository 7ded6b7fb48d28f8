package replace

// SyncFolder does nothing, because Windows cannot sync folders.
func SyncFolder(string) error { return nil }
