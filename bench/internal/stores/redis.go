package stores

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func redisStore() Store {
	return Store{
		Name: "redis", Title: "Redis", Cost: "commands", Waiting: 1000, Held: 10, Modules: redisModules,
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastOf("redis"), Renews: true},
			{Name: "Holdfast on go-redis", Open: openGoRedis, Renews: true},
			{Name: "rueidislock", Kind: Peer, Open: openRueidislock, Renews: true},
			{Name: "redsync on rueidis, 1 ms", Kind: Peer, Open: redsyncRueidis(every(pause)), sends: set},
			{Name: "redsync on rueidis, 5 ms", Kind: Peer, Open: redsyncRueidis(every(longPause)), Patient: true, sends: set},
			{Name: "redsync on go-redis, 1 ms", Kind: Peer, Open: redsyncGoRedis(every(pause)), sends: set},
			{Name: "redsync on go-redis, 5 ms", Kind: Peer, Open: redsyncGoRedis(every(longPause)), Patient: true, sends: set},
			{Name: "bsm/redislock, 1 ms", Kind: Peer, Open: redislockEvery(pause)},
			{Name: "bsm/redislock, 5 ms", Kind: Peer, Open: redislockEvery(longPause), Patient: true},
			{Name: "SET NX on rueidis, 1 ms", Kind: Bare, Open: openBareRueidis, sends: set},
			{Name: "BLPOP on rueidis", Kind: Bare, Open: openBLPOP, sends: []string{"set", "rpush", "blpop"}},
			{Name: "SET NX on go-redis, 1 ms", Kind: Bare, Open: setGoRedis(pause), sends: set},
			{Name: "SET NX on go-redis, 5 ms", Kind: Bare, Open: setGoRedis(longPause), Patient: true, sends: set},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			r := servers.StartRedis(tb)
			return &Server{At: []string{r.Addr()}, About: aboutRedis(r), Count: counter(tb, r)}
		},
	}
}

var redisModules = []string{
	"github.com/redis/rueidis", "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4", "github.com/bsm/redislock",
}

// aboutRedis describes a server started by StartRedis.
func aboutRedis(r *servers.Redis) string {
	return r.Version() + " in memory only, no snapshots and no append-only file"
}

// Commands that clients send and scripts do not. PING is not in the list: rueidis sends
// PING on each idle connection, also for sides that do not have the turn.
var sent = []string{"eval", "evalsha", "evalsha_ro", "fcall", "script|load", "subscribe", "ssubscribe",
	"unsubscribe", "sunsubscribe", "hello", "client|tracking", "wait"}

// set lists the commands of sides that set a key without a script.
var set = []string{"set"}

// counter counts the commands that the clients of a side have sent since the servers
// started. INFO also counts commands called by scripts.
func counter(tb servers.TB, all ...*servers.Redis) func(Side) int {
	return func(s Side) (n int) {
		for _, r := range all {
			text, _ := r.Must("INFO", "commandstats").(string)
			for line := range strings.Lines(text) {
				name, calls, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
				if !slices.Contains(sent, name) && !slices.Contains(s.sends, name) {
					continue
				}
				calls, _, _ = strings.Cut(calls, ",")
				count, err := strconv.Atoi(calls)
				if err != nil {
					tb.Fatalf("%s counts %q of %s", r.Addr(), calls, name)
				}
				n += count
			}
		}
		return n
	}
}

// compareAndDelete is the release script of the bare sides.
const compareAndDelete = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0`
