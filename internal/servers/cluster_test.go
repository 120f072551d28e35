package servers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCluster(t *testing.T) {
	c := StartCluster(t).Calm()
	slot := c.Slot("key")
	first := c.Owner(slot)
	first.Must("SET", "key", "value")
	if got := len(c.Addrs()); got != 6 {
		t.Errorf("has %d nodes", got)
	}

	second := c.Failover(first)
	if second == first || c.Owner(slot) != second || second.Must("GET", "key") != "value" {
		t.Errorf("%s did not take over from %s", second.Addr(), first.Addr())
	}
	if all := c.Primaries(); len(all) != 3 || !slices.Contains(all, second) || slices.Contains(all, first) {
		t.Errorf("the primaries are %v after %s took over from %s", addrs(all), second.Addr(), first.Addr())
	}

	other := others(c.Primaries(), second)[0]
	c.Migrate(slot, other)
	if got := other.Must("GET", "key"); got != "value" {
		t.Errorf("the key is %v after its slot has moved", got)
	}
	wantRedirection(t, second, "GET key", fmt.Sprintf("MOVED %d %s", slot, other.Addr()))

	replica := c.Replica(other)
	other.AwaitReplicas(1)
	for _, r := range c.Nodes { // no longer calm
		r.set("cluster-node-timeout", nodeTimeout)
	}
	other.Kill()
	if owner := c.Owner(slot); owner != replica {
		t.Errorf("%s follows a killed primary, want %s", owner.Addr(), replica.Addr())
	}
	Until(t, "the key at a server that follows", func() bool {
		got, _ := replica.Do("GET", "key") // fails while the cluster is down
		return got == "value"
	})
	other.Restart()
	if again := c.Replica(replica); again != other {
		t.Errorf("the killed primary did not come back as a replica, but %s did", again.Addr())
	}
}

func TestMigration(t *testing.T) {
	c := StartCluster(t).Calm()
	slot := c.Slot("{tag}")
	from := c.Owner(slot)
	to := others(c.Primaries(), from)[0]
	const keys = 250 // more than move at once
	for i := range keys {
		from.Must("SET", fmt.Sprintf("{tag}%d", i), fmt.Sprint(i))
	}

	m := c.BeginMigration(slot, to)
	if got := from.Must("GET", "{tag}7"); got != "7" {
		t.Errorf("the key is %v before it has moved", got)
	}
	ask := fmt.Sprintf("ASK %d %s", slot, to.Addr())
	wantRedirection(t, from, "GET {tag}none", ask)
	m.MoveKeys()
	wantRedirection(t, from, "GET {tag}7", ask)
	m.End()
	for i := range keys {
		if got := to.Must("GET", fmt.Sprintf("{tag}%d", i)); got != fmt.Sprint(i) {
			t.Errorf("key %d is %v after it has moved", i, got)
		}
	}
}

func wantRedirection(t *testing.T, r *Redis, command, want string) {
	t.Helper()
	var refused RedisError
	if got, err := r.Do(strings.Fields(command)...); !errors.As(err, &refused) || refused.Error() != want {
		t.Errorf("%s: got %v, %v; want %s", command, got, err, want)
	}
}
