package barekey

import (
	"context"
	"net/http"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
)

const kind = "order:"

func parameter(ctx context.Context, client *redislock.Client, user string) (*redislock.Lock, error) {
	return client.Obtain(ctx, user+":lock", time.Minute, nil) // want `the key begins with user`
}

func request(rs *redsync.Redsync, r *http.Request) *redsync.Mutex {
	return rs.NewMutex(r.FormValue("id") + ":" + "lock") // want `the key begins with r.FormValue\("id"\)`
}

func constant(ctx context.Context, client *redislock.Client, user string) (*redislock.Lock, error) {
	return client.Obtain(ctx, kind+user, time.Minute, nil)
}

func prefixed(ctx context.Context, client *redislock.Client, prefix, user string) (*redislock.Lock, error) {
	return client.Obtain(ctx, prefix+user, time.Minute, nil)
}

func whole(rs *redsync.Redsync, id string) *redsync.Mutex { return rs.NewMutex(id) }
