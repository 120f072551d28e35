package filelock

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/safefile"
)

// On a share, a claim of another host stands until its session ends.
func TestClaimOfAnotherHost(t *testing.T) {
	for name, onNetwork := range map[string]bool{"local": false, "share": true} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, onNetwork)
			c := exclusive("key")
			c.TTL = time.Nanosecond
			a.granted(c)
			// As if a had another clock.
			h, err := safefile.Open(a.path("key"), true)
			a.must(err)
			defer h.Close()
			var page [pageSize]byte
			version, next, err := readRecord(h, "key", &page)
			a.must(err)
			var st state
			a.must(st.load(version, "key", a.here()))
			text := st.encode(make([]byte, headerSize), clockID{9})
			version.seq++
			a.must(version.write(h, next, text))

			if g := b.refused(exclusive("key")); g.Left != 0 || g.Holder.Left != 0 || g.Holder.Owner != c.Owner {
				t.Errorf("refused with %+v, want no time that nobody knows", g)
			}
			list, err := b.Holders(t.Context(), "key")
			if err != nil || len(list) != 1 || list[0].Left != 0 {
				t.Errorf("Holders tells %+v, %v", list, err)
			}
			a.must(a.Close())
			b.granted(exclusive("key"))
		})
	}
}

// Every Store that looks for a session that has ended finds it dead, also if several look
// at the same time.
func TestEndedSessionIsDeadForAll(t *testing.T) {
	for name, onNetwork := range map[string]bool{"local": false, "share": true} {
		t.Run(name, func(t *testing.T) {
			s, _ := pair(t, onNetwork)
			id := strings.Repeat("0", sessionID)
			for range 50 {
				var looks sync.WaitGroup
				for range 16 {
					looks.Go(func() {
						if s.alive(id) {
							t.Error("a session that has ended is alive")
						}
					})
				}
				looks.Wait()
			}
		})
	}
}

// A release checks each session to which it has granted claims once.
func TestSessionsOf(t *testing.T) {
	pushed := []push{{session: "a"}, {session: "b"}, {session: ""}, {session: "a"}, {session: "b"}}
	if got, want := sessionsOf(pushed), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
