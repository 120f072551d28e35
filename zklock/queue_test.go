package zklock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
)

// TestBlockers checks with random lines that a claim has blockers if and only if it
// does not hold, and that it does not hold as long as they all stay, whoever else
// of those before it goes.
func TestBlockers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() place {
		switch rng.IntN(3) {
		case 0:
			return place{weight: driver.MaxWeight, limit: driver.MaxWeight}
		case 1:
			return place{weight: 1, limit: driver.MaxWeight}
		}
		limit := 1 + rng.Int64N(4)
		return place{weight: 1 + rng.Int64N(limit), limit: limit}
	}
	for range 20_000 {
		var l queue
		for i := range 1 + rng.IntN(7) {
			p := random()
			p.name = fmt.Sprint(i)
			l.places = append(l.places, p)
		}
		at := rng.IntN(len(l.places))
		blockers := l.blockers(at)
		if (blockers == nil) != (at < l.granted()) {
			t.Fatalf("place %d of %v, of whom %d hold, is blocked by %v", at, l.places, l.granted(), blockers)
		}
		if blockers == nil {
			continue
		}
		var stay queue
		for i, p := range l.places[:at+1] {
			if i == at || slices.Contains(blockers, p) || rng.IntN(2) == 0 {
				stay.places = append(stay.places, p)
			}
		}
		if last := len(stay.places) - 1; stay.granted() > last {
			t.Fatalf("place %d of %v is blocked by %v, and holds in %v", at, l.places, blockers, stay.places)
		}
	}
}

// TestBlockersAreFew shows whom a claim waits for.
func TestBlockersAreFew(t *testing.T) {
	exclusive := driver.Claim{ID: "w", Weight: driver.MaxWeight, Limit: driver.MaxWeight}
	reader := driver.Claim{ID: "r", Weight: 1, Limit: driver.MaxWeight}
	slot := driver.Claim{ID: "s", Weight: 1, Limit: 2}
	for _, c := range []struct {
		queue []driver.Claim
		want  []int
	}{
		{[]driver.Claim{exclusive}, nil},
		{[]driver.Claim{exclusive, exclusive, exclusive}, []int{1}},
		{[]driver.Claim{reader, reader, exclusive}, []int{1}},
		{[]driver.Claim{reader, exclusive, reader, reader}, []int{1}},
		{[]driver.Claim{slot, slot, slot}, []int{0, 1}},
		{[]driver.Claim{reader, reader}, nil},
	} {
		var l queue
		for i, claim := range c.queue {
			p, ok := parsePlace(fmt.Sprintf("%s%010d", placeName(claim), i))
			if !ok {
				t.Fatalf("the name of %v cannot be read", claim)
			}
			l.places = append(l.places, p)
		}
		var got []int
		for _, p := range l.blockers(len(l.places) - 1) {
			got = append(got, int(p.number))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("the last of %v waits for %v, want %v", l.places, got, c.want)
		}
	}
}

// TestParseLine puts names in order, also where their numbers have gone round, and
// leaves out what is none of ours.
func TestParseLine(t *testing.T) {
	l := parseQueue([]string{
		"1-1-1-b--2147483648", "1-1-1-a-2147483647", "phase", "lock-0000000001", "1-0-1-x-0000000001", "1-2-1-x-0000000001",
		"1-1-20000000000-x-0000000001", "1-1-1-c--2147483647", "1-1-1-x-", "1-1-1-x-99999999999", "0-1-1-x-0000000001",
	})
	if err := l.unread("key"); err != nil {
		t.Error(err)
	}
	if err := parseQueue([]string{"1-1-1-a-0000000001", "12-anything"}).unread("key"); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "format 12") {
		t.Errorf("with a claim of format 12: %v, want an ErrInvalid that names the format", err)
	}
	var ids []string
	for _, p := range l.places {
		ids = append(ids, p.id)
	}
	if !l.phase || strings.Join(ids, "") != "abc" {
		t.Errorf("the queue is %q, phase %v", ids, l.phase)
	}
}

func FuzzKeys(f *testing.F) {
	for _, key := range []string{"a", ".", "..", "a..b", "a/b", "%41", "é", "\x00", "phase", "zookeeper"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		name := nodeName(key)
		if back, ok := keyOf(name); !ok || back != key {
			t.Errorf("%q is named %q, which is read as %q, %v", key, name, back, ok)
		}
		if strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
			t.Errorf("%q is named %q", key, name)
		}
		keyOf(key) // does not panic
	})
}

func TestTokensEnd(t *testing.T) {
	for zxid, ok := range map[int64]bool{1: true, 1<<47 - 1: true, 1 << 47: false, 1<<58 - 1: false} {
		token := tokenOf(zxid)
		if err := countable(token); (err == nil) != ok || !ok && !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("transaction %d: %v; are there tokens: %v", zxid, err, ok)
		}
		if last := token + span - 1; ok && last >= 1<<53 {
			t.Errorf("transaction %d has tokens up to %d", zxid, last)
		}
	}
}
