package stores

import (
	"time"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

var redlockSides = []Side{
	{Name: "Holdfast", Open: openRedlock},
	{Name: "redsync on rueidis", Kind: Peer, Open: openRedsyncRueidis, sends: []string{"set"}},
	{Name: "redsync on go-redis", Kind: Peer, Open: openRedsyncGoRedis, sends: []string{"set"}},
}

func redlock() Store {
	return Store{
		Name: "redlock", Title: "Redlock, five servers", Cost: "commands", Sides: redlockSides,
		Start: func(tb servers.TB, ttl time.Duration) *Server {
			masters, s := startMasters(tb, ttl)
			s.Count = counter(tb, masters...)
			return s
		},
	}
}

// redlockStopped is the same with one of five servers that answers no more.
func redlockStopped() Store {
	return Store{
		Name: "redlock-stopped", Title: "Redlock, one of five servers hangs", Only: "alone", Sides: redlockSides,
		Start: func(tb servers.TB, ttl time.Duration) *Server {
			masters, s := startMasters(tb, ttl)
			s.Fail = masters[2].Pause
			return s
		},
	}
}

func startMasters(tb servers.TB, ttl time.Duration) ([]*servers.Redis, *Server) {
	masters := servers.StartMasters(tb, 5)
	s := &Server{}
	for _, m := range masters {
		s.At = append(s.At, m.Addr())
	}
	<-time.After(ttl + time.Second) // see openRedlock
	return masters, s
}

// openRedlock lets servers count once they have run for a TTL: those that have not may
// have forgotten locks. They tell how long they run in whole seconds.
func openRedlock(at []string, ttl time.Duration) (*Library, error) {
	return holdfastAt([]string{join("redlock://", at) + "?quarantine=" + ttl.String()}, ttl)
}
