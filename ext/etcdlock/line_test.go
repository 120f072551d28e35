package etcdlock

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// TestLine says who of a line holds, in the order of coming: a writer is W, a reader
// r or one that has joined the first R, a slot the digit of its limit.
func TestLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line string
		held int
	}{
		{"", 0}, {"W", 1}, {"WW", 1}, {"Wr", 1}, {"r", 1}, {"rR", 2}, {"rRW", 2}, {"rRWR", 2}, {"rWR", 1},
		{"rr", 1}, {"rRr", 2}, {"rrR", 1}, // they have to agree on a token first
		{"1", 1}, {"11", 1}, {"2", 1}, {"22", 2}, {"222", 2}, {"333", 3}, {"3331", 3}, {"12", 2}, {"212", 1}, {"2133", 1},
		{"W2", 1}, {"2W", 1}, {"2W2", 1}, {"r2", 2},
	} {
		var l line
		for i, kind := range test.line {
			p := place{rev: int64(i + 10)}
			p.Weight, p.Limit = 1, driver.MaxWeight
			switch kind {
			case 'W':
				p.Weight = driver.MaxWeight
			case 'R':
				p.Phase = 10
			case 'r':
			default:
				p.Limit = int64(kind - '0')
			}
			l = append(l, p)
		}
		if got := l.held(); got != test.held {
			t.Errorf("%q: %d hold, want %d", test.line, got, test.held)
		}
	}
}

// TestClass: a lease is longer than the claims under it, by the margin at least and
// not by much more, and there are few of them.
func TestClass(t *testing.T) {
	t.Parallel()
	classes := make(map[int64]bool)
	for ttl := MinTTL; ttl < 48*time.Hour; ttl += ttl/100 + 1 {
		seconds := class(ttl)
		long := time.Duration(seconds) * time.Second
		if more := long - ttl; more < margin(ttl) || more > margin(ttl)+time.Second+long/7 {
			t.Errorf("the lease for a TTL of %v has %v", ttl, long)
		}
		l := &lease{ttl: long}
		if 2*l.pause() > long-ttl {
			t.Errorf("the lease for a TTL of %v is kept alive every %v", ttl, l.pause())
		}
		classes[seconds] = true
	}
	if len(classes) > 130 {
		t.Errorf("there are %d classes", len(classes))
	}
}

// TestStrike tells a claim in line of those who leave: it holds when all before it
// have, and never after it has lost its own place.
func TestStrike(t *testing.T) {
	t.Parallel()
	whole := record{Weight: driver.MaxWeight, Limit: driver.MaxWeight}
	for _, lost := range []bool{false, true} {
		s := New(&clientv3.Client{}, nil)
		defer s.Close()
		s.mu.Lock()
		l := &lease{ttl: time.Hour, heard: s.now()}
		c := s.enter(driver.Claim{ID: "c", Weight: whole.Weight, Limit: whole.Limit, TTL: time.Minute}, l)
		c.state, c.rev, c.asked = waiting, 30, s.now()
		c.ahead = line{{record: whole, name: "a", rev: 10}, {record: whole, name: "b", rev: 20}}
		strike := func(name string, rev int64, wakes, grants bool) {
			t.Helper()
			if g, woken := s.strike(c, name, rev); woken != wakes || g.OK != grants {
				t.Errorf("when %s left in %d it was woken: %v, with %+v", name, rev, woken, g)
			}
		}
		strike("b", 15, false, false) // another of the same name, before
		strike(c.name, 29, false, false)
		strike("b", 31, false, false)
		if lost {
			strike(c.name, 32, true, false)
		}
		strike("a", 33, !lost, !lost)
		strike("a", 34, false, false)
		s.mu.Unlock()
	}
}
