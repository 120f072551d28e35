package zklock

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	for url, words := range map[string]string{
		"zk://h,,h":                            "one of them is empty",
		"zk://h/a//b":                          "chroot",
		"zk://h/zookeeper/x":                   "zookeeper",
		"zk://h/..":                            "chroot",
		"zk://h?prefix=a/./b":                  "prefix",
		"zk://h?prefix=/":                      "prefix",
		"zk://h?prefix=//":                     "prefix",
		"zk://h?prefix=%01":                    "characters",
		"zk://h?acl=anyone":                    "scheme:id:permissions",
		"zk://h?acl=world:anyone:x":            "letters of cdrwa",
		"zk://h?acl=:anyone:r":                 "want scheme:id:permissions",
		"zk://user@h":                          "a password",
		"zk://h?ca=/x":                         "for tls=true",
		"zk://h?tls=true&ca=/no/such/file":     "no such file",
		"zk://h?session=1s":                    `unknown URL parameter "session"`,
		"zk:h":                                 "want zk://",
		"zk://h/app#x":                         "want zk://",
		"zk://user:moonlight@h?cert=moonlight": "for tls=true",
	} {
		_, err := driver.Open(t.Context(), url)
		if !errors.Is(err, driver.ErrURL) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "moonlight") {
			t.Errorf("opened %s: %v, want an ErrURL with %q", url, err, words)
		}
	}
}

// TestWarnsOfPlainPasswords takes 0.0.0.0 for another host, at which this one answers.
func TestWarnsOfPlainPasswords(t *testing.T) {
	t.Parallel()
	elsewhere := strings.Replace(server.Addr(), "127.0.0.1", "0.0.0.0", 1)
	for at, warns := range map[string]bool{"app:secret@" + server.Addr(): false, "app:secret@" + elsewhere: true, elsewhere: false} {
		s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, "zk://"+at+"/plain") })
		warnings, err := s.(driver.Checker).Check(bounded(t))
		told := strings.Contains(strings.Join(warnings, " "), elsewhere+" may be unencrypted")
		if told != warns || err != nil {
			t.Errorf("%s: warnings %q, %v", at, warnings, err)
		}
		s.Close()
	}
}

// TestUnreachable opens what is no ZooKeeper, or not there. The error comes within
// the caller's deadline and says where.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	absent := servers.StartProxy(t, server.Addr())
	absent.Refuse(true)
	for what, c := range map[string]struct{ addr, words string }{
		"nothing":     {absent.Addr(), "refused"},
		"Redis":       {servers.StartRedis(t).Addr(), "does not answer"},
		"who says hi": {serve(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), "no ZooKeeper"},
		"silence":     {serve(t, ""), "does not answer"},
		"etcd":        {servers.StartEtcd(t).Addr(), "does not answer"},
		"Memcached":   {servers.StartMemcached(t).Addr(), "does not answer"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			err := failsToOpen(t, "zk://user:moonlight@"+c.addr, c.words)
			if !strings.Contains(err.Error(), c.addr) || strings.Contains(err.Error(), "moonlight") {
				t.Errorf("opened: %v, want an error with %s", err, c.addr)
			}
			s := newStore(t, []string{c.addr}, nil)
			servers.Until(t, "an error that says where", func() bool { // A pause of this machine may end a call before it begins.
				brief, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				defer cancel()
				_, err := s.Acquire(brief, exclusive("key", "id"))
				return err != nil && strings.Contains(err.Error(), c.addr)
			})
		})
	}
}

// failsToOpen opens a Locker until the error has these words, and returns the error. A server
// that is slow may fail in another way before, or let Open go on without the check of the
// settings.
func failsToOpen(t *testing.T, url, words string) (err error) {
	t.Helper()
	servers.Until(t, "an error that says: "+words, func() bool {
		var lk *holdfast.Locker
		if lk, err = holdfast.Open(bounded(t), url, nil); err == nil {
			t.Logf("%s was opened", url)
			lk.Close()
			return false
		}
		said := strings.Contains(err.Error(), words)
		if !said {
			t.Logf("opened: %v", err)
		}
		return said
	})
	return err
}

