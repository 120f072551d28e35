package etcdlock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/must"
)

// TestQueue says which claims of a queue hold, in FIFO order: a writer is W, a reader r, or
// R if the reader has joined the first, or C if a slot has ended its phase. A slot is the
// digit of its limit, the upgrade of a reader U.
func TestQueue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		queue string
		held  int
	}{
		{"", 0}, {"W", 1}, {"WW", 1}, {"Wr", 1}, {"r", 1}, {"rR", 2}, {"rRW", 2}, {"rRWR", 2}, {"rWR", 1},
		{"rr", 1}, {"rRr", 2}, {"rrR", 1}, // they have to agree on a token first
		{"1", 1}, {"11", 1}, {"2", 1}, {"22", 2}, {"222", 2}, {"333", 3}, {"3331", 3}, {"12", 2}, {"212", 1}, {"2133", 1},
		{"W2", 1}, {"2W", 1}, {"2W2", 1},
		{"r2", 1}, {"rR2", 2}, {"C2", 2}, {"C2r", 3}, {"Cr", 2}, {"Cr2", 2}, // the phase has to end first
		{"rU", 1}, {"CU", 2}, {"CUr", 2}, {"CCU", 2}, {"CUU", 2},
	} {
		var l queue
		for i, kind := range test.queue {
			p := entry{rev: int64(i + 10)}
			p.Weight, p.Limit = 1, driver.MaxWeight
			switch kind {
			case 'W':
				p.Weight = driver.MaxWeight
			case 'U':
				p.Weight = driver.MaxWeight - 1
			case 'R':
				p.Phase = 10
			case 'C':
				p.Closed = true
			case 'r':
			default:
				p.Limit = int64(kind - '0')
			}
			l = append(l, p)
		}
		if got := l.held(); got != test.held {
			t.Errorf("%q: %d hold, want %d", test.queue, got, test.held)
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
		l := &lease{granted: granted{ttl: long}}
		waits := &claim{state: waiting, lease: l}
		s := &Store{table: map[string]*claim{"waits": waits, "holds": {state: held, lease: l}}}
		if pause := s.pauseLocked(l, 0, 1); 4*pause/3 > long-ttl {
			t.Errorf("the lease for a TTL of %v is kept alive every %v", ttl, pause)
		}
		l.claims = 1
		s.table = map[string]*claim{"waits": waits}
		if pause := s.pauseLocked(l, 0, 1); pause > max(long/3, margin(ttl)) {
			t.Errorf("the lease for a TTL of %v is kept alive every %v while its claim waits", ttl, pause)
		}
		classes[seconds] = true
	}
	if len(classes) > 130 {
		t.Errorf("there are %d classes", len(classes))
	}
}

// TestKeepAlivePause: after failures a sole member is asked less often the longer the lease lasts,
// and the next of several members is asked at once.
func TestKeepAlivePause(t *testing.T) {
	t.Parallel()
	s := &Store{born: time.Now(), clock: boottime.New()}
	l := &lease{granted: granted{ttl: 18 * time.Second, heard: s.now().Add(10 * time.Second)}}
	for _, c := range []struct {
		failures, members int
		least, most       time.Duration
	}{{0, 1, 2250 * time.Millisecond, 2250 * time.Millisecond}, {1, 1, time.Second, 4 * time.Second}, {2, 3, pause, pause}, {3, 3, time.Second, 4 * time.Second}} {
		if d := s.pauseLocked(l, c.failures, c.members); d < c.least || d > c.most {
			t.Errorf("after %d failures at %d members: %v, want %v to %v", c.failures, c.members, d, c.least, c.most)
		}
	}
}

// TestAfter: the answer to a request that another call has sent before promises what is left.
func TestAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ g, want driver.Grant }{
		{driver.Grant{OK: true, TTL: 5 * time.Second}, driver.Grant{OK: true, TTL: 3 * time.Second}},
		{driver.Grant{Kept: 6 * time.Second}, driver.Grant{Kept: 4 * time.Second}},
		{driver.Grant{Kept: time.Second}, driver.Grant{}},
	} {
		if g := after(2*time.Second, c.g); g != c.want {
			t.Errorf("%+v, want %+v", g, c.want)
		}
	}
}

