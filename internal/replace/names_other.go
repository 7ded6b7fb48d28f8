//go:build !unix

package replace

// OtherNames returns "", because only Unix systems count hard links.
func OtherNames(string) string { return "" }
