package stores

import (
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
)

var redlockSides = []Side{
	{Name: "Holdfast", Open: openRedlock},
	{Name: "redsync on rueidis, 50 – 250 ms", Kind: Peer, Open: redsyncRueidis(usual), sends: set},
	{Name: "redsync on rueidis, 5 – 50 ms", Kind: Peer, Open: redsyncRueidis(tuned), Patient: true, sends: set},
	{Name: "redsync on rueidis, 1 – 5 ms", Kind: Peer, Open: redsyncRueidis(quick), Patient: true, sends: set},
	{Name: "redsync on go-redis, 50 – 250 ms", Kind: Peer, Open: redsyncGoRedis(usual), sends: set},
	{Name: "redsync on go-redis, 5 – 50 ms", Kind: Peer, Open: redsyncGoRedis(tuned), Patient: true, sends: set},
}

var redlockModules = []string{
	"github.com/redis/rueidis", "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4",
}

// Delays of redsync on several servers: the default, a delay for many waiters, and a delay
// for two waiters.
var (
	usual = between(50*time.Millisecond, 250*time.Millisecond)
	tuned = between(5*time.Millisecond, 50*time.Millisecond)
	quick = between(time.Millisecond, 5*time.Millisecond)
)

func redlock() Store {
	return Store{
		Name: "redlock", Title: "Redlock, five servers", Cost: "commands", Waiting: 10, Sides: redlockSides, Modules: redlockModules,
		Start: func(tb servers.TB, ttl time.Duration) *Server {
			masters, s := startMasters(tb, ttl)
			s.Count = counter(tb, masters...)
			return s
		},
	}
}

// redlockStopped is redlock with one of five servers that no longer answers.
func redlockStopped() Store {
	return Store{
		Name: "redlock-stopped", Title: "Redlock, one of five servers hangs", Only: []string{"alone"}, Sides: redlockSides, Modules: redlockModules,
		Start: func(tb servers.TB, ttl time.Duration) *Server {
			masters, s := startMasters(tb, ttl)
			s.Fail = masters[2].Pause
			return s
		},
	}
}

func startMasters(tb servers.TB, ttl time.Duration) ([]*servers.Redis, *Server) {
	masters := servers.StartMasters(tb, 5)
	s := &Server{About: aboutRedis(masters[0])}
	for _, m := range masters {
		s.At = append(s.At, m.Addr())
	}
	<-time.After(ttl + time.Second) // see openRedlock
	return masters, s
}

// openRedlock lets a server count once the server has run for a TTL. A server that
// restarted more recently may have lost locks. The servers report their uptime in whole
// seconds.
func openRedlock(at []string, ttl time.Duration) (*Library, error) {
	return holdfastAt([]string{"redlock://" + strings.Join(at, ",") + "?quarantine=" + ttl.String()}, ttl)
}
