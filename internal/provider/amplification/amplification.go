// Package amplification measures what a stranger's file costs, from the first
// byte to the answer that a CLI gets. A grammar makes the files, so that there is
// no list of tricks to keep.
package amplification