// TestRemoveAhead tells a waiting claim which claims left: it holds when all ahead of it
// have, and never after it has left the queue itself, or if a departure may have been
// missed, or its lease may have ended, or if only some of the claims ahead are known.
func TestRemoveAhead(t *testing.T) {
	t.Parallel()
	whole := record{Weight: driver.MaxWeight, Limit: driver.MaxWeight}
	type leaves map[string]int64
	for _, test := range []struct {
		name  string
		since int64
		over  bool
		more  int // further claims that are between the two
		left  []leaves
		wakes []int // 0 for not at all, 1 to ask again, 2 with a grant
	}{
		{"all before it", 0, false, 0, []leaves{{"b": 15}, {"own": 29}, {"b": 31}, {"a": 33}, {"a": 34}}, []int{0, 0, 0, 2, 0}},
		{"its own first", 0, false, 0, []leaves{{"b": 31}, {"own": 32}, {"a": 33}}, []int{0, 1, 0}},
		{"all at once", 0, false, 0, []leaves{{"a": 31, "b": 31, "own": 31}, {"b": 32}}, []int{1, 0}},
		{"both before it", 0, false, 0, []leaves{{"a": 31, "b": 31}}, []int{2}},
		{"a gap", 31, false, 0, []leaves{{"a": 32, "b": 32}}, []int{1}},
		{"no lease", 0, true, 0, []leaves{{"a": 32, "b": 32}}, []int{1}},
		{"others between", 0, false, 1, []leaves{{"a": 31}, {"between": 32}, {"b": 33}}, []int{0, 0, 1}},
	} {
		s := must.Get(New(&clientv3.Client{}, nil))
		defer s.Close()
		s.mu.Lock()
		l := &lease{granted: granted{ttl: time.Hour, heard: s.now()}, over: test.over}
		c := s.enterLocked(driver.Claim{ID: "c", Weight: whole.Weight, Limit: whole.Limit, TTL: time.Minute}, l)
		c.name, c.state, c.rev, c.seen, c.asked = "own", waiting, 30, 30, s.now()
		c.more = test.more
		c.ahead = queue{{record: whole, name: "a", rev: 10}, {record: whole, name: "b", rev: 20}}
		for i, left := range test.left {
			g, woken := s.removeAheadLocked(&folder{since: test.since}, c, left)
			if want := test.wakes[i]; woken != (want > 0) || g.OK != (want > 1) {
				t.Errorf("%s: when %v left it was woken: %v, with %+v", test.name, left, woken, g)
			}
		}
		s.mu.Unlock()
	}
}

// TestTurnOfASecondEntry has two clients wait with the same id. The client behind learns at its turn
// of the claims ahead of its own entry: otherwise it would watch a claim that has left, without rest.
func TestTurnOfASecondEntry(t *testing.T) {
	t.Parallel()
	s := must.Get(New(&clientv3.Client{}, nil))
	defer s.Close()
	s.mu.Lock()
	l := &lease{granted: granted{ttl: time.Hour, heard: s.now()}}
	c := s.enterLocked(driver.Claim{ID: "c", Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}, l)
	c.name, c.state, c.rev, c.seen = "own", waiting, 30, 30
	c.ahead = queue{{record: c.record, name: "left", rev: 20}}
	s.mu.Unlock()
	other, own := entry{record: c.record, name: "other", rev: 10}, c.entry
	if g, wakes := s.turned("c", 30, view{queue: queue{other, own}, rev: 40}); g.OK || wakes {
		t.Errorf("woken behind the other: %+v, %v", g, wakes)
	}
	if len(c.ahead) != 1 || c.ahead[0].name != "other" {
		t.Errorf("ahead are %+v, want the other", c.ahead)
	}
}

// TestTurnOfAnEarlierEntry has a claim queue again before the turn of its earlier entry is known. The
// queue was read for the earlier entry, so it lacks the new entry, which keeps its place.
func TestTurnOfAnEarlierEntry(t *testing.T) {
	t.Parallel()
	s := must.Get(New(&clientv3.Client{}, nil))
	defer s.Close()
	s.mu.Lock()
	l := &lease{granted: granted{ttl: time.Hour, heard: s.now()}}
	c := s.enterLocked(driver.Claim{ID: "c", Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}, l)
	c.name, c.state, c.rev, c.seen = "own", waiting, 30, 30
	s.mu.Unlock()
	if g, wakes := s.turned("c", 20, view{rev: 40}); g.OK || wakes || c.state != waiting {
		t.Errorf("woken by the turn of an earlier entry: %+v, %v; the state is %v", g, wakes, c.state)
	}
}

// TestReturnUnheard has a waiter that has lost its place queue again, without an answer: its release
// must see to it that the late claim is refused.
func TestReturnUnheard(t *testing.T) {
	t.Parallel()
	s := must.Get(New(&clientv3.Client{}, nil))
	defer s.Close()
	s.mu.Lock()
	dc := driver.Claim{ID: "c", Key: "key", Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
	c := s.enterLocked(dc, nil)
	c.state, c.rev = waiting, 30
	s.mu.Unlock()
	a := ask{Ask: driver.Ask{Claim: dc, Wait: true}, Store: s, claim: c, entry: c.entry}
	a.losePlace()
	if _, _, err := a.settle(view{}, false, context.DeadlineExceeded); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the request returned %v", err)
	}
	if r := s.removals([]driver.Release{{Claim: dc}})[0]; !r.Late || r.rev != 0 {
		t.Errorf("the release is late: %v, and knows revision %d; want a late one that looks for the claim", r.Late, r.rev)
	}
}

