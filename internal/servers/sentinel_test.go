package servers

import (
	"slices"
	"testing"
)

func TestSentinel(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s: make prove")
	}
	s := StartSentinel(t)
	first := s.Primary()
	if first != s.Nodes[0] || slices.Contains(s.Replicas(), first) || len(s.Replicas()) != 2 || len(s.Addrs()) != 3 {
		t.Errorf("started with primary %s, replicas %v, Sentinels %v", first.Addr(), addrs(s.Replicas()), s.Addrs())
	}
	first.Must("SET", "key", "value")
	first.AwaitReplicas(2)

	second := s.Failover()
	if second == first || second.Must("GET", "key") != "value" {
		t.Errorf("%s lost a key that it had confirmed", second.Addr())
	}
	if role := first.Info("role"); role != "slave" {
		t.Errorf("the old primary is a %s", role)
	}

	second.Kill()
	third := s.Primary()
	if third == second || third.Must("GET", "key") != "value" {
		t.Errorf("%s lost a key that it had confirmed", third.Addr())
	}

	s.Sentinels[0].Restart()
	s.Sentinels[1].Kill() // the others are a quorum
	if again := s.Primary(); again != third {
		t.Errorf("%s is primary, want %s", again.Addr(), third.Addr())
	}
}

func TestReplica(t *testing.T) {
	primary := StartRedis(t)
	p := StartProxy(t, primary.Addr())
	replica := StartReplica(t, p.Addr())
	primary.Must("SET", "key", "1")
	Until(t, "replication", func() bool { return replica.Must("GET", "key") == "1" })
	p.Blackhole(true)
	primary.Must("SET", "key", "2")
	primary.Kill()
	replica.Promote()
	if got := replica.Must("GET", "key"); got != "1" {
		t.Errorf("the replica has %v, which it cannot know", got)
	}
	replica.Must("SET", "key", "3")
}
