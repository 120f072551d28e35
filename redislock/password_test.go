package redislock_test

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/redislock"
)

// TestNewPassword changes the password of a user: connections stay, new ones are
// refused if the password is that of a URL, and made if the client asks for the
// password each time.
func TestNewPassword(t *testing.T) {
	servers.NeedRedis7(t)
	t.Parallel()
	r := servers.StartRedis(t)
	var password atomic.Value
	rotate := func() {
		password.Store(rand.Text())
		r.Must("ACL", "SETUSER", "app", "on", "resetpass", ">"+password.Load().(string), "~*", "&*", "+@all")
	}
	rotate()
	fixed := opening("redis://app:" + password.Load().(string) + "@" + r.Addr()).Open(t)
	defer fixed.Close()
	client := servers.Insist(t, func(context.Context) (rueidis.Client, error) {
		return rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{r.Addr()},
			AuthCredentialsFn: func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
				return rueidis.AuthCredentials{Username: "app", Password: password.Load().(string)}, nil
			},
		})
	})
	defer client.Close()
	asking := must.Get(redislock.New(client, nil))
	defer asking.Close()

	held := driver.Claim{Key: "key", ID: rand.Text(), Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: patience}
	renew := func(s driver.Store) error { return s.Renew(t.Context(), []driver.Renewal{{Claim: held}})[0] }
	if g, err := fixed.Acquire(t.Context(), driver.Ask{Claim: held}); err != nil || !g.OK {
		t.Fatalf("%+v, %v", g, err)
	}
	if err := renew(asking); err != nil {
		t.Fatal(err)
	}
	connections := func() (ids []string) {
		for line := range strings.Lines(r.Must("CLIENT", "LIST").(string)) {
			if id, _, _ := strings.Cut(line, " "); strings.Contains(line, " user=app ") {
				ids = append(ids, id)
			}
		}
		return ids
	}
	before := connections()
	rotate()
	after := connections()
	for _, id := range before {
		if !slices.Contains(after, id) {
			t.Errorf("the connection %s has ended: %q, before %q", id, after, before)
		}
	}
	if len(before) < 2 {
		t.Errorf("the connections are %q, want one of each store", before)
	}
	r.KillClients()
	servers.Until(t, "a renewal with the new password", func() bool { return renew(asking) == nil })
	servers.Until(t, "a refusal of the old password", func() bool {
		err := renew(fixed)
		return err != nil && strings.Contains(err.Error(), "WRONGPASS")
	})
}