// TestEndedMeanwhile ends a claim while it is asked for: it is not granted, and what
// was made of it is removed.
func TestEndedMeanwhile(t *testing.T) {
	t.Parallel()
	s := must.Get(New(&clientv3.Client{}, nil))
	s.Close() // Nothing is removed before the test has looked.
	a := ask{Ask: driver.Ask{Claim: driver.Claim{ID: "c", Key: "key", Weight: 1, Limit: 1, TTL: time.Minute}}, Store: s}
	a.lease = &lease{granted: granted{ttl: time.Hour, heard: s.now()}}
	a.claim = s.enterLocked(a.Claim, a.lease)
	v := view{queue: queue{a.claim.entry}, rev: 10}
	s.dropLocked(a.claim)
	g, moves, err := a.settle(v, true, nil)
	if g.OK || moves || err == nil {
		t.Errorf("granted %+v, %v, %v; want an error", g, moves, err)
	}
	if c := s.table["c"]; c == nil || c.state != leftover || c.late || !slices.Contains(s.leftovers, c) {
		t.Errorf("what is left of it is %+v, want it to be removed", c)
	}
}

// TestLateAnswer has the answers to an Acquire and a Renew arrive when a later request or a push has
// already let the claim stand for longer. The Acquire does not shorten that. The Renew does, since its
// TTL is the one that the owner counts on.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	s := must.Get(New(&clientv3.Client{}, nil))
	s.Close()
	dc := driver.Claim{ID: "c", Key: "key", Weight: 1, Limit: 1, TTL: time.Minute}
	began, until := s.now(), s.now().Add(time.Hour)
	s.mu.Lock()
	c := s.enterLocked(dc, &lease{granted: granted{id: 1, ttl: 2 * time.Hour, heard: began}})
	c.rev, c.state = 10, held
	s.standLocked(c, until)
	s.mu.Unlock()
	if err := s.prolonged(dc, began, true, 10, 1); err != nil || !c.until.Equal(until) {
		t.Errorf("after the Acquire it stands until %v, want %v: %v", c.until, until, err)
	}
	if err := s.prolonged(dc, began, false, 10, 1); err != nil || !c.until.Equal(began.Add(dc.TTL)) {
		t.Errorf("after the Renew it stands until %v, want its TTL from %v: %v", c.until, began, err)
	}
}

// TestRunsOut lets a claim expire before etcd has reported its end. A caller that asks for
// the claim is told, and then asks for a new claim: the old id is refused for ten seconds
// and more.
func TestRunsOut(t *testing.T) {
	t.Parallel()
	s := must.Get(New(&clientv3.Client{}, nil))
	s.Close() // Nothing is removed before the test has looked.
	var told []string
	s.Notify(func(key, id string, err error) {
		if key != "key" || !errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrBroken) {
			t.Errorf("told that %s of %s is over: %v", id, key, err)
		}
		told = append(told, id)
	})
	for id, until := range map[string]time.Time{"over": s.now(), "stands": s.now().Add(time.Hour)} {
		s.mu.Lock()
		s.standLocked(s.enterLocked(driver.Claim{ID: id, Key: "key"}, nil), until)
		s.mu.Unlock()
	}
	if s.expire(); !slices.Equal(told, []string{"over"}) {
		t.Errorf("told of %q, want the one that has run out", told)
	}
	if c := s.table["over"]; c.state != leftover || !c.late {
		t.Errorf("it is %+v, want that its id is kept out", c)
	}
}

func TestTokensEnd(t *testing.T) {
	t.Parallel()
	for rev, ok := range map[int64]bool{1: true, 1<<45 - 1: true, 1 << 45: false, 1 << 55: false, 1<<63 - 1: false} {
		p := entry{rev: rev}
		if err := countable(rev); (err == nil) != ok || !ok && !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("revision %d: %v; are there tokens: %v", rev, err, ok)
		}
		if last := p.token() + driver.MaxSpan - 1; ok && last >= 1<<53 {
			t.Errorf("revision %d has tokens up to %d", rev, last)
		}
	}
}

// TestBlockerLeftDuringJoin has the only known claim ahead of a claim in a long queue leave before
// the answer to the join: the claim is to request again soon, because nothing would wake it.
func TestBlockerLeftDuringJoin(t *testing.T) {
	t.Parallel()
	s := must.Get(New(&clientv3.Client{}, nil))
	defer s.Close()
	claim := driver.Claim{Key: "key", ID: "own", Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
	s.mu.Lock()
	c := s.enterLocked(claim, nil)
	c.kept = 4 * claim.Alive()
	s.folders[claim.Key] = &folder{left: map[string]int64{"before": 31}, users: 1}
	s.mu.Unlock()
	own := c.entry
	own.rev = 30
	a := ask{Ask: driver.Ask{Claim: claim, Wait: true}, Store: s, began: s.now(), claim: c, entry: own}
	g, _, err := a.settle(view{queue: queue{unreadEntry("before", 20), own}, rev: 30, claims: 100}, true, nil)
	if want := (driver.Grant{Left: pause, Floor: own.token() - 1}); g != want || err != nil {
		t.Errorf("the refusal is %+v, %v; want %+v", g, err, want)
	}
}
