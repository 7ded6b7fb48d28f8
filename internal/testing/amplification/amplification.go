// Package amplification measures what a stranger's bytes cost, in tests. A
// grammar makes them, so that there is no list of tricks to keep. Its own test
// reads files, from the first byte to the answer that a CLI gets; other packages
// have the answers of their services grow.
package amplification
