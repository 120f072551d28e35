package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/etcdlock"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func TestOpenWrongURL(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"etcd://h/database", "etcd://h,,h", "etcd://h?perfix=a/", "etcd://h?prefix=locks", "etcd://user@h",
		"etcd://user:moonlight@h?prefix=a/&prefix=b/", "etcd://h?ca=ca.pem", "etcds://h?ca=/nowhere/ca.pem",
		"etcds://h?cert=cert.pem", "etcd:h", "etcd://h#a",
	} {
		_, err := driver.Open(t.Context(), at)
		if !errors.Is(err, driver.ErrURL) || strings.Contains(err.Error(), "moonlight") {
			t.Errorf("%s: %v, want a wrong store URL, without the password", at, err)
		}
	}
}

func TestOpenTLS(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcdTLS(t, "--client-cert-auth")
	q := url.Values{"ca": {e.TLS.CA}, "cert": {e.TLS.Cert}, "key": {e.TLS.Key}}
	works(t, e.URL()+"?"+q.Encode())
	fails(t, e.URL(), "certificate")
	fails(t, "etcd://"+e.Addr())
}

// protect lets a server ask for passwords: "secret" of the users root, locks who
// may do what the documentation says, and other who may not.
func protect(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	c := admin(t, addr)
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	end := clientv3.GetPrefixRangeEnd(etcdlock.DefaultPrefix)
	must(c.RoleAdd(ctx, "locks"))
	must(c.RoleGrantPermission(ctx, "locks", etcdlock.DefaultPrefix, end, clientv3.PermissionType(clientv3.PermReadWrite)))
	for _, user := range []string{"root", "locks", "other"} {
		must(c.UserAdd(ctx, user, "secret"))
	}
	must(c.UserGrantRole(ctx, "root", "root"))
	must(c.UserGrantRole(ctx, "locks", "locks"))
	must(c.AuthEnable(ctx))
	return c
}

// TestWarnsOfPlainPasswords takes 0.0.0.0 for another host, at which this one answers.
func TestWarnsOfPlainPasswords(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t)
	protect(t, e.Addr())
	elsewhere := strings.Replace(e.Addr(), "127.0.0.1", "0.0.0.0", 1)
	for host, warns := range map[string]bool{e.Addr(): false, elsewhere: true} {
		warnings := servers.Insist(t, openStore(t, "etcd://locks:secret@"+host).Check)
		if told := strings.Contains(strings.Join(warnings, " "), elsewhere+" may be unencrypted"); told != warns {
			t.Errorf("%s: warnings %q", host, warnings)
		}
	}
}

func TestOpenWithPassword(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, "--bcrypt-cost=4")
	works(t, "etcd://locks:any@"+e.Addr()) // It does not ask.
	protect(t, e.Addr())
	works(t, "etcd://locks:secret@"+e.Addr())
	works(t, "etcd://root:secret@"+e.Addr()+"?prefix=elsewhere/")
	fails(t, "etcd://locks:moonlight@"+e.Addr(), "authentication failed")
	fails(t, e.URL(), "wants a user and a password")
	fails(t, "etcd://other:secret@"+e.Addr(), "permission denied", "readwrite holdfast/")
	fails(t, "etcd://locks:secret@"+e.Addr()+"?prefix=elsewhere/", "permission denied", "elsewhere/")

	s := openStore(t, "etcd://other:secret@"+e.Addr())
	_, err := s.Acquire(t.Context(), exclusive("key", "id"))
	if err == nil || !strings.Contains(err.Error(), "etcdctl role grant-permission") {
		t.Errorf("%v, want an error that says what to do", err)
	}
	if _, err := s.Check(t.Context()); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Check returned %v, want ErrInvalid", err)
	}
}

// TestOpenFails has nobody at the port, somebody else, or a server that hangs.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	soon, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, at := range []string{"etcd://127.0.0.1:1", "etcd://127.0.0.1:1,127.0.0.1:2", "etcd://user:moonlight@127.0.0.1:1"} {
		if _, err := driver.Open(soon, at); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want why, long before the deadline", at, err)
		}
	}
	fails(t, "etcd://"+servers.StartEtcdTLS(t).Addr(), "etcds://")
	fails(t, "etcds://"+shared.Addr(), "etcd://", "TLS")
	fails(t, "etcd://127.0.0.1:1", "connection refused")
	fails(t, "etcd://user:moonlight@127.0.0.1:1", "connection refused")
	fails(t, "etcd://"+servers.StartRedis(t).Addr(), "server preface")
	e := servers.StartEtcd(t)
	e.Pause()
	defer e.Resume()
	for _, at := range []string{e.URL(), "etcd://user:moonlight@" + e.Addr()} {
		servers.Await(t, "error that the deadline has passed", func() error { // A slow machine may see the end of a connection first.
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := driver.Open(ctx, at); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("opened: %w", err)
			}
			return nil
		})
	}
}

