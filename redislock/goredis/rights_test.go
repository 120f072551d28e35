package goredis_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/redislock/goredis"
)

// leastRights are those that the documentation of redislock asks for.
var leastRights = strings.Fields("resetkeys ~holdfast:* resetchannels &holdfast:* -@all " +
	"+eval +evalsha +time +exists +get +set +del +pttl +pexpire +hget +hset +hdel +hexists +hgetall " +
	"+rpush +lrem +lindex +lrange +publish +spublish +pubsub +subscribe +ssubscribe +unsubscribe +sunsubscribe " +
	"+ping +hello +client +select +info +scan +cluster +wait")

func TestLeastRights(t *testing.T) {
	r := goredis.Empty()
	r.AddUser("locks", "secret", leastRights...)
	opts := unhurried(r)
	opts.Username, opts.Password = "locks", "secret"
	s, _ := open(t, opts)
	grants(t, s)
	granted(t, s, exclusive("key", "holder"))
	if warnings, err := s.Check(t.Context()); err != nil {
		t.Error(warnings, err)
	}
	for key, err := range s.Keys(t.Context(), "") {
		if err != nil || key != "key" && !strings.HasPrefix(key, "holdfast/canary/") { // A slow machine may leave these.
			t.Error(key, err)
		}
	}
	if refused, _ := r.Must("ACL", "LOG").([]any); len(refused) > 0 {
		t.Errorf("refused is %v", refused)
	}
}

func TestLeastRightsInCluster(t *testing.T) {
	t.Parallel()
	c := servers.StartCluster(t).Calm()
	for _, r := range c.Nodes {
		r.AddUser("locks", "secret", leastRights...)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Addrs(), Username: "locks", Password: "secret", DialTimeout: patience, ReadTimeout: patience,
	})
	handsOver(t, client, func() {})
	for _, r := range c.Nodes {
		if refused, _ := r.Must("ACL", "LOG").([]any); len(refused) > 0 {
			t.Errorf("%s has refused %v", r.Addr(), refused)
		}
	}
}
