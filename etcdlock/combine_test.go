package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/etcdlock"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A turnstile holds transactions back while it is shut, so that others gather.
type turnstile struct {
	mu      sync.Mutex
	shut    chan struct{} // closed when it opens; nil while open
	whole   bool          // holds batches back, too
	deafen  bool          // the answers to batches are lost
	waiting int
	batches [][]string // of each batch, the folders in which it creates claims
	refused int        // batches
}

func (w *turnstile) carry(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	txn, _ := req.(*etcdserverpb.TxnRequest)
	if txn == nil {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	folders := created(txn)
	batch := len(txn.Compare) == 0 && len(folders) > 0
	w.mu.Lock()
	shut := w.shut
	if batch {
		w.batches = append(w.batches, folders)
	}
	if batch && !w.whole {
		shut = nil
	}
	if shut != nil {
		w.waiting++
	}
	lost := batch && w.deafen
	w.deafen = w.deafen && !lost
	w.mu.Unlock()
	if shut != nil {
		select {
		case <-shut:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	err := invoke(ctx, method, req, reply, conn, opts...)
	if batch && err != nil && ctx.Err() == nil {
		w.mu.Lock()
		w.refused++
		w.mu.Unlock()
	}
	if lost && err == nil {
		return status.Error(codes.Unavailable, "the answer is lost")
	}
	return err
}

// created returns the folders in which a transaction may create claims.
func created(r *etcdserverpb.TxnRequest) (folders []string) {
	for _, op := range r.Success {
		if p := op.GetRequestPut(); p != nil {
			folders = append(folders, path.Dir(string(p.Key)))
		}
		if t := op.GetRequestTxn(); t != nil {
			folders = append(folders, created(t)...)
		}
	}
	return folders
}

// close shuts the turnstile behind as many transactions as go alone, and returns the
// function that opens it and waits for them.
func (w *turnstile) close(t *testing.T, s *etcdlock.Store) (open func()) {
	t.Helper()
	const alone = 4
	shut := make(chan struct{})
	w.mu.Lock()
	w.shut, w.waiting = shut, 0
	w.mu.Unlock()
	var passing sync.WaitGroup
	for i := range alone {
		passing.Go(func() {
			a := exclusive(fmt.Sprint("alone", i), t.Name()+fmt.Sprint(i))
			granted(t, s, a)
			release(t, s, a.Claim)
		})
	}
	w.await(t, alone)
	return sync.OnceFunc(func() {
		w.mu.Lock()
		w.shut = nil
		w.mu.Unlock()
		close(shut)
		passing.Wait()
	})
}

// await waits until so many transactions wait at the turnstile.
func (w *turnstile) await(t *testing.T, n int) {
	t.Helper()
	servers.Until(t, "transactions at the turnstile", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.waiting >= n
	})
}

// crowd requests claims at the same time, two of them on the first key, and returns how
// many were granted on each key.
func crowd(t *testing.T, s *etcdlock.Store, round int) (keys map[string]int) {
	t.Helper()
	const n = 8
	keys = make(map[string]int)
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n + 1 {
		all.Go(func() {
			a := exclusive(fmt.Sprint("key", round, "-", i%n), fmt.Sprint("id", round, "-", i))
			g := asked(t, s, a)
			mu.Lock()
			defer mu.Unlock()
			if keys[a.Key] += 0; g.OK {
				keys[a.Key]++
			}
		})
	}
	all.Wait()
	return keys
}

// TestBatch requests claims while earlier transactions are not answered. The claims
// go together, at most one for each key. Each key is granted once, even if etcd refuses the
// batch, or if the answer is lost.
func TestBatch(t *testing.T) {
	t.Parallel()
	for name, hinder := range map[string]func(t *testing.T, w *turnstile, prefix string) (done func() bool){
		"plain": func(t *testing.T, w *turnstile, _ string) func() bool {
			return func() bool { return true }
		},
		"answer lost": func(t *testing.T, w *turnstile, _ string) func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.deafen = true
			return func() bool { return !w.deafen }
		},
		"refused": func(t *testing.T, w *turnstile, prefix string) func() bool {
			c := admin(t, shared.Addr())
			kv := under(t, c, prefix+"claims/").Kvs[0]
			if _, err := c.Revoke(t.Context(), clientv3.LeaseID(kv.Lease)); err != nil {
				t.Fatal(err)
			}
			return func() bool { return w.refused > 0 }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := new(turnstile)
			s, prefix := intercepted(t, w.carry)
			round := 0
			servers.Await(t, "batch", func() error {
				round++
				granted(t, s, exclusive("first", fmt.Sprint("first", round)))
				open := w.close(t, s)
				defer open()
				w.mu.Lock()
				w.batches = nil
				w.mu.Unlock()
				done := hinder(t, w, prefix)
				crowded := make(chan map[string]int, 1)
				go func() { crowded <- crowd(t, s, round) }()
				servers.Until(t, "batches", func() bool {
					w.mu.Lock()
					defer w.mu.Unlock()
					return len(crowded) > 0 || len(w.batches) > 0 && done()
				})
				open()
				for key, n := range <-crowded {
					if n != 1 {
						t.Errorf("%s was granted %d times", key, n)
					}
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				largest := 0
				for _, folders := range w.batches {
					largest = max(largest, len(folders))
					of := make(map[string]bool)
					for _, f := range folders {
						if of[f] {
							t.Errorf("a batch creates two claims in %s", f)
						}
						of[f] = true
					}
				}
				if largest < 2 || !done() {
					return errors.New("all went alone")
				}
				return nil
			})
		})
	}
}

// TestBatchLeft has a caller give up while a batch is not answered: the caller leaves at
// once, and the other callers of the batch get their answers.
func TestBatchLeft(t *testing.T) {
	t.Parallel()
	w := &turnstile{whole: true}
	s, _ := intercepted(t, w.carry)
	granted(t, s, exclusive("else", "else")) // so that there is a lease
	open := w.close(t, s)
	defer open()
	ctx, cancel := context.WithCancel(t.Context())
	leaver, left := exclusive("leaver", "leaver"), make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx, leaver)
		left <- err
	}()
	var staying sync.WaitGroup
	for i := range 4 {
		staying.Go(func() { granted(t, s, exclusive(fmt.Sprint("stays", i), fmt.Sprint("stays", i))) })
	}
	w.await(t, 5)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrUnwritten) {
		t.Errorf("the leaver is told %v, want that the outcome is unknown", err)
	}
	open()
	staying.Wait()
	_ = answered(t, func(ctx context.Context) error {
		return s.Release(ctx, []driver.Release{{Claim: leaver.Claim, Late: true}})[0]
	})
	granted(t, s, exclusive("leaver", "next"))
}

