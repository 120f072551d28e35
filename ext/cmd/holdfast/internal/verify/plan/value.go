package plan

// Value is a number that no other operation of a run has. worker counts from 0,
// the others from 1.
func Value(worker, life, client, op int) uint64 {
	return uint64(worker+1)<<56 | uint64(life)<<44 | uint64(client)<<36 | uint64(op)
}

// Origin returns where a value is from.
func Origin(value uint64) (worker, life, client, op int) {
	part := func(from, bits int) int { return int(value >> from & (1<<bits - 1)) }
	return part(56, 8) - 1, part(44, 12), part(36, 8), part(0, 36)
}
