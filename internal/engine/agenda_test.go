package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestLeaseHeap adds, moves and removes leases, and compares the heap with a list.
func TestLeaseHeap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var a agenda
	var all []*lease
	for range 10_000 {
		switch n := random.IntN(4); {
		case n == 0 && len(all) > 0:
			i := random.IntN(len(all))
			a.remove(all[i])
			if all[i].index != 0 {
				t.Fatal("a removed lease has a place")
			}
			all = slices.Delete(all, i, i+1)
		case n == 1 && len(all) > 0:
			l := all[random.IntN(len(all))]
			l.next = time.Duration(random.IntN(1000))
			a.fix(l)
		default:
			l := &lease{ttl: 1, noRenew: true}
			l.deadline.Store(random.Int64N(1000))
			a.add(l, 0)
			all = append(all, l)
		}
		if len(a.leases) != len(all) {
			t.Fatalf("the heap has %d leases, want %d", len(a.leases), len(all))
		}
		for i, l := range a.leases {
			if l.lease.index != i+1 || l.next != l.lease.next || i > 0 && l.next < a.leases[(i-1)/2].next {
				t.Fatalf("place %d of %d is %+v, index %d", i, len(a.leases), l, l.lease.index)
			}
		}
	}
}
