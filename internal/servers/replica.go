package servers

import (
	"fmt"
	"net"
	"strconv"
)

// StartReplica starts a replica of the server at an address, and returns when the replica
// has caught up. The address may be a proxy.
func StartReplica(tb TB, of string, options ...string) *Redis {
	tb.Helper()
	host, port, err := net.SplitHostPort(of)
	if err != nil {
		tb.Fatalf("start a replica: %v", err)
	}
	r := StartRedis(tb, append([]string{"replicaof " + host + " " + port}, options...)...)
	Await(tb, "a replica", r.linked)
	return r
}

// Follow makes a server a replica of the server at an address, and returns when the
// replica has caught up. The replica loses its former data.
func (r *Redis) Follow(of string) {
	r.tb.Helper()
	host, port, err := net.SplitHostPort(of)
	if err != nil {
		r.tb.Fatalf("follow: %v", err)
	}
	r.Must("REPLICAOF", host, port)
	Await(r.tb, "a replica", r.linked)
}

// Promote makes a replica a primary by hand, without any coordination.
func (r *Redis) Promote() {
	r.tb.Helper()
	r.Must("REPLICAOF", "NO", "ONE")
}

// AwaitReplicas returns when n replicas have received all writes so far.
func (r *Redis) AwaitReplicas(n int) {
	r.tb.Helper()
	if err := r.awaitReplicas(n); err != nil {
		r.tb.Fatalf("wait for the replicas of %s: %v", r.Addr(), err)
	}
}

func (r *Redis) awaitReplicas(n int) error {
	conn, err := r.dial(patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	// WAIT counts to the position of the connection after its last command.
	if _, err := roundTrip(conn, patience, []string{"PING"}); err != nil {
		return err
	}
	limit := strconv.FormatInt((patience / 2).Milliseconds(), 10)
	reply, err := roundTrip(conn, patience, []string{"WAIT", strconv.Itoa(n), limit})
	if err != nil {
		return err
	}
	if got, _ := reply.(int64); got < int64(n) {
		return fmt.Errorf("%d of %d keep up", got, n)
	}
	return nil
}

// linked returns nil while a replica keeps up with the primary.
func (r *Redis) linked() error {
	link, err := r.replication("master_link_status")
	if err == nil && link != "up" {
		err = fmt.Errorf("%s: the link to the primary is %q", r.Addr(), link)
	}
	return err
}

// leads returns nil if the server takes writes.
func (r *Redis) leads() error {
	role, err := r.replication("role")
	if err == nil && role != "master" {
		err = fmt.Errorf("%s has the role %q", r.Addr(), role)
	}
	return err
}
