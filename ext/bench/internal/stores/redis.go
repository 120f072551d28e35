package stores

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

func redisStore() Store {
	return Store{
		Name: "redis", Title: "Redis", Cost: "commands",
		Sides: []Side{
			{Name: "Holdfast", Open: openRedis, Renews: true},
			{Name: "Holdfast on go-redis", Open: openGoRedis, Renews: true},
			{Name: "rueidislock", Kind: Peer, Open: openRueidislock, Renews: true},
			{Name: "redsync on rueidis", Kind: Peer, Open: openRedsyncRueidis, sends: []string{"set"}},
			{Name: "redsync on go-redis", Kind: Peer, Open: openRedsyncGoRedis, sends: []string{"set"}},
			{Name: "bsm/redislock", Kind: Peer, Open: openRedislock},
			{Name: "SET NX on rueidis, 1 ms", Kind: Bare, Open: openBareRueidis, sends: []string{"set"}},
			{Name: "SET NX on go-redis, 1 ms", Kind: Bare, Open: openBareGoRedis, sends: []string{"set"}},
			{Name: "SET NX on go-redis, 5 ms", Kind: Bare, Open: openPatientGoRedis, sends: []string{"set"}},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			r := servers.StartRedis(tb)
			return &Server{At: []string{r.Addr()}, Count: counter(tb, r)}
		},
	}
}

func openRedis(at []string, ttl time.Duration) (*Library, error) {
	return holdfastAt([]string{"redis://" + at[0]}, ttl)
}

// Commands that a client sends and scripts do not, whoever it is.
var sent = []string{"eval", "evalsha", "evalsha_ro", "fcall", "script|load", "subscribe", "ssubscribe",
	"unsubscribe", "sunsubscribe", "hello", "ping", "client|tracking", "wait"}

// counter counts the commands since the servers began that the clients of a side
// have sent. INFO counts what scripts call as well.
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

// compareAndDelete is how all release what they have set.
const compareAndDelete = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0`
