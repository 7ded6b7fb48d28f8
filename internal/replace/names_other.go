//go:build !unix

package replace

// OtherNames returns an empty string, because only Unix systems count hard links.
func OtherNames(string) string { return "" }