// TestHungServer expects calls to end with their context, and Close before long.
func TestHungServer(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t)
	s := openStore(t, e.URL())
	granted(t, s, exclusive("key", "holder"))
	granted(t, s, exclusive("key 2", "released"))
	e.Pause()
	defer e.Resume()
	for name, call := range map[string]func(context.Context) error{
		"Acquire": func(ctx context.Context) error { _, err := s.Acquire(ctx, waiting("key", "id")); return err },
		"new lease": func(ctx context.Context) error {
			a := exclusive("new", "id")
			a.TTL = time.Hour
			_, err := s.Acquire(ctx, a)
			return err
		},
		"Renew": func(ctx context.Context) error { return renew(ctx, s, exclusive("key", "holder").Claim) },
		"Release": func(ctx context.Context) error {
			return s.Release(ctx, []driver.Release{{Claim: exclusive("key 2", "released").Claim}})[0]
		},
		"Release all": func(ctx context.Context) error {
			return s.Release(ctx, []driver.Release{{Claim: exclusive("key", "else").Claim}})[0]
		},
		"Watch": func(ctx context.Context) error {
			_, err := s.Watch(ctx, waiting("key", "id").Claim, func(driver.Grant) {})
			return err
		},
		"Holders": func(ctx context.Context) error { _, err := s.Holders(ctx, "key"); return err },
		"Break":   func(ctx context.Context) error { return s.Break(ctx, "key", "id") },
		"Check":   func(ctx context.Context) error { _, err := s.Check(ctx); return err },
	} {
		servers.Await(t, name+" that ends with its context", func() error { // On a slow machine a limit of the store may end first.
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			switch err := call(ctx); {
			case errors.Is(err, context.Canceled):
				return nil
			case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
				return err
			default:
				t.Errorf("%s returned %v, want that the context has ended", name, err)
				return nil
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close returned %v", err)
	}
}

func TestCheckWarns(t *testing.T) {
	t.Parallel()
	c := servers.StartEtcdCluster(t)
	s := openStore(t, c.URL())
	// A member that is slow does not answer in time either.
	servers.Await(t, "silence about a cluster that is well", func() error {
		if w, err := s.Check(t.Context()); err != nil || len(w) != 0 {
			return fmt.Errorf("%q, %w", w, err)
		}
		return nil
	})
	down := c.Followers()[0]
	down.Kill()
	servers.Await(t, "warning of a dead member", func() error {
		if w, err := s.Check(t.Context()); err != nil || len(w) != 1 || !strings.Contains(w[0], down.Addr()) {
			return fmt.Errorf("%q, %w", w, err)
		}
		return nil
	})
}

func TestBadPrefix(t *testing.T) {
	t.Parallel()
	if _, err := etcdlock.New(admin(t, shared.Addr()), &etcdlock.Options{Prefix: "locks"}); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "slash") {
		t.Errorf("%v, want ErrInvalid", err)
	}
}

// TestLookalike has a server refuse a transaction that etcd takes, as kine does.
func TestLookalike(t *testing.T) {
	t.Parallel()
	s, _ := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if strings.HasSuffix(method, "/Txn") {
			return status.Error(codes.InvalidArgument, "etcdserver: unsupported operations in txn request")
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	})
	_, err := s.Check(t.Context())
	_, failed := s.Acquire(t.Context(), exclusive("key", "id"))
	for _, err := range []error{err, failed} {
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "only looks like etcd") {
			t.Error(err)
		}
	}
}

// TestProxyWithoutRoute has a proxy answer 404 for a moment, which gRPC reports as Unimplemented.
func TestProxyWithoutRoute(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	s, _ := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if strings.HasSuffix(method, "/Txn") && calls.Add(1) < 3 {
			return status.Error(codes.Unimplemented, "unexpected HTTP status code received from server: 404 (Not Found)")
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	})
	if _, err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if n := calls.Load(); n < 3 {
		t.Errorf("%d calls, want retries", n)
	}
}
