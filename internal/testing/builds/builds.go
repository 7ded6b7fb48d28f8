// Package builds has the tests that compile programs: releases, programs of
// other modules, and those for other systems. Nothing else is in it, so that all
// other tests run without a compiler.
package builds
