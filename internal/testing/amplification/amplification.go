// Package amplification measures, in tests, how much work untrusted input causes. A grammar generates the input, so
// there is no list of tricks to maintain. The package's own test covers files, from the first byte to the answer that
// Terraform gets. Other packages use it to grow the responses of their services.
package amplification
