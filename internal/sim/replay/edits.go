package main

import "github.com/holdfast-go/holdfast/internal/overlay"

// edits are the edits of the standard library. The generator is splitmix64. The generator
// serves everything that a program can see: math/rand, the order of maps and of select,
// and the order of timers of one time. The caches of the runtime keep their own generator,
// since their contents depend on more than the seed.
var edits = []overlay.Edit{{
	File: "runtime/rand.go",
	Old:  "func rand() uint64 {\n",
	New:  "func rand() uint64 {\n	return exactNext()\n",
}, {
	File: "runtime/select.go",
	Old:  "cheaprandn(uint32(norder + 1))",
	New:  "uint32(exactNext() % uint64(norder+1))",
}, {
	File: "runtime/time.go",
	Old:  "t.rand = cheaprand()",
	New:  "t.rand = uint32(exactNext())",
}, {
	// Everything that the program draws during the start, such as the keys of hashes, is
	// the same each time. A new thread draws nothing from the state that Seed has set.
	File: "runtime/rand.go",
	Old:  "		if x, ok := globalRand.state.Next(); ok {\n			unlock(&globalRand.lock)\n			return x\n",
	New:  "		exactStart++\n		if x, ok := exactMix(exactStart), true; ok {\n			unlock(&globalRand.lock)\n			return x\n",
}, {
	File: "runtime/rand.go",
	Old:  "	mp.cheaprand = rand()\n",
	New:  "	mp.cheaprand = bootstrapRand()\n",
}, {
	// After every 61 goroutines that the processor has run, the scheduler looks at the
	// global queue first.
	File: "runtime/rand.go",
	Old:  "// mrandinit initializes the random state of an m.\n",
	New: `var exactState, exactStart uint64

//go:nosplit
func exactNext() uint64 {
	exactState += 0x9e3779b97f4a7c15
	return exactMix(exactState)
}

//go:nosplit
func exactMix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

//go:linkname exactSeed
func exactSeed(seed uint64) {
	mp := acquirem()
	mp.p.ptr().schedtick = 0
	exactState = seed
	releasem(mp)
}

// mrandinit initializes the random state of an m.
`,
}, {
	// sysmon preempts, by real time.
	File: "runtime/proc.go",
	Old:  "	if haveSysmon {\n		systemstack(func() {\n			newm(sysmon, nil, -1)\n",
	New:  "	if false {\n		systemstack(func() {\n			newm(sysmon, nil, -1)\n",
}, {
	// A sync.Mutex is handed to a waiter after 1 ms of real time.
	File: "runtime/sema.go",
	Old:  "func internal_sync_nanotime() int64 {\n	return nanotime()\n",
	New:  "func internal_sync_nanotime() int64 {\n	return 0\n",
}, {
	// A context cancels its children in the order of a map whose keys are pointers. With
	// more than eight children, the order is the order of addresses. The seed does not
	// decide where a thread that starts late has its stack, and hence not the later
	// addresses.
	File: "context/context.go",
	Old:  "	children map[canceler]struct{} //",
	New:  "	children map[canceler]uint64 //",
}, {
	File: "context/context.go",
	Old:  "make(map[canceler]struct{})",
	New:  "make(map[canceler]uint64)",
}, {
	File: "context/context.go",
	Old:  "p.children[child] = struct{}{}",
	New:  "p.children[child] = exactRand()",
}, {
	File: "context/context.go",
	Old:  "range c.children {",
	New:  "range exactOrder(c.children) {",
}, {
	File: "context/context.go",
	Old:  "// A cancelCtx can be canceled.",
	New: `//go:linkname exactRand runtime.rand
func exactRand() uint64

// exactOrder yields the children by the numbers that they have drawn.
func exactOrder(children map[canceler]uint64) iter.Seq[canceler] {
	return slices.Values(slices.SortedFunc(maps.Keys(children), func(a, b canceler) int {
		return cmp.Compare(children[a], children[b])
	}))
}

// A cancelCtx can be canceled.`,
}, {
	File: "context/context.go",
	Old:  "import (\n",
	New:  "import (\n	\"cmp\"\n	\"iter\"\n	\"maps\"\n	\"slices\"\n	_ \"unsafe\" // for go:linkname\n",
}}
