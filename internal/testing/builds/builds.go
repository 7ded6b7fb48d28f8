// Package builds contains the tests that compile programs: releases, programs in other modules, and programs for other
// systems. It contains nothing else, so that all other tests run without a compiler.
package builds
