package redislock

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestSurvey enters the answers of two nodes of a Cluster. A named primary without an answer
// of its own is an error.
func TestSurvey(t *testing.T) {
	t.Parallel()
	silent := errors.New("silent")
	for name, test := range map[string]struct {
		named  []string // by both nodes
		failed bool     // the second node has not answered
		missed string   // in the error; "" for none
		conns  int
	}{
		"a replica":             {[]string{"a:1"}, false, "", 1},
		"a silent replica":      {[]string{"a:1"}, true, "", 1},
		"two primaries":         {[]string{"a:1", "b:1"}, false, "", 2},
		"a silent primary":      {[]string{"a:1", "b:1"}, true, "b:1: silent", 1},
		"an unknown primary":    {[]string{"a:1", "c:1"}, false, "c:1: the client does not know", 1},
		"no known primary":      {[]string{"c:1"}, false, "c:1: the client does not know", 0},
		"a Cluster of replicas": {nil, false, "no node", 0},
	} {
		s := survey{
			nodes: map[string]rueidis.Client{"a:1": nil, "b:1": nil},
			open:  make(map[string]bool), named: make(map[string]bool), failed: make(map[string]error),
		}
		s.note("a:1", test.named, nil)
		if test.failed {
			s.note("b:1", nil, silent)
		} else {
			s.note("b:1", test.named, nil)
		}
		err := s.missed()
		if (err != nil) != (test.missed != "") || err != nil && !strings.Contains(err.Error(), test.missed) || len(s.conns) != test.conns {
			t.Errorf("%s: %d primaries, %v; want %d, and %q", name, len(s.conns), err, test.conns, test.missed)
		}
	}
}

// TestPrimariesOfABlankClient: the client of a Cluster may begin without knowing any node.
func TestPrimariesOfABlankClient(t *testing.T) {
	t.Parallel()
	cluster := servers.StartCluster(t).Calm()
	client := servers.Insist(t, func(context.Context) (rueidis.Client, error) {
		return rueidis.NewClient(rueidis.ClientOption{InitAddress: cluster.Addrs()})
	})
	defer client.Close()
	conn := Rueidis(&blank{Client: client})
	nodes := servers.Insist(t, func(ctx context.Context) ([]Conn, error) { return conn.Primaries(ctx) })
	if len(nodes) != 3 {
		t.Errorf("%d primaries, want 3", len(nodes))
	}
}

// A blank client knows no node before the first command with a slot, which makes rueidis refresh its
// nodes.
type blank struct {
	rueidis.Client
	looked atomic.Bool
}

func (b *blank) Nodes() map[string]rueidis.Client {
	if !b.looked.Load() {
		return nil
	}
	return b.Client.Nodes()
}

func (b *blank) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	const slots = 1 << 14
	if cmd.Slot() < slots {
		b.looked.Store(true)
	}
	return b.Client.Do(ctx, cmd)
}
