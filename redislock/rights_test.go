package redislock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/redislock"
)

// TestLookingRights has a user list the locks who may read only: the script that lists the holders
// runs with the rights of the user.
func TestLookingRights(t *testing.T) {
	servers.NeedRedis7(t)
	t.Parallel()
	r := servers.StartRedis(t)
	rules := strings.Fields("resetkeys ~holdfast:* resetchannels -@all +eval +evalsha +time +hgetall +hget +lrange +pttl +scan +info")
	guest := must.Get(driver.Open(t.Context(), unhurried(user(r, "guest", rules)))).(*redislock.Store)
	defer guest.Close()
	owner := openStore(t, r.URL())
	if g, err := owner.Acquire(t.Context(), driver.Ask{Claim: exclusive("key", "id")}); err != nil || !g.OK {
		t.Fatal(g, err)
	}
	holders, err := guest.Holders(t.Context(), "key")
	if err != nil || len(holders) != 1 || holders[0].ID != driver.PublicID("id") {
		t.Fatalf("the guest sees %+v, %v", holders, err)
	}
	for key, err := range guest.Keys(t.Context(), "") {
		if err != nil || key != "key" && !strings.HasPrefix(key, canaries) {
			t.Errorf("the guest lists %q, %v", key, err)
		}
	}
	if _, err := guest.Check(t.Context()); err != nil {
		t.Error(err)
	}
	g, err := guest.Acquire(t.Context(), driver.Ask{Claim: exclusive("other", "id")})
	if err == nil || g.OK {
		t.Errorf("the guest acquires %+v, %v", g, err)
	}
	if err := guest.Break(t.Context(), "key", holders[0].ID); err == nil || errors.Is(err, driver.ErrLost) {
		t.Errorf("the guest breaks the lock: %v", err)
	}
}
