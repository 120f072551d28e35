package etcdlock_test

import (
	"context"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestNewPassword changes the password of a user, which ends the logins of that user
// at once: calls with the old password fail and name the reason.
func TestNewPassword(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, cheap...)
	protect(t, e.Addr())
	s := openStore(t, "etcd://locks:secret@"+e.Addr())
	a := exclusive("key", "id")
	granted(t, s, a)
	servers.Await(t, "new password", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), patience/3)
		defer cancel()
		root, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Addr()}, Username: "root", Password: "secret", Context: ctx, Logger: zap.NewNop()})
		if err != nil {
			return err
		}
		defer root.Close()
		_, err = root.UserChangePassword(ctx, "locks", "changed")
		return err
	})
	servers.Await(t, "refusal of the old password", func() error {
		err := renew(t.Context(), s, a.Claim)
		switch {
		case err == nil:
			t.Error("the old password is taken")
		case !strings.Contains(err.Error(), "auth"):
			return err
		}
		return nil
	})
	works(t, "etcd://locks:changed@"+e.Addr())
}
