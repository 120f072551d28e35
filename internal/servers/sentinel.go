package servers

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
)

// MasterName is the name of the primary in the Sentinels.
const MasterName = "holdfast"

// A Sentinel is a primary with two replicas, and three Sentinels that watch these servers.
type Sentinel struct {
	Nodes     []*Redis // the first is the primary until a failover
	Sentinels []*Redis
	tb        TB
}

// StartSentinel starts a primary and two replicas with the given options, as StartRedis
// does, and three Sentinels. A primary that does not answer for two seconds is replaced,
// if a second Sentinel agrees.
func StartSentinel(tb TB, options ...string) *Sentinel {
	tb.Helper()
	NeedRedis7(tb)
	s := &Sentinel{tb: tb}
	primary := StartRedis(tb, options...)
	s.Nodes = append(s.Nodes, primary)
	for range 2 {
		s.Nodes = append(s.Nodes, StartReplica(tb, primary.Addr(), options...))
	}
	for range 3 {
		s.Sentinels = append(s.Sentinels, startWatcher(tb, primary))
	}
	s.AwaitSettled()
	return s
}

// startWatcher starts one Sentinel.
func startWatcher(tb TB, primary *Redis) *Redis {
	tb.Helper()
	r := &Redis{}
	r.Process = start(tb, program{
		name: "sentinel",
		path: redisBinary(tb),
		setup: func(tb TB, dir string) ([]string, error) {
			args, err := r.configure(tb, dir, []string{
				fmt.Sprintf("sentinel monitor %s %s %d 2", MasterName, loopback, primary.port),
				// With less than a second, the Sentinels may replace the new primary too,
				// before they have reached the new primary.
				"sentinel down-after-milliseconds " + MasterName + " 2000",
				"sentinel failover-timeout " + MasterName + " 2000",
				"sentinel parallel-syncs " + MasterName + " 2",
			})
			return append(args, "--sentinel"), err
		},
		ready: func(pid int) error {
			if err := r.ready(pid); err != nil {
				return err
			}
			// These periods, such as how often Sentinels look for each other, are not in
			// the configuration. PING-PERIOD stays: a replica whose last answer is older
			// than five PING-PERIODs is no candidate in a failover, though Sentinels look
			// at a replica once a second. Four PUBLISH-PERIODs must not be shorter than
			// that second, or the remaining Sentinels undo the promotion before they hear
			// of the promotion.
			_, err := r.do(glance, "SENTINEL", "DEBUG", "INFO-PERIOD", "500", "ASK-PERIOD", "100",
				"PUBLISH-PERIOD", "500", "TILT-PERIOD", "1000", "MIN-LINK-RECONNECT-PERIOD", "1000")
			return err
		},
	})
	return r
}

// Calm keeps the Sentinels from replacing a primary that does not answer on a busy
// machine. The Sentinels still obey Failover.
func (s *Sentinel) Calm() *Sentinel {
	s.tb.Helper()
	for _, r := range s.Sentinels {
		r.Must("SENTINEL", "SET", MasterName, "down-after-milliseconds", "60000")
	}
	return s
}

// Addrs returns the addresses of the Sentinels.
func (s *Sentinel) Addrs() []string { return addrs(s.Sentinels) }

func addrs[S interface{ Addr() string }](servers []S) (all []string) {
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return all
}

// AwaitSettled returns when all servers know each other and follow one primary. All
// servers must run.
func (s *Sentinel) AwaitSettled() {
	s.tb.Helper()
	Await(s.tb, "the Sentinels", s.settled)
}

// Primary returns the server that the Sentinels name. Primary waits until two Sentinels
// agree, no answering Sentinel disagrees, and the server takes writes. After a primary was
// killed or paused, Primary returns the new primary.
func (s *Sentinel) Primary() *Redis {
	s.tb.Helper()
	return awaited(s.tb, "a primary", s.primary)
}

// Replicas returns the servers that are not the primary, running or not.
func (s *Sentinel) Replicas() []*Redis {
	s.tb.Helper()
	return others(s.Nodes, s.Primary())
}

// Failover orders the Sentinels to promote a replica, and returns the new primary when all
// servers know the change. All servers must run.
func (s *Sentinel) Failover() (primary *Redis) {
	s.tb.Helper()
	old := s.Primary()
	Await(s.tb, "the order to be taken", func() error {
		_, err := s.Sentinels[0].do(glance, "SENTINEL", "FAILOVER", MasterName)
		return err
	})
	Await(s.tb, "the failover", func() error {
		if primary = s.Primary(); primary == old {
			return errors.New("the primary is the old one")
		}
		return s.settled()
	})
	return primary
}

func (s *Sentinel) primary() (*Redis, error) {
	answers := make(map[string]int)
	for _, watcher := range s.Sentinels {
		reply, err := watcher.do(glance, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
		if err != nil {
			continue // the server may be down
		}
		if addr, ok := reply.([]any); ok && len(addr) == 2 {
			answers[net.JoinHostPort(fmt.Sprint(addr[0]), fmt.Sprint(addr[1]))]++
		}
	}
	for _, r := range s.Nodes {
		if len(answers) == 1 && answers[r.Addr()] >= 2 {
			return r, r.leads()
		}
	}
	return nil, fmt.Errorf("the Sentinels name as primary: %v", answers)
}

// settled returns nil when all servers know each other.
func (s *Sentinel) settled() error {
	primary, err := s.primary()
	if err != nil {
		return err
	}
	for _, watcher := range s.Sentinels {
		reply, err := watcher.do(glance, "SENTINEL", "MASTER", MasterName)
		if err != nil {
			return err
		}
		state := pairs(reply)
		if state["num-slaves"] != "2" || state["num-other-sentinels"] != "2" || state["flags"] != "master" {
			return fmt.Errorf("Sentinel %s sees %v", watcher.Addr(), state)
		}
	}
	for _, r := range others(s.Nodes, primary) {
		follows, err := r.replication("master_port")
		if err != nil {
			return err
		}
		if follows != strconv.Itoa(primary.port) {
			return fmt.Errorf("%s follows port %q", r.Addr(), follows)
		}
		if err := r.linked(); err != nil {
			return err
		}
	}
	return nil
}

// others returns the servers without the given server.
func others[S comparable](servers []S, server S) []S {
	return slices.DeleteFunc(slices.Clone(servers), func(s S) bool { return s == server })
}

// pairs reads a list in which names and values alternate.
func pairs(reply any) map[string]string {
	list, _ := reply.([]any)
	m := make(map[string]string, len(list)/2)
	for i := 1; i < len(list); i += 2 {
		m[fmt.Sprint(list[i-1])] = fmt.Sprint(list[i])
	}
	return m
}