// serve accepts connections, says something to each, and keeps it.
func serve(t *testing.T, text string) string {
	t.Helper()
	return servers.StartStranger(t, func(conn net.Conn) {
		if _, err := io.WriteString(conn, text); err == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
	})
}

// TestPermissions keeps those away who have another password, or none, and lets
// those look who may.
func TestPermissions(t *testing.T) {
	t.Parallel()
	const acl = "?acl=auth::cdrwa,digest:guest:/wUPS7B9fsp7bPX/tvH3tTUx%2BmM=:r" // guest:looks
	at := func(user string) string { return "zk://" + user + server.Addr() + "/guarded/app" + acl }
	owner := opened(t, at("app:secret@"))
	l := locked(t, owner, "key")
	for _, user := range []string{"app:moonlight@", ""} {
		err := failsToOpen(t, at(user), "permission denied")
		if !errors.Is(err, driver.ErrInvalid) || strings.Contains(err.Error(), "moonlight") {
			t.Errorf("opened as %q: %v, want an ErrInvalid: permission denied", user, err)
		}
	}
	guest := opened(t, at("guest:looks@"))
	if hs, err := guest.Holders(bounded(t), "key"); err != nil || len(hs) != 1 || hs[0].Fence != l.Fence() {
		t.Errorf("the guest sees %+v, %v", hs, err)
	}
	for _, key := range []string{"key", "other"} {
		if _, err := lockedWithin(bounded(t), guest, key); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("the guest locks %q: %v", key, err)
		}
	}
	if err := unlock(l); err != nil {
		t.Error(err)
	}
}

// TestLongKeys takes keys as long as they may be, of whatever bytes, and refuses others.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	lk := locker(t, holdfast.Options{}, server.Addr())
	for _, key := range []string{strings.Repeat("/", driver.MaxKey), strings.Repeat("é", driver.MaxKey/2)} {
		if err := unlock(locked(t, lk, key)); err != nil {
			t.Error(err)
		}
		if _, err := lk.Lock(bounded(t), key+"x"); err == nil || !strings.Contains(err.Error(), "512") {
			t.Errorf("locked a key of %d bytes: %v", len(key)+1, err)
		}
	}
}

// TestPrefixes keeps the keys of prefixes and chroots apart.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	var all []*Store
	for _, opts := range []Options{{}, {Prefix: "other"}, {Chroot: "/deep/down"}, {Chroot: "deep", Prefix: "/down/there/"}, {Chroot: "/", Prefix: "top"}} {
		all = append(all, newStore(t, []string{server.Addr()}, &opts))
	}
	claim := exclusive("prefixes", "one")
	for _, s := range all {
		granted(t, s, claim)
	}
	for _, s := range all {
		var keys []string
		for key, err := range s.Keys(bounded(t), "prefixes") {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
		if len(keys) != 1 {
			t.Errorf("under %s are the keys %q", s.root, keys)
		}
	}
	for _, opts := range []Options{{Chroot: ".."}, {Chroot: "//"}, {Prefix: "/"}} {
		if _, err := New([]string{server.Addr()}, &opts); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("the chroot %q and the prefix %q: %v", opts.Chroot, opts.Prefix, err)
		}
	}
}

// TestTLS proves to the server who we are, and wants the same of it.
func TestTLS(t *testing.T) {
	t.Parallel()
	z := servers.StartZooKeeperTLS(t)
	files := "&ca=" + z.TLS.CA + "&cert=" + z.TLS.Cert + "&key=" + z.TLS.Key
	lk := opened(t, "zk://"+z.SecureAddr()+"?tls=true"+files)
	if err := unlock(locked(t, lk, "key")); err != nil {
		t.Error(err)
	}
	for what, query := range map[string]string{
		"x509":      "?tls=true",
		"not other": "?tls=true&server_name=other" + files,
		"hangs up":  "",
	} {
		failsToOpen(t, "zk://"+z.SecureAddr()+query, what)
	}
	// Java 17.0.21 no longer says that the certificate is missing.
	err := failsToOpen(t, "zk://"+z.SecureAddr()+"?tls=true&ca="+z.TLS.CA, "remote error: tls: ")
	if !strings.Contains(err.Error(), "certificate") && !strings.Contains(err.Error(), "handshake failure") {
		t.Errorf("without a certificate: %v", err)
	}
}
