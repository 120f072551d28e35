package filelock

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// sign makes a header and a text valid.
func sign(header, text []byte) {
	binary.LittleEndian.PutUint32(header[crcAt:], checksum(header, text))
}

func sampleState() state {
	return state{key: "a/key", Book: book.Book{
		Floor: 1<<53 - 9, Phase: 77,
		Held: []book.Entry{
			{
				ID: "holder", Owner: "me", Note: "漢字\x00", Session: "0123456789abcdef",
				Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute,
				Until: 90 * time.Second, Asked: 30 * time.Second, Since: 1_700_000_000_000_000, Span: 256, Fence: 1 << 52,
			},
			{ID: "left", Left: true, Weight: 1, Limit: 5, TTL: 10 * time.Second, Until: 25 * time.Second, Asked: 20 * time.Second, Span: 1, Fence: 3},
		},
		Queue: []book.Entry{{
			ID: "waiter", Session: "fedcba9876543210", Weight: 1, Limit: driver.MaxWeight,
			TTL: time.Second, Until: 21 * time.Second, Asked: 20 * time.Second, Span: 1,
		}},
		Tombs: []book.Tomb{{ID: "late", Until: 29 * time.Second}, {ID: "broken", Until: 40 * time.Second, Broken: true}},
	}}
}

// Two clocks of two hosts, or of a host before and after it was started anew.
var (
	written = book.Moment{Now: 20 * time.Second, Wall: 1_700_000_000_000_000}
	writer  = anchor{clock: clockID{1}, Moment: written}
	other   = anchor{clock: clockID{2}, Moment: book.Moment{Now: 500 * time.Hour, Wall: written.Wall + 2_000_000}}
)

// reread returns what becomes of a state that is written by one clock and read
// by another.
func reread(t testing.TB, st state, by, here anchor) (got state) {
	t.Helper()
	if err := got.decode(st.encode(nil, by.clock), by.Moment, here); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestStateReadsAsWritten(t *testing.T) {
	want := sampleState()
	got := reread(t, want, writer, writer)
	got.Pushed = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v, want\n%+v", got, want)
	}
	if n := len(want.encode(nil, writer.clock)); n > 600 {
		t.Errorf("four claims take %d bytes", n)
	}
}

// Claims of another clock stand until their sessions end, and are written down
// as they were.
func TestStateOfAnotherClock(t *testing.T) {
	want := sampleState()
	got := reread(t, want, writer, other)
	for _, e := range []book.Entry{got.Held[0], got.Queue[0]} {
		if e.Until != forever || e.Asked != other.Now {
			t.Errorf("%s stands until %v, asked at %v; want forever, now", e.ID, e.Until, e.Asked)
		}
	}
	back := reread(t, got, other, writer)
	for i, e := range []book.Entry{back.Held[0], back.Queue[0]} {
		was := []book.Entry{want.Held[0], want.Queue[0]}[i]
		if e.Until != was.Until || e.Asked != was.Asked {
			t.Errorf("%s was rewritten to stand until %v, asked at %v; want %v, %v", e.ID, e.Until, e.Asked, was.Until, was.Asked)
		}
	}
	// Its own clock may renew one, and a third keeps that.
	got.Held[0].Until = other.Now + time.Minute
	third := anchor{clock: clockID{3}, Moment: other.Moment}
	back = reread(t, reread(t, got, other, third), third, other)
	if until := back.Held[0].Until; until != other.Now+time.Minute {
		t.Errorf("a claim renewed by another clock stands until %v, want %v", until, other.Now+time.Minute)
	}
}

// Only the wall clock can tell how long a claim stands whose process has left,
// and a tombstone.
func TestStateOfAnotherClockThatWasLeft(t *testing.T) {
	tests := []struct {
		name        string
		wall        time.Duration // passed by the wall clock
		claim, tomb time.Duration // what is left of 5 s and 9 s
	}{
		{"some time", 2 * time.Second, 3 * time.Second, 7 * time.Second},
		{"none", 0, 5 * time.Second, 9 * time.Second},
		{"all", time.Hour, 0, 0},
		{"clock set back", -3 * time.Second, 8 * time.Second, 12 * time.Second},
		{"clock set far back", -1000 * time.Hour, 10 * time.Second, time.Hour},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			here := other
			here.Wall = written.Wall + test.wall.Microseconds()
			got := reread(t, sampleState(), writer, here)
			claim, tomb := got.Held[1].Until-here.Now, got.Tombs[0].Until-here.Now
			if claim != test.claim || tomb != test.tomb {
				t.Errorf("the claim has %v left and the tombstone %v, want %v and %v", claim, tomb, test.claim, test.tomb)
			}
		})
	}
}

func TestStateOfNonsense(t *testing.T) {
	st := sampleState()
	good := st.encode(nil, writer.clock)
	for n := range good {
		var got state
		if err := got.decode(good[:n], written, writer); err == nil {
			t.Errorf("the first %d of %d bytes are read", n, len(good))
		}
	}
	var got state
	if err := got.decode(append(good, 0), written, writer); err == nil {
		t.Error("a byte too many is read")
	}
	st.Held[0].Session = "../../etc/passwd"
	if err := got.decode(st.encode(nil, writer.clock), written, writer); err == nil {
		t.Error("a session that is a path is read")
	}
	huge := append(make([]byte, len(clockID{})), strings.Repeat("\xff", 20)...)
	if err := got.decode(huge, written, writer); err == nil {
		t.Error("an endless number is read")
	}
}

// FuzzState checks that what can be read, by whatever clock, can be written and
// read again as the same.
func FuzzState(f *testing.F) {
	st := sampleState()
	f.Add(st.encode(nil, writer.clock))
	got := reread(f, st, writer, other)
	f.Add(got.encode(nil, other.clock))
	f.Add((&state{key: "k"}).encode(nil, writer.clock))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, here := range []anchor{writer, other} {
			var st state
			if st.decode(text, written, here) != nil {
				continue
			}
			again := reread(t, st, here, here)
			want, got := st.encode(nil, here.clock), again.encode(nil, here.clock)
			if !bytes.Equal(got, want) {
				t.Errorf("%q was read and written as %q", want, got)
			}
		}
	})
}
