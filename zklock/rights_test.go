package zklock

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"net/url"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestLeastRights is a few rules that need all requests of a store, for a user with the
// rights that the documentation names, and no others.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	h := harness(server.Addr())
	h.Open = func(t testing.TB) driver.Store {
		return servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
			return driver.Open(ctx, "zk://least:secret@"+server.Addr()+"/least?acl=auth::cdrw")
		})
	}
	for _, failure := range drivertest.Check(t, h, "together/all-methods", "watch/release", "token/over-release", "batch/one-key") {
		t.Error(failure)
	}
}

// TestNewPassword shares locks between processes with the old and with the new password, if the nodes
// belong to both digests.
func TestNewPassword(t *testing.T) {
	t.Parallel()
	digest := func(password string) string {
		sum := sha1.Sum([]byte("app:" + password))
		return "digest:app:" + base64.StdEncoding.EncodeToString(sum[:]) + ":cdrwa"
	}
	acl := url.QueryEscape(digest("old") + "," + digest("new"))
	at := func(password string) string {
		return "zk://app:" + password + "@" + server.Addr() + "/rotating?acl=" + acl
	}
	before, after := opened(t, at("old")), opened(t, at("new"))
	for _, turn := range []struct{ holds, waits *holdfast.Locker }{{before, after}, {after, before}} {
		held := locked(t, turn.holds, "key")
		if _, err := servers.Patient(bounded(t), turn.waits.TryLock, "key"); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("beside a holder: %v", err)
		}
		if err := unlock(held); err != nil {
			t.Error(err)
		}
		if err := unlock(locked(t, turn.waits, "key")); err != nil {
			t.Error(err)
		}
	}
	held := locked(t, after, "key") // The servers remove nodes that nobody needs, and nothing would be forbidden.
	failsToOpen(t, at("other"), "permission denied")
	if err := unlock(held); err != nil {
		t.Error(err)
	}
}
