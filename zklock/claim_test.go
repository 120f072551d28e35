package zklock

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

// TestMadeTogether makes the nodes above a claim by the transaction that makes its own:
// who dies leaves none without a child, which would stay for ever.
func TestMadeTogether(t *testing.T) {
	t.Parallel()
	s := newStore(t, []string{server.Addr()}, &Options{Chroot: "together/b"})
	first, second, other := exclusive("first", "one"), exclusive("second", "one"), exclusive("second", "other")
	second.Wait = true
	for _, a := range []driver.Ask{first, second} {
		granted(t, s, a)
	}
	refused(t, s, other)
	k := sessionOf(t, s, patience)
	for path, by := range map[string]driver.Ask{
		"/together": first, "/together/b": first, s.root: first, s.dir(first.Key): first, s.dir(second.Key): second,
	} {
		s.mu.Lock()
		token := s.claims[nameOf(by.Claim)].token
		s.mu.Unlock()
		call, err := k.ask(bounded(t), zoo.Exists(path))
		if err != nil || tokenOf(call.Stat().Czxid) != token || call.Stat().Owner == k.zoo.ID() {
			t.Errorf("%s: %v, want that the claim with token %d has made it", path, err, token)
		}
	}
}

// TestMissing makes claims with whatever is known, or not, of the nodes above them.
func TestMissing(t *testing.T) {
	t.Parallel()
	for missing := range 4 {
		s := newStore(t, []string{server.Addr()}, &Options{Chroot: fmt.Sprint("missing", missing)})
		sessionOf(t, s, patience)
		for _, id := range []string{"nothing is there", "all is there"} {
			cl, err := s.enter(bounded(t), exclusive("key", id), s.clock.Now())
			if err != nil {
				t.Fatal(err)
			}
			cl.Wait, cl.missing = true, missing
			l, err := s.create(bounded(t), cl)
			if err != nil || l.index(cl.node) != len(l.places)-1 || cl.token == 0 {
				t.Errorf("%s, and %d are said to be missing: stands in %+v as %q, %v", id, missing, l, cl.node, err)
			}
		}
	}
}
