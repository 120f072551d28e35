//go:build exact

package exact

import (
	"testing"
	"testing/cryptotest"
	_ "unsafe" // for go:linkname
)

// exactSeed is in the edited runtime. A build without the edits does not link.
//
//go:linkname exactSeed runtime.exactSeed
func exactSeed(seed uint64)

// Seed makes the rest of a test repeatable, up to the next Seed, in a program that is
// built with the edits. t must not be parallel.
func Seed(t *testing.T, seed uint64) {
	cryptotest.SetGlobalRandom(t, seed)
	exactSeed(seed + Order<<32)
}
