package stores

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/servers"
)

var zooKeeperSides = []Side{
	{Name: "Holdfast", Open: holdfastOf("zk"), Renews: true},
	{Name: "zk.Lock of go-zookeeper", Kind: Peer, Open: openRecipe},
	{Name: "Create, Delete on go-zookeeper, 5 ms", Kind: Bare, Open: openNode},
}

var zooKeeperModules = []string{"github.com/go-zookeeper/zk"}

// usualContainers lets the server look for empty containers once a minute, as by default. With the
// half second of [servers.StartZooKeeper], each round would create the nodes of its keys.
const usualContainers = "-Dznode.container.checkIntervalMs=60000"

// aboutZooKeeper describes a server started by StartZooKeeper.
func aboutZooKeeper(z *servers.ZooKeeper) string { return z.Version() + " on disk, heap of 128 MB" }

func zooKeeper() Store {
	return Store{
		Name: "zookeeper", Title: "ZooKeeper", Cost: "packets", Waiting: 100, Sides: zooKeeperSides, Modules: zooKeeperModules,
		Start: func(tb servers.TB, _ time.Duration) *Server {
			z := servers.StartZooKeeper(tb, usualContainers)
			return &Server{
				At:    []string{z.Addr()},
				About: aboutZooKeeper(z),
				Count: func(Side) int { return z.Count("packets_received") },
			}
		},
	}
}

func ensemble() Store {
	return Store{
		Name: "zookeeper-ensemble", Title: "ZooKeeper, three servers", Sides: zooKeeperSides, Modules: zooKeeperModules,
		Start: func(tb servers.TB, _ time.Duration) *Server {
			e := servers.StartEnsemble(tb, usualContainers)
			return &Server{At: e.Addrs(), About: aboutZooKeeper(e.Leader())}
		},
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// newZooKeeper returns a connection with a session that lasts as long as a session of
// Holdfast.
func newZooKeeper(at []string, ttl time.Duration) (*zk.Conn, error) {
	conn, events, err := zk.Connect(at, 2*ttl, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for e := range events {
		if e.State == zk.StateHasSession {
			return conn, nil
		}
	}
	return nil, errors.New("no session")
}

// openRecipe lists the queue once the node of the waiter is made, and once more when the
// node ahead is gone. The recipe takes no context and cannot give up.
func openRecipe(at []string, ttl time.Duration) (*Library, error) {
	conn, err := newZooKeeper(at, ttl)
	if err != nil {
		return nil, err
	}
	return &Library{
		Lock: func(_ context.Context, key string) (func() error, error) {
			l := zk.NewLock(conn, "/lock-"+key, zk.WorldACL(zk.PermAll))
			return l.Unlock, l.Lock()
		},
		Close: conn.Close,
	}, nil
}

func openNode(at []string, ttl time.Duration) (*Library, error) {
	conn, err := newZooKeeper(at, ttl)
	if err != nil {
		return nil, err
	}
	return &Library{
		Lock: func(ctx context.Context, key string) (func() error, error) {
			path := "/node-" + key
			err := poll(ctx, longPause, func() (bool, error) {
				_, err := conn.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
				if errors.Is(err, zk.ErrNodeExists) {
					return false, nil
				}
				return err == nil, err
			})
			return func() error { return conn.Delete(path, -1) }, err
		},
		Close: conn.Close,
	}, nil
}
