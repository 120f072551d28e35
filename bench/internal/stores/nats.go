package stores

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func natsStore() Store {
	return Store{
		Name: "nats", Title: "NATS", Cost: "messages", Waiting: 100, Modules: []string{"github.com/nats-io/nats.go"},
		Sides: []Side{
			{Name: "Holdfast", Open: openNATS, Renews: true},
			{Name: "KV Create, Delete, 5 ms", Kind: Bare, Open: openKV},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			n := servers.StartNATS(tb)
			return &Server{At: []string{n.Direct()}, About: n.Version() + " that waits for its disk", Count: func(Side) int { return n.Received() }}
		},
	}
}

// openNATS is Holdfast, with the stream made.
func openNATS(at []string, ttl time.Duration) (*Library, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store, err := driver.Open(ctx, "nats://"+at[0]+"?synced=true")
	if err != nil {
		return nil, err
	}
	err = store.(driver.Creator).Create(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return nil, err
	}
	return holdfastOf("nats")(at, ttl)
}

// openKV creates the key in a bucket whose keys end after the TTL, and deletes the revision that
// was created.
func openKV(at []string, ttl time.Duration) (*Library, error) {
	conn, err := nats.Connect("nats://" + at[0])
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "locks", TTL: ttl, History: 1})
	if err != nil {
		conn.Close()
		return nil, err
	}
	owner := []byte(rand.Text())
	return &Library{
		Lock: func(ctx context.Context, key string) (func() error, error) {
			var revision uint64
			err := poll(ctx, longPause, func() (taken bool, err error) {
				revision, err = kv.Create(ctx, key, owner)
				if errors.Is(err, jetstream.ErrKeyExists) {
					return false, nil
				}
				return err == nil, err
			})
			return func() error { return kv.Delete(context.Background(), key, jetstream.LastRevision(revision)) }, err
		},
		Close: conn.Close,
	}, nil
}
