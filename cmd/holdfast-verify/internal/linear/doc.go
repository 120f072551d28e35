// Package linear checks that the locks of small simulated worlds are linearizable. For the
// calls of a world, Porcupine looks for an order with the same answers from a sequential
// lock, and from the register that the lock guards.
//
//	go test ./cmd/holdfast-verify/internal/linear                  200 new seeds, 80 with -short
//	go test ./cmd/holdfast-verify/internal/linear -args -seed=42   one seed again
//
// The worlds come from internal/sim, and the judge of internal/sim checks the worlds too.
// The judge knows when a lock may not be granted. Porcupine also knows when a lock may not
// be refused.
package linear
