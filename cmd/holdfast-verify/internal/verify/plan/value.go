package plan

// Value returns a number that no second operation of a run has. worker counts from 0, the
// rest from 1. There is room for a million lives of a worker, and for 200 million
// operations in each life.
func Value(worker, life, client, op int) uint64 {
	return uint64(worker+1)<<56 | uint64(life)<<36 | uint64(client)<<28 | uint64(op)
}

// Origin returns the operation of a value.
func Origin(value uint64) (worker, life, client, op int) {
	part := func(from, bits int) int { return int(value >> from & (1<<bits - 1)) }
	return part(56, 8) - 1, part(36, 20), part(28, 8), part(0, 28)
}