// TestBatchEndsWithClose closes a store during a batch. The batch ends before Close returns,
// and the callers learn that the store is closed.
func TestBatchEndsWithClose(t *testing.T) {
	t.Parallel()
	var silent atomic.Bool
	var batches atomic.Int64 // under way
	s, _ := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		txn, _ := req.(*etcdserverpb.TxnRequest)
		if txn == nil || !silent.Load() {
			return invoke(ctx, method, req, reply, conn, opts...)
		}
		if len(txn.Compare) == 0 {
			batches.Add(1)
			defer batches.Add(-1)
		}
		<-ctx.Done()
		for range 1000 {
			runtime.Gosched() // so that Close may return before the batch
		}
		return status.FromContextError(ctx.Err()).Err()
	})
	granted(t, s, exclusive("else", "else")) // so that there is a lease
	silent.Store(true)
	var calls sync.WaitGroup
	for i := range 16 {
		calls.Go(func() {
			g, err := s.Acquire(context.Background(), exclusive(fmt.Sprint("key", i), fmt.Sprint("id", i)))
			if g.OK || err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("%+v, %v; want that the store is closed", g, err)
			}
		})
	}
	servers.Until(t, "a batch", func() bool { return batches.Load() > 0 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := batches.Load(); n > 0 {
		t.Errorf("%d batches are under way after Close", n)
	}
	calls.Wait()
}
