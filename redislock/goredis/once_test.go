package goredis_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/once/oncetest"
	"github.com/holdfast-go/holdfast/redislock/goredis"
	"github.com/holdfast-go/holdfast/redislock/redisonce"
)

// Locks and the results of effects, through one client.
func ExampleConn() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()

	store, err := goredis.New(client, nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	conn, err := goredis.Conn(client)
	if err != nil {
		log.Fatal(err)
	}
	records := redisonce.NewConn(conn, nil)
	effects := once.Runner{Locks: locks, Records: records}
	receipt, err := effects.Do(ctx, "payment/42", func(context.Context) ([]byte, error) {
		return []byte("paid"), nil // runs once, and its result is remembered
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", receipt)
}

func TestOnce(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]redis.Options{"RESP3": {}, "RESP2": {Protocol: 2, ContextTimeoutEnabled: true}} {
		t.Run(name, func(t *testing.T) {
			opts.Addr = servers.StartRedis(t).Addr()
			oncetest.Run(t, oncetest.Harness{Open: func(t testing.TB) once.Records {
				client := redis.NewClient(&opts)
				t.Cleanup(func() { client.Close() })
				return redisonce.NewConn(must.Get(goredis.Conn(client)), nil)
			}})
		})
	}
}

func TestOnceInACluster(t *testing.T) {
	repeated(t)
	t.Parallel()
	cluster := servers.StartCluster(t)
	oncetest.Run(t, oncetest.Harness{Open: func(t testing.TB) once.Records {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
		t.Cleanup(func() { client.Close() })
		return redisonce.NewConn(must.Get(goredis.Conn(client)), &redisonce.Options{Prefix: "{app}:"})
	}})
}
